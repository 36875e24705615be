/** delay_constant: accuracy, jitter, order, live changes, notifications and 100,000 packets held at once. */
import { describe, expect, test } from 'vitest'
import { drive, payload, tagOf } from '../../../../test/harness/component.ts'
import { Random } from '../../engine/random.ts'
import { Heap, Ring } from './waiting.ts'

const FLOW = [{ input: 'in', output: 'out' }]
const delay = (fields: Record<string, unknown>, flows: unknown = FLOW) => ({
  delay: { delay_constant: { flows, ...fields } },
})

describe('delay_constant', () => {
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
