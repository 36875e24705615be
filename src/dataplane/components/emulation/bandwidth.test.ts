/** bandwidth_limit_constant: rate, spacing, queue bounds, live changes and notifications on the virtual clock. */
import { describe, expect, test } from 'vitest'
import { drive, payload, tagOf } from '../../../../test/harness/component.ts'

const limit = (fields: Record<string, unknown>, flows: unknown = [{ input: 'in', output: 'out' }]) => ({
  link: { bandwidth_limit_constant: { flows, ...fields } },
})
const burst = (count: number, bytes = 1000) => Array.from({ length: count }, (_, i) => payload(bytes, i))

describe('bandwidth_limit_constant', () => {
  test('a chain of its own flows: what has crossed waits once more, one packet on the link at a time', () => {
    const bench = drive(
      limit({ bandwidth_limit_mbit: 8 }, [
        { input: 'in', output: 'between' },
        { input: 'between', output: 'out' },
      ]),
    )
    // A millisecond each; 300, so that they come back in the middle of a batch when the clock leaps.
    bench.send('in', burst(300))
    bench.advance(150e6)
    expect(bench.metrics().link.flows_0_output_packets + bench.metrics().link.flows_1_output_packets).toBe(150)
    bench.advance(1e9)
    const out = bench.take('out')
    expect(out.map(({ bytes }) => tagOf(bytes))).toEqual(Array.from({ length: 300 }, (_, n) => n))
    expect(out.map(({ time }) => Math.round(time / 1e6))).toEqual(Array.from({ length: 300 }, (_, n) => 301 + n))
    bench.stop()
  })

  test('a chain of its own flows under a late clock: the link carries on, a packet a millisecond', () => {
    const bench = drive(
      limit({ bandwidth_limit_mbit: 8 }, [
        { input: 'in', output: 'between' },
        { input: 'between', output: 'out' },
      ]),
    )
    bench.send('in', burst(300))
    // As a loop that was held up does it: the time leaps, then timers fire.
    bench.simulation.clock.advanceTo(300e6)
    bench.advance(0)
    expect(bench.received('out')).toEqual([])
    bench.advance(299e6)
    expect(bench.received('out')).toHaveLength(299)
    bench.advance(1e9)
    expect(bench.received('out')).toHaveLength(300)
    bench.stop()
  })

  test.each([
    [0.5, 1000, 200],
    [10, 1200, 300],
    [950, 64, 300],
  ])('%d Mbit/s: overloaded with %i-byte packets it carries its rate, one packet at a time', (mbit, bytes, queue) => {
    const bench = drive({
      source: {
        throughput_traffic_source: { output: 'in', throughput_mbit: mbit * 2, payload_size: bytes, batch_size: 10 },
      },
      ...limit({ bandwidth_limit_mbit: mbit, max_queue_size: queue }),
    })
    const packetTime = (bytes * 8000) / mbit
    bench.advance(2000 * packetTime)
    const out = bench.received('out')
    const carried = (out.length - 1) * bytes * 8
    const rate = (carried / (out[out.length - 1].time - out[0].time)) * 1000
    expect(Math.abs(rate - mbit)).toBeLessThan(0.005 * mbit)
    expect(out.length).toBeGreaterThan(1980)
    for (let i = 1; i < out.length; i++) {
      expect(out[i].time - out[i - 1].time).toBeGreaterThan(0.999999 * packetTime)
    }
    expect(bench.metrics().link.queue_full_packets).toBeGreaterThan(0)
    bench.stop()
  })

  test('mixed sizes below the limit pass, each after its own time', () => {
    const bench = drive(limit({ bandwidth_limit_mbit: 8 }))
    for (const bytes of [100, 1500, 32]) {
      bench.send('in', payload(bytes, bytes))
      bench.advance(10e6)
    }
    expect(bench.received('out').map(({ time, arrival }) => time - arrival)).toEqual([100e3, 1500e3, 32e3])
    bench.stop()
  })

  test.each([
    [0, 1],
    [1, 2],
    [7, 8],
    [undefined, 50],
  ])('max_queue_size %s: of 50 at once %i pass', (size, pass) => {
    const bench = drive(limit({ bandwidth_limit_mbit: 8, ...(size !== undefined && { max_queue_size: size }) }))
    bench.send('in', burst(50))
    expect(bench.metrics().link).toMatchObject({ queued_packets: pass, queue_full_packets: 50 - pass })
    bench.advance(1e9)
    expect(bench.received('out').map(({ bytes }) => tagOf(bytes))).toEqual(Array.from({ length: pass }, (_, i) => i))
    expect(bench.received('out').map(({ time }) => time / 1e6)).toEqual(Array.from({ length: pass }, (_, i) => i + 1))
    bench.stop()
  })

  test('without a queue a packet that comes just as the one before has crossed is taken', () => {
    const bench = drive(limit({ bandwidth_limit_mbit: 8, max_queue_size: 0 }))
    for (let i = 0; i < 10; i++) {
      bench.send('in', payload(1000, i))
      bench.advance(1e6)
    }
    // Sockets and sources are asked before timers fire.
    bench.send('in', payload(1000, 10))
    bench.simulation.clock.advanceTo(bench.now + 1e6)
    bench.send('in', payload(1000, 11))
    bench.advance(1e6)
    expect(bench.received('out')).toHaveLength(12)
    expect(bench.metrics().link.queue_full_packets).toBe(0)
    bench.stop()
  })

  test('a live change holds for what is left of the packet on the link', () => {
    const bench = drive(limit({ bandwidth_limit_mbit: 8 }))
    bench.send('in', burst(3))
    bench.advance(500e3)
    bench.reconfigure(limit({ bandwidth_limit_mbit: 80 }))
    bench.advance(1e9)
    expect(bench.received('out').map(({ time }) => time / 1e3)).toEqual([550, 650, 750])
    bench.reconfigure(limit({ bandwidth_limit_mbit: 8, max_queue_size: 0 }))
    bench.send('in', burst(3))
    expect(bench.metrics().link.queue_full_packets).toBe(2)
    bench.stop()
  })

  test('what has not crossed when the run ends is counted', () => {
    const bench = drive(limit({ bandwidth_limit_mbit: 8, max_queue_size: 10 }))
    bench.send('in', burst(20))
    bench.advance(3e6)
    bench.stop()
    const { link } = bench.metrics()
    expect(link).toMatchObject({ queued_packets: 0, queue_full_packets: 9, held_at_end_packets: 8 })
    expect(link.flows_0_output_packets).toBe(3)
  })

  test('flows share the link', () => {
    const flows = [
      { input: 'a', output: 'x' },
      { input: 'b', output: 'y' },
    ]
    const bench = drive(limit({ bandwidth_limit_mbit: 8, max_queue_size: 3 }, flows))
    bench.send('a', burst(2))
    bench.send('b', burst(3))
    bench.advance(1e9)
    expect(bench.received('x').map(({ time }) => time / 1e6)).toEqual([1, 2])
    expect(bench.received('y').map(({ time }) => time / 1e6)).toEqual([3, 4])
    bench.stop()
  })

  test('notifications keep their place in the queue', () => {
    const bench = drive(limit({ bandwidth_limit_mbit: 8 }))
    bench.notify('in', 'RESET')
    expect(bench.notifications('out')).toEqual(['RESET'])
    bench.send('in', burst(2))
    bench.notify('in', 'FLUSH')
    bench.send('in', burst(1))
    bench.advance(1999e3)
    expect(bench.notifications('out')).toEqual(['RESET'])
    bench.advance(1e3)
    expect(bench.received('out')).toHaveLength(2)
    expect(bench.notifications('out')).toEqual(['RESET', 'FLUSH'])
    bench.advance(1e6)
    expect(bench.received('out')).toHaveLength(3)
    bench.stop()
  })

  test('max_queue_size unset: a quarter of the slots wait, and the slow link starves nobody of them', () => {
    const bench = drive(
      {
        flood: { uniform_traffic_source: { output: 'in', min_packet_size: 1000 } },
        ...limit({ bandwidth_limit_mbit: 800 }),
        sink: { traffic_sink: { input: 'out', latency_budget: 10_000 } },
        aside: { uniform_traffic_source: { output: 'other', min_packet_size: 1000, interval: 1 } },
        end: { traffic_sink: { input: 'other' } },
      },
      { record: false },
    )
    bench.advance(20e6)
    const { flood, link, sink, aside, end } = bench.metrics()
    // Those that wait, and the one on the link.
    expect(link.queued_packets).toBe(bench.packets.slots / 4 + 1)
    expect(link.queue_full_packets).toBe(flood.generated_packets - link.queued_packets - sink.packets)
    expect(sink.packets).toBe(2000)
    expect(aside.starved_packets).toBe(0)
    expect(end.packets).toBe(21)
    bench.stop()
  })

  test('a source faster than a queue of all slots fills them, waits and loses nothing', () => {
    const bench = drive(
      {
        source: { uniform_traffic_source: { output: 'in', min_packet_size: 1000 } },
        ...limit({ bandwidth_limit_mbit: 800, max_queue_size: 4_294_967_295 }),
        sink: { traffic_sink: { input: 'out', latency_budget: 10_000 } },
      },
      { record: false },
    )
    bench.advance(200e6)
    const { link, sink } = bench.metrics()
    // One slot is the source's pattern, one was given back after the source looked last.
    expect(link.queued_packets).toBe(bench.packets.slots - 2)
    expect(sink.packets).toBe(20_000)
    expect(sink.lost_packets).toBe(0)
    bench.stop()
  })

  test('a live change that leaves max_queue_size out gives the link its quarter again', () => {
    const bench = drive(limit({ bandwidth_limit_mbit: 8, max_queue_size: 0 }), { record: false })
    bench.reconfigure(limit({ bandwidth_limit_mbit: 8 }))
    for (let i = 0; i < 40; i++) bench.send('in', burst(1000, 32))
    expect(bench.metrics().link.queued_packets).toBe(bench.packets.slots / 4 + 1)
    bench.stop()
  })
})
