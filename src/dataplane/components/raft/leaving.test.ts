/** When a carrier is left, on the virtual clock: soon after it died, and not for what it loses now and then, nor when there is no other. */
import { expect, test } from 'vitest'
import { Bonded } from '../../../../test/harness/bonded.ts'
import { payload } from '../../../../test/harness/component.ts'

const MS = 1e6
const REALTIME = { realtime_stream: { timeout: 250 } }

/** Sends a packet every `interval` ms for `ms`; `each` is told the time. */
function flow(bonded: Bonded, ms: number, interval: number, each: (ms: number) => void = () => {}): void {
  for (let at = 0; at < ms; at++) {
    each(at)
    if (at % interval === 0) bonded.bench.send('a in 0', payload(500, at))
    bonded.bench.advance(MS)
  }
}

test.each([3, 17, 90])('a packet every %i ms: a path that loses one in twenty is not left', (interval) => {
  const bonded = new Bonded([REALTIME], [{ delay: 15, loss: 0.05 }, { delay: 40 }])
  flow(bonded, 30_000, interval)
  bonded.bench.advance(1000 * MS)
  const { carriers_0_times_left, carriers_1_times_left, streams_0_sent_packets } = bonded.metrics('a')
  expect([carriers_0_times_left, carriers_1_times_left]).toEqual([0, 0])
  expect(bonded.bench.take('b out 0')).toHaveLength(streams_0_sent_packets as number)
  bonded.bench.stop()
})

test('a path that dies is left within 120 ms, each time', () => {
  const bonded = new Bonded([REALTIME], [{ delay: 15, loss: 0.02 }, { delay: 40 }])
  flow(bonded, 12_000, 4, (ms) => {
    if (ms === 2000 || ms === 7000) bonded.cut(0)
    if (ms === 2120 || ms === 7120) expect(bonded.metrics('a').carriers_0_used).toBe(0)
    if (ms === 4000 || ms === 9000) bonded.cut(0, false)
    if (ms === 5000 || ms === 10_000) expect(bonded.metrics('a').carriers_0_used).toBe(1)
  })
  bonded.bench.advance(1000 * MS)
  expect(bonded.metrics('a').carriers_0_times_left).toBe(2)
  const told = bonded.bench.log.filter(({ component, message }) => component === 'a' && message.startsWith('carrier'))
  const left = ['WARN', 'carrier 7 is left: what was sent on it is not reported']
  const back = ['INFO', 'carrier 7 is used again']
  expect(told.map(({ level, message }) => [level, message])).toEqual([left, back, left, back])
  expect(bonded.bench.take('b out 0')).toHaveLength(3000)
  bonded.bench.stop()
})

test('a measured path that dies is left as soon, though less is sent than it carries', () => {
  const carrier = { auto_bandwidth_estimation: true }
  const paths = [
    { delay: 15, carrier },
    { delay: 40, carrier },
  ]
  const bonded = new Bonded([REALTIME], paths)
  flow(bonded, 8000, 4, (ms) => {
    if (ms === 5000) bonded.cut(0)
    if (ms === 5120) expect(bonded.metrics('a').carriers_0_used).toBe(0)
  })
  bonded.bench.advance(1000 * MS)
  expect(bonded.bench.take('b out 0')).toHaveLength(2000)
  bonded.bench.stop()
})

test('on a path without delay, probes for what was lost last go some milliseconds apart', () => {
  const bonded = new Bonded([REALTIME], [{ delay: 0 }])
  flow(bonded, 500, 4, (ms) => {
    if (ms === 496) bonded.cut(0)
    if (ms === 499) bonded.cut(0, false)
  })
  const before = bonded.metrics('a').carriers_0_sent_packets as number
  bonded.bench.advance(500 * MS)
  expect((bonded.metrics('a').carriers_0_sent_packets as number) - before).toBeLessThan(30)
  bonded.bench.stop()
})

test('what is lost while a path dies is not what it loses otherwise', () => {
  const bonded = new Bonded([REALTIME], [{ delay: 15, loss: 0.02 }, { delay: 40 }])
  flow(bonded, 4000, 1, (ms) => {
    if (ms === 3000) bonded.cut(0)
  })
  expect(bonded.metrics('a').carriers_0_used).toBe(0)
  expect(bonded.metrics('a').carriers_0_loss).toBeLessThan(0.06)
  bonded.bench.stop()
})

test('the last path in use is not left: what comes late on it goes on no dead one', () => {
  const bonded = new Bonded([REALTIME], [{ delay: 15 }, { delay: 40 }])
  const sent = () => bonded.metrics('a').carriers_0_sent_packets as number
  let before = 0
  flow(bonded, 6000, 4, (ms) => {
    if (ms === 2000) bonded.cut(0)
    if (ms === 3000) {
      before = sent()
      bonded.delay('ba1', 400)
    }
    if (ms === 3100) bonded.delay('ba1', 40)
  })
  bonded.bench.advance(1000 * MS)
  // Probes, ten a second.
  expect(sent() - before).toBeLessThan(45)
  const { carriers_1_times_left, carriers_1_used } = bonded.metrics('a')
  expect([carriers_1_times_left, carriers_1_used]).toEqual([0, 1])
  expect(bonded.bench.take('b out 0')).toHaveLength(1500)
  bonded.bench.stop()
})

test('when both paths go, the first one that comes back is used', () => {
  for (const first of [0, 1]) {
    const bonded = new Bonded([REALTIME], [{ delay: 15 }, { delay: 40 }])
    flow(bonded, 3000, 4, (ms) => {
      if (ms === 1000) {
        bonded.cut(0)
        bonded.cut(1)
      }
      if (ms === 2000) bonded.cut(first, false)
    })
    const { used, other } = { used: `carriers_${first}_used`, other: `carriers_${1 - first}_used` }
    expect([bonded.metrics('a')[used], bonded.metrics('a')[other]]).toEqual([1, 0])
    const late = bonded.bench.take('b out 0').filter(({ time }) => time > 2500 * MS)
    expect(late.length).toBeGreaterThanOrEqual(120)
    bonded.bench.stop()
  }
})
