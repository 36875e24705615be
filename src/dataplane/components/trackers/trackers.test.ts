/** throughput_tracker, bandwidth_tracker and observer: what they show of traffic that is known. */
import { describe, expect, test } from 'vitest'
import { type Bench, drive, payload, refusal } from '../../../../test/harness/component.ts'

describe('throughput_tracker', () => {
  const config = (fields = {}) => ({ tracker: { throughput_tracker: { input: 'in', output: 'out', ...fields } } })

  test('rates of the last whole interval, totals, and 0 when silent', () => {
    const bench = drive(config({ interval_ms: 100 }))
    for (let i = 0; i < 100; i++) {
      bench.send('in', payload(125, i))
      bench.advance(1e6)
    }
    expect(bench.metrics().tracker).toMatchObject({
      packets_per_second: 1000,
      bits_per_second: 1e6,
      total_packets: 100,
      total_bytes: 12_500,
    })
    expect(bench.received('out')).toHaveLength(100)
    bench.advance(50e6)
    expect(bench.metrics().tracker.packets_per_second).toBe(1000)
    bench.advance(50e6)
    expect(bench.metrics().tracker).toMatchObject({ packets_per_second: 0, bits_per_second: 0, total_packets: 100 })
    bench.stop()
  })

  test('an interval of a second unless told otherwise, and it changes while running', () => {
    const bench = drive(config())
    bench.send('in', [payload(1000), payload(1000)])
    bench.advance(999e6)
    expect(bench.metrics().tracker.packets_per_second).toBe(0)
    bench.advance(1e6)
    expect(bench.metrics().tracker).toMatchObject({ packets_per_second: 2, bits_per_second: 16_000 })
    bench.reconfigure(config({ interval_ms: 10 }))
    bench.send('in', payload(100))
    bench.advance(10e6)
    expect(bench.metrics().tracker.packets_per_second).toBe(100)
    bench.stop()
  })

  test('agrees with a paced source within 0.5 %', () => {
    const bench = drive(
      {
        source: { bandwidth_traffic_source: { output: 'in', bandwidth_mbit: 40, seed: 2 } },
        ...config({ interval_ms: 2000 }),
      },
      { record: false },
    )
    bench.advance(2e9)
    expect(Math.abs(bench.metrics().tracker.bits_per_second - 40e6)).toBeLessThan(0.005 * 40e6)
    bench.stop()
  })
})

describe('bandwidth_tracker', () => {
  const config = (fields = {}) => ({ tracker: { bandwidth_tracker: { input: 'in', output: 'out', ...fields } } })
  const rate = (bench: Bench) => bench.metrics().tracker.bytes_per_second

  test('the parts of the window that are over count, and each leaves it after window_ms', () => {
    const bench = drive(config({ window_ms: 400, buckets: 4 }))
    const shown: number[] = []
    for (const bytes of [100, 200, 0, 400, 0, 0, 0, 0, 0]) {
      if (bytes > 0) bench.send('in', payload(bytes))
      bench.advance(99.9e6)
      shown.push(rate(bench))
      bench.advance(0.1e6)
    }
    expect(shown).toEqual([0, 100 / 0.1, 300 / 0.2, 300 / 0.3, 700 / 0.4, 600 / 0.4, 400 / 0.4, 400 / 0.4, 0])
    expect(bench.metrics().tracker.total_bytes).toBe(700)
    expect(bench.received('out')).toHaveLength(3)
    bench.stop()
  })

  test('one second in ten parts unless told otherwise; after a long silence nothing is left', () => {
    const bench = drive(config())
    for (let i = 0; i < 3000; i++) {
      bench.send('in', payload(50))
      bench.advance(1e6)
      if (i >= 100) expect(rate(bench)).toBeCloseTo(50_000, 6)
    }
    bench.advance(1.05e9)
    expect(rate(bench)).toBe(0)
    bench.advance(1e12)
    bench.send('in', payload(50))
    bench.advance(0.1e9)
    expect(rate(bench)).toBe(50)
    bench.stop()
  })

  test('a changed window begins anew', () => {
    const bench = drive(config({ window_ms: 1000, buckets: 1 }))
    bench.send('in', payload(1000))
    bench.advance(1e9)
    expect(rate(bench)).toBe(1000)
    bench.reconfigure(config({ window_ms: 100, buckets: 1 }))
    expect(rate(bench)).toBe(0)
    bench.send('in', payload(1000))
    bench.advance(0.1e9)
    expect(rate(bench)).toBe(10_000)
    bench.stop()
  })

  test.each([
    [{ window_ms: -1 }, '/window_ms', '-1 is below the minimum of 1 ms (0 leaves it unset)'],
    [{ buckets: -1 }, '/buckets', '-1 is below the minimum of 1 (0 leaves it unset)'],
    [{ buckets: 4097 }, '/buckets', '4097 is above the maximum of 4096 (0 leaves it unset)'],
  ])('%j is refused', (fields, pointer, message) => {
    const problem = { pointer: `/engine_config/pipeline/tracker/bandwidth_tracker${pointer}`, message }
    expect(refusal(config(fields))).toEqual(problem)
  })
})

describe('observer', () => {
  test('sizes, rate and gaps', () => {
    const bench = drive({ eye: { observer: { input: 'in', output: 'out' } } })
    for (let i = 0; i < 100; i++) {
      bench.send('in', [payload(100), payload(100), payload(1000), payload(500)])
      bench.advance(10e6)
    }
    const { eye } = bench.metrics()
    expect(eye).toMatchObject({
      packet_size_count: 400,
      packet_size_min: 100,
      packet_size_max: 1000,
      packet_size_mean: 425,
      gap_count: 399,
      gap_min: 0,
      gap_max: 10e6,
      packets_per_second: 400,
      bits_per_second: 400 * 425 * 8,
    })
    expect(Math.abs(eye.packet_size_p50 - 100)).toBeLessThan(4)
    expect(Math.abs(eye.packet_size_p99 - 1000)).toBeLessThan(33)
    expect(eye.gap_p50).toBe(0)
    expect(Math.abs(eye.gap_p90 - 10e6)).toBeLessThan(10e6 / 32)
    expect(eye.gap_mean).toBeCloseTo((99 * 10e6) / 399, 3)
    expect(bench.received('out')).toHaveLength(400)
    bench.advance(1e9)
    expect(bench.metrics().eye.packets_per_second).toBe(0)
    bench.stop()
  })

  test('how long the run has had each packet, whatever it waited for', () => {
    const bench = drive({
      link: {
        bandwidth_limit_constant: { bandwidth_limit_mbit: 1, flows: [{ input: 'in', output: 'sent' }] },
      },
      delay: { delay_constant: { delay: 30, flows: [{ input: 'sent', output: 'late' }] } },
      eye: { observer: { input: 'late', output: 'out' } },
    })
    expect(bench.metrics().eye.residence_count).toBe(0)
    // 1,000 bytes are 8 ms: the three wait for one another, and the fourth for nothing.
    bench.advance(1e6)
    bench.send('in', [payload(1000), payload(1000), payload(1000)])
    bench.advance(1e9)
    bench.send('in', [payload(1000)])
    bench.advance(1e9)
    expect(bench.metrics().eye).toMatchObject({
      residence_count: 4,
      residence_min: 38e6,
      residence_max: 54e6,
      residence_mean: (38e6 + 46e6 + 54e6 + 38e6) / 4,
    })
    bench.stop()
  })
})
