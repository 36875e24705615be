/** Delays: accuracy, jitter, order, phases, live changes, notifications and 100,000 packets held at once. */
import { describe, expect, test } from 'vitest'
import { drive, payload, refusal, tagOf } from '../../../../test/harness/component.ts'
import { Random } from '../../engine/random.ts'
import { Heap, Ring } from './waiting.ts'

const FLOW = [{ input: 'in', output: 'out' }]
const delay = (fields: Record<string, unknown>, flows: unknown = FLOW) => ({
  delay: { delay_constant: { flows, ...fields } },
})

describe('delay_constant', () => {
  test.each([false, true])('keeps no more than 16,384 notifications for later (reordering %s)', (allow) => {
    const bench = drive({
      ...delay({ delay: 50, allow_reordering: allow }),
      after: { splitter: { input: 'out', outputs: ['end'] } },
    })
    bench.send('in', payload(40, 0))
    for (let i = 0; i < 20_000; i++) bench.notify('in', 'FLUSH')
    bench.advance(50e6)
    expect(bench.received('end')).toHaveLength(1)
    expect(bench.notifications('end')).toHaveLength(16_384)
    bench.notify('in', 'FLUSH')
    expect(bench.notifications('end')).toHaveLength(16_385)
    bench.stop()
  })

  test.each([0, 1, 20, 500])('%i ms to the nanosecond', (ms) => {
    const bench = drive(delay({ delay: ms }))
    for (let i = 0; i < 100; i++) {
      bench.send('in', payload(100, i))
      bench.advance(333_333)
    }
    bench.advance(1e9)
    const out = bench.received('out')
    expect(out.map(({ bytes }) => tagOf(bytes))).toEqual(Array.from({ length: 100 }, (_, i) => i))
    for (const { time, arrival } of out) expect(time - arrival).toBe(ms * 1e6)
    expect(bench.metrics().delay.lag_max).toBe(0)
    bench.stop()
  })

  test('jitter is uniform in ± its value; without order each packet has its own', () => {
    const bench = drive(delay({ delay: 10, jitter: 4, allow_reordering: true, seed: 3 }))
    const n = 20_000
    for (let i = 0; i < n; i++) {
      bench.send('in', payload(40, i))
      bench.advance(100_000)
    }
    bench.advance(1e9)
    const out = bench.received('out')
    const delays = out.map(({ time, arrival }) => (time - arrival) / 1e6)
    expect(delays).toHaveLength(n)
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(6)
    expect(Math.max(...delays)).toBeLessThanOrEqual(14)
    const mean = delays.reduce((sum, value) => sum + value, 0) / n
    expect(Math.abs(mean - 10)).toBeLessThan((3.291 * 8) / Math.sqrt(12 * n))
    // Kolmogorov-Smirnov against the uniform distribution, 99.9 %.
    delays.sort((a, b) => a - b)
    const distance = Math.max(...delays.map((value, i) => Math.abs((value - 6) / 8 - (i + 0.5) / n)))
    expect(distance).toBeLessThan(1.95 / Math.sqrt(n))
    const times = out.map(({ time }) => time)
    expect(times).toEqual([...times].sort((a, b) => a - b))
    const tags = out.map(({ bytes }) => tagOf(bytes))
    expect(tags).not.toEqual([...tags].sort((a, b) => a - b))
    bench.stop()
  })

  test('with jitter order is kept unless asked otherwise, and the delay is never below zero', () => {
    const bench = drive(delay({ delay: 2, jitter: 6, seed: 3 }))
    for (let i = 0; i < 2000; i++) {
      bench.send('in', payload(40, i))
      bench.advance(500_000)
    }
    bench.advance(1e9)
    const out = bench.received('out')
    expect(out.map(({ bytes }) => tagOf(bytes))).toEqual(Array.from({ length: 2000 }, (_, i) => i))
    const delays = out.map(({ time, arrival }) => time - arrival)
    expect(Math.min(...delays)).toBe(0)
    expect(Math.max(...delays)).toBeLessThanOrEqual(8e6)
    // One that waits for the packet before it is due with that one, not late.
    expect(bench.metrics().delay.lag_max).toBe(0)
    bench.stop()
  })

  test('flows stay apart', () => {
    const flows = [
      { input: 'a', output: 'x' },
      { input: 'b', output: 'y' },
    ]
    const bench = drive(delay({ delay: 5, jitter: 5, seed: 1 }, flows))
    for (let i = 0; i < 50; i++) {
      bench.send('a', payload(40, i))
      bench.send('b', payload(40, 1000 + i))
      bench.advance(1e6)
    }
    bench.advance(1e9)
    expect(bench.received('x').map(({ bytes }) => tagOf(bytes))).toEqual(Array.from({ length: 50 }, (_, i) => i))
    expect(bench.received('y').map(({ bytes }) => tagOf(bytes))).toEqual(Array.from({ length: 50 }, (_, i) => 1000 + i))
    bench.stop()
  })

  test('49.7 days, the longest delay there is, to the nanosecond; the sink measures it', () => {
    const ms = 4_294_967_295
    const bench = drive({
      source: { uniform_traffic_source: { output: 'in', interval: 1000, total_packets: 100, seed: 1 } },
      ...delay({ delay: ms }),
      sink: { traffic_sink: { input: 'out', latency_budget: ms, timeout_ms: ms } },
    })
    bench.advance(ms * 1e6 - 1)
    expect(bench.metrics().sink.packets).toBe(0)
    bench.advance(1)
    expect(bench.metrics().sink.packets).toBe(1)
    bench.advance(99e9)
    const { sink, delay: held } = bench.metrics()
    expect(sink).toMatchObject({ packets: 100, late_packets: 0, delay_min: ms * 1e6, delay_p50: ms * 1e6 })
    expect(held.lag_max).toBe(0)
    bench.stop()
  })

  test('4,096 flows, as many as there may be, between a splitter and a flow_combiner', () => {
    const each = (letter: string) => Array.from({ length: 4096 }, (_, i) => `${letter}${i}`)
    const bench = drive({
      split: { splitter: { input: 'in', outputs: each('s') } },
      ...delay(
        { delay: 10 },
        each('s').map((input, i) => ({ input, output: `d${i}` })),
      ),
      join: { flow_combiner: { inputs: each('d'), output: 'out' } },
    })
    bench.send('in', payload(100, 7))
    bench.advance(10e6)
    expect(bench.received('out')).toHaveLength(4096)
    bench.stop()
  })

  test('a live change of allow_reordering: what waits keeps its time, what comes may overtake it or not any more', () => {
    const bench = drive(delay({ delay: 100 }))
    const config = (ms: number, allow: boolean) => delay({ delay: ms, allow_reordering: allow })
    bench.send('in', [payload(40, 0), payload(40, 1)])
    bench.reconfigure(config(10, true))
    bench.send('in', payload(40, 2))
    bench.advance(5e6)
    bench.reconfigure(config(1, false))
    bench.send('in', payload(40, 3))
    bench.advance(200e6)
    expect(bench.received('out').map(({ bytes, time }) => [tagOf(bytes), time / 1e6])).toEqual([
      [2, 10],
      [0, 100],
      [1, 100],
      [3, 100],
    ])
    expect(bench.metrics().delay.lag_max).toBe(0)
    bench.stop()
  })

  test('a live change holds for packets from then on; a shorter delay does not overtake', () => {
    const bench = drive(delay({ delay: 100 }))
    bench.send('in', payload(40, 0))
    bench.reconfigure(delay({ delay: 10 }))
    bench.send('in', payload(40, 1))
    bench.advance(200e6)
    bench.send('in', payload(40, 2))
    bench.advance(200e6)
    expect(bench.received('out').map(({ time }) => time / 1e6)).toEqual([100, 100, 210])
    bench.stop()
  })

  test.each([false, true])('notifications keep their place among the packets (reordering %s)', (allow) => {
    const bench = drive({
      ...delay({ delay: 50, allow_reordering: allow }),
      after: { splitter: { input: 'out', outputs: ['end'] } },
    })
    bench.notify('in', 'FLUSH')
    expect(bench.notifications('end')).toEqual(['FLUSH'])
    bench.send('in', payload(40, 0))
    bench.notify('in', 'RESET')
    bench.advance(49e6)
    expect(bench.notifications('end')).toEqual(['FLUSH'])
    bench.advance(1e6)
    expect(bench.received('end')).toHaveLength(1)
    expect(bench.notifications('end')).toEqual(['FLUSH', 'RESET'])
    bench.stop()
  })

  test('holds 100,000 packets for 500 ms without loss; a stop in the middle frees all at once', () => {
    const bench = drive(
      {
        source: {
          throughput_traffic_source: { output: 'in', throughput_mbit: 102.4, payload_size: 64, batch_size: 100 },
        },
        ...delay({ delay: 500 }),
        sink: { traffic_sink: { input: 'out', latency_budget: 500 } },
      },
      { record: false },
    )
    bench.advance(499e6)
    expect(bench.metrics().delay.held_packets).toBe(99_900)
    expect(bench.packets.held).toBe(99_900 + 1)
    bench.advance(1001e6)
    const { delay: held, sink, source } = bench.metrics()
    expect(held.held_packets).toBe(100_000)
    expect(source.starved_packets).toBe(0)
    expect(sink).toMatchObject({
      lost_packets: 0,
      corrupt_packets: 0,
      late_packets: 0,
      delay_min: 500e6,
      delay_max: 500e6,
    })
    expect(sink.packets).toBe(source.generated_packets - 100_000)
    bench.stop()
    expect(bench.packets.available).toBe(bench.packets.slots)
  })
})

describe('delay_fixed', () => {
  const fixed = (ms: number) => ({ delay: { delay_fixed: { input: 'in', output: 'out', delay: ms } } })

  test.each([0, 1, 20, 2_147_483_647])('%i ms to the nanosecond, in order', (ms) => {
    const bench = drive(fixed(ms))
    for (let i = 0; i < 100; i++) {
      bench.send('in', payload(100, i))
      bench.advance(333_333)
    }
    bench.advance(ms * 1e6)
    const out = bench.received('out')
    expect(out.map(({ bytes }) => tagOf(bytes))).toEqual(Array.from({ length: 100 }, (_, i) => i))
    for (const { time, arrival } of out) expect(time - arrival).toBe(ms * 1e6)
    bench.stop()
  })

  test('a live change holds for packets from then on; a shorter delay does not overtake', () => {
    const bench = drive(fixed(100))
    bench.send('in', payload(40, 0))
    bench.reconfigure(fixed(10))
    bench.send('in', payload(40, 1))
    bench.advance(200e6)
    bench.send('in', payload(40, 2))
    bench.advance(200e6)
    expect(bench.received('out').map(({ time }) => time / 1e6)).toEqual([100, 100, 210])
    expect(bench.log).toEqual([])
    bench.stop()
  })

  test('nor does none at all', () => {
    const bench = drive(fixed(100))
    bench.send('in', payload(40, 0))
    bench.reconfigure(fixed(0))
    bench.send('in', payload(40, 1))
    bench.advance(100e6)
    bench.send('in', payload(40, 2))
    expect(bench.received('out').map(({ bytes, time }) => [tagOf(bytes), time / 1e6])).toEqual([
      [0, 100],
      [1, 100],
      [2, 100],
    ])
    bench.stop()
  })
})

describe('delay_jitter', () => {
  test('each packet has a delay of its own, uniform in ± the jitter and never below zero, and may overtake', () => {
    const bench = drive({ delay: { delay_jitter: { input: 'in', output: 'out', delay: 3, jitter: 6, seed: 5 } } })
    const n = 20_000
    for (let i = 0; i < n; i++) {
      bench.send('in', payload(40, i))
      bench.advance(100_000)
    }
    bench.advance(1e9)
    const out = bench.received('out')
    const delays = out.map(({ time, arrival }) => (time - arrival) / 1e6)
    // A quarter of the range is below zero and counts as zero; the rest is uniform in 0 to 9 ms.
    const above = delays.filter((value) => value > 0).sort((a, b) => a - b)
    expect(delays.length).toBe(n)
    expect(Math.abs(above.length - 0.75 * n)).toBeLessThan(3.291 * Math.sqrt(n * 0.75 * 0.25))
    // Kolmogorov-Smirnov, 99.9 %.
    const distance = Math.max(...above.map((value, i) => Math.abs(value / 9 - (i + 0.5) / above.length)))
    expect(distance).toBeLessThan(1.95 / Math.sqrt(above.length))
    const tags = out.map(({ bytes }) => tagOf(bytes))
    expect(tags).not.toEqual([...tags].sort((a, b) => a - b))
    bench.stop()
  })
})

/** The delay of a packet sent every `step` ms, `count` of them, by tag, ms. */
function delaysOf(bench: ReturnType<typeof drive>, count: number, step: number): number[] {
  for (let i = 0; i < count; i++) {
    bench.send('in', payload(40, i))
    bench.advance(step * 1e6)
  }
  bench.advance(1e9)
  const out = bench.received('out')
  expect(out.map(({ bytes }) => tagOf(bytes))).toEqual(Array.from({ length: count }, (_, i) => i))
  return out.map(({ time, arrival }) => (time - arrival) / 1e6)
}

describe.each([
  [
    'delay_fixed_sequencer',
    (delays: number[], intervals: number[], repeat?: boolean) => ({
      delay: { delay_fixed_sequencer: { input: 'in', output: 'out', delays, intervals, ...(!repeat && { repeat }) } },
    }),
  ],
  [
    'delay_dynamic',
    (delays: number[], intervals: number[]) => ({
      delay: {
        delay_dynamic: {
          flows: FLOW,
          phases: intervals.map((duration, i) => ({ duration, delay: delays[i] })),
          seed: 1,
        },
      },
    }),
  ],
])('%s', (_, config) => {
  test('the n-th delay for the n-th interval from the start of the run, then again; one that falls does not reorder', () => {
    const bench = drive(config([20, 5, 10], [30, 40, 50], true))
    // 4.5 rounds, in which nothing comes.
    bench.advance(540e6)
    expect(bench.metrics().delay.phase).toBe(1)
    const delays = delaysOf(bench, 24, 10)
    // From 60 ms into a round: 10 left of the second interval; packets at 30, 40, … after 20 have to wait for the one at 20.
    const round = [20, 20, 20, 10, 5, 5, 5, 10, 10, 10, 10, 10]
    expect(delays).toEqual([...round.slice(6), ...round, ...round.slice(0, 6)])
    bench.stop()
  })

  test('a packet at the very moment of a change has the new delay', () => {
    const bench = drive(config([5, 10], [30, 40], true))
    bench.advance(29_999_999)
    bench.send('in', payload(40, 0))
    bench.advance(1)
    bench.send('in', payload(40, 1))
    bench.advance(1e9)
    expect(bench.received('out').map(({ time, arrival }) => (time - arrival) / 1e6)).toEqual([5, 10])
    bench.stop()
  })

  test('changed lists begin at their first entry; the same ones go on', () => {
    const bench = drive(config([1, 2], [10, 10], true))
    bench.advance(15e6)
    bench.reconfigure(config([1, 2], [10, 10], true))
    bench.send('in', payload(40, 0))
    bench.advance(2e6)
    bench.reconfigure(config([3, 4], [10, 10], true))
    bench.send('in', payload(40, 1))
    bench.advance(9.9e6)
    bench.send('in', payload(40, 2))
    bench.advance(0.1e6)
    bench.send('in', payload(40, 3))
    bench.advance(1e9)
    expect(bench.received('out').map(({ time, arrival }) => (time - arrival) / 1e6)).toEqual([2, 3, 3, 4])
    bench.stop()
  })

  test('intervals as long as they can be', () => {
    const longest = 2_147_483_647
    const bench = drive(config([1, 2], [longest, longest], true))
    for (const [span, phase] of [
      [longest * 1e6 - 1, 0],
      [1, 1],
      [longest * 1e6 - 1, 1],
      [1, 0],
    ]) {
      bench.advance(span)
      expect(bench.metrics().delay.phase).toBe(phase)
    }
    bench.stop()
  })
})

describe('delay_fixed_sequencer', () => {
  const config = (fields: Record<string, unknown>) => ({
    delay: { delay_fixed_sequencer: { input: 'in', output: 'out', delays: [1, 2], intervals: [10, 20], ...fields } },
  })

  test('without repeat the last delay holds for good; repeat given later begins again', () => {
    const bench = drive(config({ repeat: false }))
    bench.advance(1000e6)
    expect(bench.metrics().delay.phase).toBe(1)
    bench.send('in', payload(40, 0))
    bench.reconfigure(config({ repeat: true }))
    expect(bench.metrics().delay.phase).toBe(0)
    bench.advance(10e6)
    expect(bench.metrics().delay.phase).toBe(1)
    bench.advance(20e6)
    expect(bench.metrics().delay.phase).toBe(0)
    expect(bench.received('out').map(({ time, arrival }) => (time - arrival) / 1e6)).toEqual([2])
    bench.stop()
  })

  test.each([
    [{ delays: [1] }, '/delays', '1 of them for 2 intervals: give one for each'],
    [{ intervals: [10, 0] }, '/intervals/1', '0 is below the minimum of 1 ms'],
    [{ delays: [1, -1] }, '/delays/1', '-1 is below the minimum of 0 ms'],
    [{ delays: [], intervals: [] }, '/delays', 'needs at least 1 entry'],
  ])('%j is refused', (fields, pointer, message) => {
    expect(refusal(config(fields))).toMatchObject({
      pointer: `/engine_config/pipeline/delay/delay_fixed_sequencer${pointer}`,
      message,
    })
  })
})

describe('delay_dynamic', () => {
  test('jitter and reordering are those of the phase; flows keep their own order', () => {
    const flows = [
      { input: 'in', output: 'out' },
      { input: 'in2', output: 'out2' },
    ]
    const phases = [
      { duration: 1000, delay: 10, jitter: 5 },
      { duration: 1000, delay: 1 },
    ]
    const bench = drive({ delay: { delay_dynamic: { flows, phases, seed: 3 } } })
    const delays = delaysOf(bench, 20, 100)
    expect(new Set(delays.slice(0, 10)).size).toBe(10)
    for (const value of delays.slice(0, 10)) expect(Math.abs(value - 10)).toBeLessThanOrEqual(5)
    expect(delays.slice(10)).toEqual(Array(10).fill(1))
    expect(bench.received('out2')).toEqual([])
    bench.stop()
  })

  test('with allow_reordering a packet of a shorter phase overtakes', () => {
    const phases = [
      { duration: 10, delay: 100 },
      { duration: 1000, delay: 1 },
    ]
    const bench = drive({ delay: { delay_dynamic: { flows: FLOW, phases, allow_reordering: true } } })
    bench.send('in', payload(40, 0))
    bench.advance(10e6)
    bench.send('in', payload(40, 1))
    bench.advance(1e9)
    expect(bench.received('out').map(({ bytes }) => tagOf(bytes))).toEqual([1, 0])
    bench.stop()
  })
})

describe('waiting', () => {
  test('a ring keeps order through growth and wrap-around', () => {
    const ring = new Ring()
    const random = new Random(1)
    const model: [number, number][] = []
    for (let i = 0; i < 20_000; i++) {
      if (model.length === 0 || random.chance(i < 10_000 ? 0.6 : 0.4)) {
        ring.push(i, i * 0.5)
        model.push([i, i * 0.5])
      } else {
        expect([ring.handle, ring.value]).toEqual(model.shift())
        ring.shift()
      }
      expect(ring.length).toBe(model.length)
    }
  })

  test('a heap gives the earliest first, equals in order', () => {
    const heap = new Heap()
    const random = new Random(2)
    const model: [number, number][] = []
    for (let i = 0; i < 5000; i++) {
      if (model.length === 0 || random.chance(i < 3000 ? 0.7 : 0.3)) {
        const value = random.below(50)
        heap.push(i, value)
        model.push([i, value])
        model.sort((a, b) => a[1] - b[1] || a[0] - b[0])
      } else {
        expect([heap.handle, heap.value]).toEqual(model.shift())
        heap.shift()
      }
    }
  })
})
