/** An end whose machine was suspended, while its clock stood still: what it sends then is not taken for late. */
import { expect, test } from 'vitest'
import { Bonded } from '../../../../test/harness/bonded.ts'
import { type Bench, drive, payload } from '../../../../test/harness/component.ts'

const MS = 1e6
const PACKETS_PER_S = 100

function end(seed: number): Bench {
  const carriers = [{ input: 'come', output: 'go', carrier_handle: 1 }]
  const streams = [{ input: 'in', output: 'out', stream_handle: 5, realtime_stream: { timeout: 100 } }]
  return drive({ it: { raft: { streams, carriers } } }, { seed })
}

/** Moves what one end has sent to the other. */
const carry = (from: Bench, to: Bench): void =>
  to.send(
    'come',
    from.take('go').map(({ bytes }) => bytes),
  )

test.each([
  [600, 1],
  [30, 7],
])('for %i s: all arrives again after %i s', (suspended, within) => {
  const near = end(1)
  const far = end(2)
  let count = 0
  /** How many of those arrive that are sent in the next second. */
  const arrive = (): number => {
    for (let n = 0; n < PACKETS_PER_S; n++) {
      near.send('in', payload(40, count++))
      for (let ms = 0; ms < 1000 / PACKETS_PER_S; ms++) {
        near.advance(MS)
        carry(near, far)
        far.advance(MS)
        carry(far, near)
      }
    }
    return far.take('out').length
  }
  for (let s = 0; s < 5; s++) expect(arrive()).toBe(PACKETS_PER_S)
  far.advance(suspended * 1000 * MS)
  for (let s = 0; s < within; s++) arrive()
  for (let s = 0; s < 3; s++) expect(arrive()).toBe(PACKETS_PER_S)
  near.stop()
  far.stop()
})

test.each([2000, 3500])('a way that takes %i ms for a while is none: what is late stays so', (delay) => {
  const bonded = new Bonded([{ realtime_stream: { timeout: 250 } }], [{ delay: 20 }])
  const flow = (seconds: number): number => {
    for (let n = 0; n < seconds * PACKETS_PER_S; n++) {
      bonded.bench.send('a in 0', payload(40, n))
      bonded.bench.advance(1000 * (MS / PACKETS_PER_S))
    }
    return bonded.bench.take('b out 0').length
  }
  flow(3)
  bonded.delay('ab0', delay)
  flow(1)
  expect(flow(20)).toBe(0)
  bonded.bench.stop()
})

test('a queue at the other end is none: what waited there is not held for longer', () => {
  const timeout = 4000
  const stream = { realtime_stream: { timeout, delivery_policy: 'ON_TIMEOUT' } }
  const bonded = new Bonded([stream], [{ delay: 20, carrier: { max_bandwidth_mbps: 1 } }])
  const interval = 4
  let longest = 0
  // Twice as much as the carrier takes.
  for (let n = 0; n < 20_000 / interval; n++) {
    bonded.bench.send('a in 0', payload(1000, n))
    bonded.bench.advance(interval * MS)
    for (const { bytes, time } of bonded.bench.take('b out 0')) {
      longest = Math.max(longest, time / MS - new DataView(bytes.buffer).getUint32(0) * interval)
    }
  }
  expect(longest).toBeGreaterThan(timeout)
  expect(longest).toBeLessThan(timeout + 100)
  bonded.bench.stop()
})
