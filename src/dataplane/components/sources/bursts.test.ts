/** Sources that send in bursts: when, how many, of which sizes, and how they end, on the virtual clock. */
import { describe, expect, test } from 'vitest'
import { drive, Refused } from '../../../../test/harness/component.ts'

const MS = 1e6
const SECOND = 1e9

function source(key: string, config: Record<string, unknown>) {
  return drive({ source: { [key]: { output: 'out', ...config } } })
}

/** Packets that left at one time: when, and their sizes. */
function burstsOf(packets: readonly { time: number; bytes: Uint8Array }[]): { time: number; sizes: number[] }[] {
  const bursts: { time: number; sizes: number[] }[] = []
  for (const { time, bytes } of packets) {
    const last = bursts.at(-1)
    if (last?.time === time) last.sizes.push(bytes.length)
    else bursts.push({ time, sizes: [bytes.length] })
  }
  return bursts
}

/** Pearson's statistic of how evenly `values` fall on the whole numbers from `low` to `high`; each of them must occur. */
function chiSquare(values: readonly number[], low: number, high: number): number {
  const counts = Array.from({ length: high - low + 1 }, () => 0)
  for (const value of values) {
    if (value < low || value > high) throw new Error(`${value} is not within ${low}..${high}`)
    counts[value - low]++
  }
  const expected = values.length / counts.length
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
}

function pointersOf(key: string, config: Record<string, unknown>): string[] {
  try {
    source(key, config).stop()
    return []
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    return error.problems.map(({ pointer }) => pointer.replace(`/engine_config/pipeline/source/${key}`, ''))
  }
}

describe('sporadic_traffic_source', () => {
  const config = { min_packets: 2, max_packets: 5, min_idle: 10, max_idle: 13, seed: 4 }

  test('lengths of bursts and silences are uniform, both ends included', () => {
    const bench = source('sporadic_traffic_source', config)
    bench.advance(60 * SECOND)
    const bursts = burstsOf(bench.take('out')).slice(0, 4000)
    expect(bursts).toHaveLength(4000)
    // 99.9 % of the chi-squared distribution with 3 degrees of freedom: 16.27.
    expect(
      chiSquare(
        bursts.map(({ sizes }) => sizes.length),
        2,
        5,
      ),
    ).toBeLessThan(16.27)
    const idles = bursts.slice(1).map(({ time }, i) => (time - bursts[i].time) / MS)
    expect(chiSquare(idles, 10, 13)).toBeLessThan(16.27)
    bench.stop()
  })

  test('one length and one silence are kept exactly; total_packets cuts the last burst', () => {
    const bench = source('sporadic_traffic_source', {
      min_packets: 600,
      max_packets: 600,
      min_idle: 7,
      max_idle: 7,
      total_packets: 1900,
    })
    bench.advance(SECOND)
    const starts = [...new Set(bench.received('out').map(({ time }) => time))]
    // What is more than two batches goes on in the next busy breath, which the virtual clock takes 0.1 ms later; the silence begins then.
    expect(starts.map((time) => time / MS)).toEqual([0, 0.1, 7.1, 7.2, 14.2, 14.3, 21.3])
    expect(bench.received('out')).toHaveLength(1900)
    expect(bench.metrics().source).toMatchObject({ generated_packets: 1900, finished: 1 })
    expect(bench.over).toBe(true)
    bench.stop()
  })

  test('without silence it sends as fast as the graph takes the packets, and time goes on', () => {
    const bench = source('sporadic_traffic_source', {
      min_packets: 1,
      max_packets: 9,
      min_idle: 0,
      max_idle: 0,
      total_packets: 10_000,
    })
    bench.advance(SECOND)
    expect(bench.received('out')).toHaveLength(10_000)
    expect(bench.over).toBe(true)
    bench.stop()
  })

  test('a silence that is on is bent to changed bounds', () => {
    const bench = source('sporadic_traffic_source', { ...config, min_idle: 80_000_000, max_idle: 80_000_000 })
    bench.advance(SECOND)
    bench.take('out')
    bench.reconfigure({
      source: { sporadic_traffic_source: { output: 'out', ...config, min_idle: 1500, max_idle: 1500 } },
    })
    bench.advance(3.6 * SECOND)
    expect(burstsOf(bench.received('out')).map(({ time }) => time / SECOND)).toEqual([1.5, 3, 4.5])
    bench.stop()
  })

  test.each([
    [{ min_packets: 6 }, ['/min_packets']],
    [{ min_idle: 14 }, ['/min_idle']],
    [{ min_packets: 0 }, ['/min_packets']],
    [{ min_packet_size: 90, max_packet_size: 80, max_idle: 1 }, ['/min_packet_size', '/min_idle']],
    [{ max_idle: 4294967296 }, ['/max_idle']],
    [{ max_idle: 4294967295, max_packets: 4294967295 }, []],
  ])('with %j the problems are at %j', (fields, pointers) => {
    expect(pointersOf('sporadic_traffic_source', { ...config, ...fields })).toEqual(pointers)
  })
})

test('sizes that the slots of the run hold are taken over by the next packet, larger ones need another run', () => {
  const config = { output: 'out', fps: 100, p_frames: 0, seed: 1, min_packet_size: 60, max_packet_size: 70 }
  const change = (max_packet_size: number) => ({ source: { video_traffic_source: { ...config, max_packet_size } } })
  const bench = drive({ source: { video_traffic_source: config } })
  bench.advance(SECOND)
  bench.take('out')
  bench.reconfigure(change(1500))
  bench.advance(SECOND)
  const largest = Math.max(...bench.take('out').map(({ bytes }) => bytes.length))
  expect(largest).toBeGreaterThan(1400)
  expect(() => bench.reconfigure(change(1501))).toThrow(/max_packet_size: a change needs another run/)
  bench.stop()
})

describe('video_traffic_source', () => {
  test('frame n is due n / fps after the first, after an hour as at the beginning', () => {
    const bench = drive({ source: { video_traffic_source: { output: 'out', fps: 30, p_frames: 29, seed: 1 } } })
    bench.advance(2 * SECOND)
    const times = burstsOf(bench.take('out')).map(({ time }) => time)
    expect(times.slice(0, 61)).toEqual(Array.from({ length: 61 }, (_, n) => (n * SECOND) / 30))
    bench.advance(3598 * SECOND)
    bench.take('out')
    bench.advance(SECOND / 30)
    expect(burstsOf(bench.take('out')).map(({ time }) => time)).toEqual([(108_001 * SECOND) / 30])
    bench.stop()
  })

  test('one I frame of 8 to 16 packets, then p_frames P frames of 1 to 4, each uniform', () => {
    const bench = source('video_traffic_source', { fps: 1000, p_frames: 3, seed: 2, max_packet_size: 64 })
    bench.advance(16 * SECOND)
    const lengths = burstsOf(bench.take('out')).map(({ sizes }) => sizes.length)
    const iFrames = lengths.filter((_, n) => n % 4 === 0)
    const pFrames = lengths.filter((_, n) => n % 4 !== 0)
    // 99.9 % of the chi-squared distribution with 8 and with 3 degrees of freedom.
    expect(chiSquare(iFrames, 8, 16)).toBeLessThan(26.12)
    expect(chiSquare(pFrames, 1, 4)).toBeLessThan(16.27)
    bench.stop()
  })

  test('sizes are uniform within their bounds, both ends included', () => {
    const bench = source('video_traffic_source', {
      fps: 1000,
      p_frames: 0,
      seed: 3,
      min_packet_size: 100,
      max_packet_size: 109,
    })
    bench.advance(SECOND)
    const sizes = bench.take('out').map(({ bytes }) => bytes.length)
    // 9 degrees of freedom.
    expect(chiSquare(sizes, 100, 109)).toBeLessThan(27.88)
    bench.stop()
  })

  test.each([1, 2, 3, 4])(
    'a run that was held up sends a batch of what it has missed, then keeps the rate, seed %i',
    (seed) => {
      const bench = drive({ source: { video_traffic_source: { output: 'out', fps: 1000, p_frames: 0, seed } } })
      bench.advance(10.5 * MS)
      bench.take('out')
      // Nothing of the run has its turn meanwhile.
      bench.simulation.clock.advanceTo(510.5 * MS)
      bench.advance(0)
      const missed = bench.take('out').length
      expect(missed).toBeGreaterThan(256)
      expect(missed).toBeLessThan(256 + 2 * 16)
      const { skipped_ms } = bench.metrics().source
      expect(skipped_ms).toBeGreaterThan(460)
      expect(skipped_ms).toBeLessThan(490)
      bench.advance(100 * MS)
      const times = burstsOf(bench.take('out')).map(({ time }) => time / MS)
      expect(times).toEqual(Array.from({ length: 100 }, (_, n) => 511.5 + n))
      expect(bench.metrics().source.skipped_ms).toBe(skipped_ms)
      bench.stop()
    },
  )

  test('total_packets cuts a frame', () => {
    const bench = source('video_traffic_source', { fps: 25, p_frames: 0, total_packets: 17, seed: 1 })
    bench.advance(SECOND)
    const bursts = burstsOf(bench.received('out'))
    expect(bench.received('out')).toHaveLength(17)
    expect(bursts.at(-1)!.sizes.length).toBeLessThan(8)
    expect(bench.metrics().source).toMatchObject({ generated_packets: 17, finished: 1 })
    expect(bench.over).toBe(true)
    bench.stop()
  })

  test('another frame rate holds from the last frame on, fewer P frames at once', () => {
    const config = { output: 'out', fps: 10, p_frames: 100, seed: 1 }
    const bench = drive({ source: { video_traffic_source: config } })
    bench.advance(0.25 * SECOND)
    bench.take('out')
    bench.reconfigure({ source: { video_traffic_source: { ...config, fps: 4, p_frames: 1 } } })
    bench.advance(1 * SECOND)
    const bursts = burstsOf(bench.take('out'))
    expect(bursts.map(({ time }) => time / SECOND)).toEqual([0.45, 0.7, 0.95, 1.2])
    expect(bursts.map(({ sizes }) => sizes.length >= 8)).toEqual([false, true, false, true])
    bench.stop()
  })

  test('a higher frame rate makes up for no frames that there would have been by it', () => {
    const source = (fps: number) => ({ source: { video_traffic_source: { output: 'out', fps, p_frames: 0, seed: 1 } } })
    const bench = drive(source(1))
    bench.advance(0.96875 * SECOND)
    bench.take('out')
    bench.reconfigure(source(1000))
    bench.advance(0.0025 * SECOND)
    const bursts = burstsOf(bench.take('out'))
    expect(bursts.map(({ time }) => time / SECOND)).toEqual([0.96875, 0.96975, 0.97075])
    expect(bench.metrics().source.skipped_ms).toBe(0)
    bench.stop()
  })

  test.each([
    [{ fps: 0 }, ['/fps']],
    [{ fps: 1001 }, ['/fps']],
    [{ p_frames: undefined }, ['/p_frames']],
    [{ min_packet_size: 31 }, ['/min_packet_size']],
  ])('with %j the problems are at %j', (fields, pointers) => {
    expect(pointersOf('video_traffic_source', { fps: 30, p_frames: 2, ...fields })).toEqual(pointers)
  })
})
