/** What rely makes of a path that loses 5 % with 10 % more packets: what is still lost, how late the others are, beside Reed-Solomon; and of a flow whose last packets are lost. */
import { expect, it } from 'vitest'
import { drive, type Pipeline, payload, tagOf } from '../../../../test/harness/component.ts'
import { repairPacket, sourcePacket } from '../../../../test/harness/rely.ts'

const BYTES = 1200
/** Between packets: 10,000 a second. */
const INTERVAL = 100_000
const LOSS = 0.05

interface Delivery {
  /** Share of the packets that never came out. */
  residual: number
  /** Time until a packet and all before it that come at all are out, ns: 99 of 100 are faster. */
  p99: number
}

/** Sends `count` packets through `coder`, from `in` to `wire`, 5 % loss, and `decoder`, from `lossy` to `out`. */
function deliver(coder: Pipeline, count: number): Delivery {
  const loss = { uniform_loss: { input: 'wire', output: 'lossy', loss_prob: LOSS, seed: 11 } }
  const bench = drive({ ...coder, loss })
  const out = new Float64Array(count).fill(Number.NaN)
  const look = () => {
    for (const { bytes, time } of bench.take('out')) out[tagOf(bytes)] = time
  }
  for (let n = 0; n < count; n++) {
    bench.send('in', payload(BYTES, n))
    if (n % 1000 === 0) look()
    bench.advance(INTERVAL)
  }
  bench.advance(1e9)
  look()
  bench.stop()
  const delays: number[] = []
  let latest = 0
  out.forEach((time, n) => {
    if (Number.isNaN(time)) return
    latest = Math.max(latest, time)
    delays.push(latest - n * INTERVAL)
  })
  delays.sort((a, b) => a - b)
  return { residual: 1 - delays.length / count, p99: delays[Math.floor(delays.length * 0.99)] as number }
}

const rely = (fields: Record<string, unknown> = {}): Pipeline => ({
  encoder: {
    rely_encoder: { input: 'in', output: 'wire', repair_time_window: 100, repair_target_rate: 0.1, ...fields },
  },
  decoder: { rely_decoder: { input: 'lossy', output: 'out', release_in_order: true } },
})
const reedSolomon = (symbols: number, repair: number): Pipeline => ({
  encoder: { reed_solomon_encoder: { input: 'in', output: 'wire', symbols, repair } },
  decoder: { reed_solomon_decoder: { input: 'lossy', output: 'out' } },
})

it('loses less than 0.01 % of what a path with 5 % loss carries, with 10 % more packets, in order within 30 ms', () => {
  const { residual, p99 } = deliver(rely(), 100_000)
  expect(residual).toBeLessThan(1e-4)
  expect(p99).toBeLessThan(30e6)
}, 60_000)

it('loses less than the longest Reed-Solomon blocks of the same overhead, which take longer', () => {
  const sliding = deliver(rely(), 100_000)
  const blocks = deliver(reedSolomon(230, 23), 100_000)
  expect(sliding.residual).toBeLessThan(blocks.residual / 2)
  expect(sliding.p99).toBeLessThan(blocks.p99)
}, 60_000)

it.each([
  ['repair', repairPacket([payload(40, 110)], 110, 7), [10, 11, 12, 110]],
  ['source', sourcePacket(payload(40, 110), 110), [10, 11, 12, 110]],
])('what is recovered by the source that undoes the leap of a %s is whole', (_, leap, expected) => {
  const bench = drive({ it: { rely_decoder: { input: 'in', output: 'out', release_in_order: true, timeout: 100 } } })
  for (let n = 0; n < 10; n++) bench.send('in', sourcePacket(payload(40, n), n))
  bench.send('in', leap)
  bench.send('in', repairPacket([payload(40, 11), payload(40, 12)], 11, 21))
  bench.take('out')
  for (const n of [10, 11]) bench.send('in', sourcePacket(payload(40, n), n))
  bench.advance(300e6)
  expect(bench.take('out').map(({ bytes }) => [tagOf(bytes), bytes.length])).toEqual(expected.map((n) => [n, 40]))
  bench.stop()
})

it.each([1, 40, 100])(
  'a packet that is recovered with the %i before it missing waits for them no longer than one that comes',
  (missing) => {
    const timeout = 100
    const bench = drive({ it: { rely_decoder: { input: 'in', output: 'out', release_in_order: true, timeout } } })
    const last = 10 + missing
    for (let n = 0; n < 10; n++) bench.send('in', sourcePacket(payload(40, n), n))
    bench.send('in', repairPacket([payload(40, last)], last, 7))
    bench.advance((timeout - 1) * 1e6)
    expect(bench.take('out').map(({ bytes }) => tagOf(bytes))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(bench.metrics().it.held_packets).toBe(1)
    bench.advance(2e6)
    expect(bench.take('out').map(({ bytes }) => bytes)).toEqual([payload(40, last)])
    expect(bench.metrics().it.held_packets).toBe(0)
    bench.send('in', sourcePacket(payload(40, last), last))
    expect(bench.take('out')).toEqual([])
    expect(bench.metrics().it.late_packets).toBe(1)
    bench.stop()
  },
)
