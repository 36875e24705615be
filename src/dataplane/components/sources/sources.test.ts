/** Traffic sources: rate, sizes, counts, ends and determinism on the virtual clock; the probe's layout. */
import { describe, expect, test } from 'vitest'
import { drive, Refused } from '../../../../test/harness/component.ts'
import { crc32c } from '../../codes/crc32c.ts'

const SECOND = 1e9

function source(key: string, config: Record<string, unknown>, seed = 1) {
  return drive({ source: { [key]: { output: 'out', ...config } } }, { seed })
}

const sizes = (packets: readonly { bytes: Uint8Array }[]) => packets.map(({ bytes }) => bytes.length)

describe('probe', () => {
  test('is laid out as docs/wire-formats.md says', () => {
    const bench = source('uniform_traffic_source', { interval: 1500, total_packets: 3, min_packet_size: 200, seed: 5 })
    bench.advance(10 * SECOND)
    const out = bench.take('out')
    const ids = new Set<number>()
    out.forEach(({ bytes }, i) => {
      const view = new DataView(bytes.buffer)
      expect(view.getUint32(0)).toBe(0x504e534b)
      ids.add(view.getUint32(4))
      expect(view.getBigUint64(8)).toBe(BigInt(i))
      expect([view.getUint32(16), view.getUint32(20)]).toEqual(
        [
          [0, 0],
          [1, 500_000_000],
          [3, 0],
        ][i],
      )
      expect(view.getUint32(24)).toBe(200)
      const crc = view.getUint32(28)
      view.setUint32(28, 0)
      expect(crc32c(bytes, 0, 200)).toBe(crc)
    })
    expect(ids.size).toBe(1)
    // The payload of packet 1 starts 16 bytes further in the pattern than that of packet 0.
    expect(out[1].bytes.subarray(32, 184)).toEqual(out[0].bytes.subarray(48, 200))
    bench.stop()
  })
})

describe('uniform_traffic_source', () => {
  test('sends one packet every interval, then finishes and says so', () => {
    const bench = source('uniform_traffic_source', { interval: 20, total_packets: 5 })
    bench.advance(SECOND)
    expect(bench.received('out').map(({ time }) => time / 1e6)).toEqual([0, 20, 40, 60, 80])
    expect(bench.metrics().source).toMatchObject({ generated_packets: 5, finished: 1 })
    expect(bench.log.filter(({ message }) => message.startsWith('finished: 5 packets'))).toHaveLength(1)
    expect(bench.packets.held).toBe(0)
    bench.stop()
  })

  test('total_packets 0 has no end; interval 0 sends a batch a breath', () => {
    const slow = source('uniform_traffic_source', { interval: 1 })
    slow.advance(5 * SECOND)
    expect(slow.received('out').length).toBe(5001)
    expect(slow.metrics().source.finished).toBe(0)
    slow.stop()
    const flood = source('uniform_traffic_source', { total_packets: 1000, min_packet_size: 64, max_packet_size: 64 })
    flood.advance(0)
    expect(flood.received('out').length).toBe(256)
    flood.advance(SECOND)
    expect(flood.received('out').length).toBe(1000)
    expect(flood.metrics().source.finished).toBe(1)
    flood.stop()
  })

  test.each([
    [{}, 64, 1400],
    [{ min_packet_size: 1000 }, 1000, 1000],
    [{ max_packet_size: 100 }, 100, 100],
    [{ min_packet_size: 2000 }, 2000, 2000],
    [{ min_packet_size: 32, max_packet_size: 33 }, 32, 33],
  ])('sizes of %j are %i to %i', (fields, smallest, largest) => {
    const bench = source('uniform_traffic_source', { interval: 1, total_packets: 20_000, ...fields })
    bench.advance(20 * SECOND)
    const got = sizes(bench.received('out'))
    expect(Math.min(...got)).toBe(smallest)
    expect(Math.max(...got)).toBe(largest)
    const mean = got.reduce((sum, size) => sum + size, 0) / got.length
    // Standard error of the mean of a uniform distribution, 3.3 of them: 99.9 %.
    const error = Math.sqrt(((largest - smallest + 1) ** 2 - 1) / 12 / got.length)
    expect(Math.abs(mean - (smallest + largest) / 2)).toBeLessThanOrEqual(3.3 * error)
    bench.stop()
  })

  test.each([
    [{ min_packet_size: 31 }, '/min_packet_size'],
    [{ max_packet_size: 70_000 }, '/max_packet_size'],
    [{ min_packet_size: 200, max_packet_size: 100 }, '/min_packet_size'],
    [{ interval: -1 }, '/interval'],
  ])('refuses %j', (fields, pointer) => {
    try {
      source('uniform_traffic_source', fields)
      expect.unreachable()
    } catch (error) {
      expect(error).toBeInstanceOf(Refused)
      expect((error as Refused).problems.map((problem) => problem.pointer)).toEqual([
        `/engine_config/pipeline/source/uniform_traffic_source${pointer}`,
      ])
    }
  })

  test('same seed, same packets; another seed, others', () => {
    const run = (seed: number) => {
      const bench = source('uniform_traffic_source', { interval: 1, total_packets: 200, seed })
      bench.advance(SECOND)
      return bench.take('out').map(({ bytes, time }) => [time, Buffer.from(bytes).toString('base64')])
    }
    expect(run(3)).toEqual(run(3))
    expect(run(3)).not.toEqual(run(4))
  })
})

describe('paced sources', () => {
  test.each([
    [0.05, 1400, 1],
    [3.7, 1400, 1],
    [97.3, 512, 7],
    [400, 64, 256],
  ])('throughput_traffic_source at %d Mbit/s, %i bytes in groups of %i, within half a percent', (mbit, size, group) => {
    const bench = drive(
      {
        source: {
          throughput_traffic_source: {
            output: 'out',
            throughput_mbit: mbit,
            payload_size: size,
            batch_size: group,
            duration_ms: 2000,
          },
        },
      },
      { record: false },
    )
    bench.advance(5 * SECOND)
    const { output_bytes, output_packets, finished } = bench.metrics().source
    expect(output_bytes).toBe(output_packets * size)
    expect(finished).toBe(1)
    const asked = (mbit * 1e6 * 2) / 8
    expect(Math.abs(output_bytes - asked)).toBeLessThanOrEqual(Math.max(0.005 * asked, size))
    bench.stop()
  })

  test('groups leave back to back, evenly', () => {
    const bench = source('throughput_traffic_source', { throughput_mbit: 8, payload_size: 1000, batch_size: 4 })
    bench.advance(20e6)
    const times = bench.received('out').map(({ time }) => time / 1e6)
    expect(times).toEqual([0, 4, 8, 12, 16, 20].flatMap((time) => [time, time, time, time]))
    bench.stop()
  })

  test.each([
    [1, 1250, 100, 10],
    [10, 1000, 1000, 1250],
    [10, 1500, 10, 9],
  ])(
    'the last group is cut to the duration: %d Mbit/s of %i bytes for %i ms are %i packets',
    (mbit, size, ms, count) => {
      for (const group of [1, 8, 256]) {
        const fields = { throughput_mbit: mbit, payload_size: size, duration_ms: ms, batch_size: group }
        const bench = source('throughput_traffic_source', fields)
        bench.advance(5 * SECOND)
        expect(bench.metrics().source).toMatchObject({ generated_packets: count, finished: 1 })
        expect(bench.log.at(-1)?.message).toContain(`in ${(ms / 1000).toFixed(3)} s`)
        bench.stop()
      }
    },
  )

  test('bandwidth_traffic_source: bytes on average, each packet followed by its own time', () => {
    const bench = source('bandwidth_traffic_source', { bandwidth_mbit: 20, duration_ms: 4000, seed: 9 })
    bench.advance(10 * SECOND)
    const packets = bench.received('out')
    const bytes = packets.reduce((sum, packet) => sum + packet.bytes.length, 0)
    expect(Math.abs(bytes * 8 - 80e6)).toBeLessThan(0.005 * 80e6)
    for (let i = 1; i < 500; i++) {
      expect(packets[i].time - packets[i - 1].time).toBeCloseTo(packets[i - 1].bytes.length * 400, 3)
    }
    expect(bench.metrics().source.finished).toBe(1)
    bench.stop()
  })

  test('the rate changes while running', () => {
    const bench = source('throughput_traffic_source', { throughput_mbit: 8, payload_size: 1000 })
    bench.advance(99.5e6)
    expect(bench.take('out')).toHaveLength(100)
    bench.reconfigure({
      source: { throughput_traffic_source: { output: 'out', throughput_mbit: 80, payload_size: 1000 } },
    })
    bench.advance(100e6)
    expect(bench.take('out')).toHaveLength(1001)
    bench.stop()
  })

  test('a change counts from the last packet, and neither bursts nor waits for what the old pace had', () => {
    const bench = source('uniform_traffic_source', { interval: 4_000_000 })
    const change = (fields: Record<string, unknown>) =>
      bench.reconfigure({ source: { uniform_traffic_source: { output: 'out', ...fields } } })
    const times = () => bench.take('out').map(({ time }) => time / 1e6)
    bench.advance(SECOND)
    expect(times()).toEqual([0])
    change({ interval: 1600 })
    bench.advance(SECOND)
    expect(times()).toEqual([1600])
    change({ interval: 100 })
    bench.advance(0.25 * SECOND)
    expect(times()).toEqual([2000, 2100, 2200])
    change({ interval: 0, min_packet_size: 64, max_packet_size: 64 })
    expect(bench.take('out')).toHaveLength(256)
    change({ interval: 10 })
    bench.advance(25e6)
    expect(times()).toEqual([2260, 2270])
    change({ interval: 10, total_packets: 5 })
    bench.advance(SECOND)
    expect(times()).toEqual([])
    expect(bench.metrics().source.finished).toBe(1)
    bench.stop()
  })

  test('a duration that is over by a change ends the flow then', () => {
    const fields = { throughput_mbit: 8, payload_size: 1000 }
    const bench = source('throughput_traffic_source', fields)
    bench.advance(50.5e6)
    bench.reconfigure({ source: { throughput_traffic_source: { output: 'out', ...fields, duration_ms: 20 } } })
    bench.advance(SECOND)
    expect(bench.take('out')).toHaveLength(51)
    expect(bench.metrics().source.finished).toBe(1)
    bench.stop()
  })

  test('without free slots nothing is made, nothing is lost, and it goes on when there are some', () => {
    const bench = source('uniform_traffic_source', { interval: 1 })
    const taken: number[] = []
    while (bench.packets.available > 0) taken.push(bench.packets.allocate())
    bench.advance(10e6)
    expect(bench.received('out')).toHaveLength(0)
    expect(bench.metrics().source).toMatchObject({ generated_packets: 0, starved_packets: 11 })
    for (const packet of taken) bench.packets.release(packet)
    bench.advance(10e6)
    const out = bench.received('out')
    expect(out).toHaveLength(10)
    expect(new DataView(out[0].bytes.buffer).getUint32(12)).toBe(0)
    bench.stop()
  })
})
