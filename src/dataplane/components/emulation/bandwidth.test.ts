/** Links of limited bandwidth: rate, spacing, queue bounds, phases, live changes and notifications on the virtual clock. */
import { describe, expect, test } from 'vitest'
import { type Bench, drive, payload, refusal, tagOf } from '../../../../test/harness/component.ts'

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

  test('flows share the link: under a late clock packets leave in their order too', () => {
    const flows = [
      { input: 'a', output: 'x' },
      { input: 'b', output: 'y' },
    ]
    const bench = drive({
      ...limit({ bandwidth_limit_mbit: 8 }, flows),
      join: { flow_combiner: { inputs: ['x', 'y'], output: 'out' } },
    })
    for (let n = 0; n < 6; n++) bench.send(n % 3 === 1 ? 'b' : 'a', payload(1000, n))
    bench.simulation.clock.advanceTo(10e6)
    bench.advance(0)
    expect(bench.received('out').map(({ bytes }) => tagOf(bytes))).toEqual([0, 1, 2, 3, 4, 5])
    bench.stop()
  })

  test('keeps no more than 16,384 notifications for later', () => {
    const bench = drive(limit({ bandwidth_limit_mbit: 8 }))
    bench.send('in', burst(1))
    for (let i = 0; i < 20_000; i++) bench.notify('in', 'FLUSH')
    bench.advance(2e6)
    expect(bench.notifications('out')).toHaveLength(16_384)
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

describe('bandwidth_constrictor', () => {
  const constrictor = (fields: Record<string, unknown>) => ({
    link: { bandwidth_constrictor: { input: 'in', output: 'out', ...fields } },
  })

  test.each([
    [0.001, 100],
    [3.7, 1200],
    [1_000_000, 9000],
  ])('%d Mbit/s: each %i-byte packet takes its time, one after the other', (mbit, bytes) => {
    const bench = drive(constrictor({ bandwidth_limit_mbit: mbit }), { mtu: 9216 })
    bench.send('in', burst(100, bytes))
    bench.advance(200 * ((bytes * 8000) / mbit))
    const out = bench.received('out')
    expect(out.map(({ bytes: packet }) => tagOf(packet))).toEqual(Array.from({ length: 100 }, (_, n) => n))
    const packetTime = (bytes * 8000) / mbit
    for (const [n, { time }] of out.entries()) {
      expect(Math.abs(time / ((n + 1) * packetTime) - 1)).toBeLessThan(1e-9)
    }
    bench.stop()
  })

  test.each([
    [0, 1],
    [7, 8],
    [undefined, 50],
    [2_147_483_647, 50],
  ])('max_queue_size %s: of 50 at once %i pass', (size, pass) => {
    const bench = drive(constrictor({ bandwidth_limit_mbit: 8, ...(size !== undefined && { max_queue_size: size }) }))
    bench.send('in', burst(50))
    expect(bench.metrics().link).toMatchObject({ queued_packets: pass, queue_full_packets: 50 - pass })
    bench.advance(1e9)
    expect(bench.received('out').map(({ time }) => time / 1e6)).toEqual(Array.from({ length: pass }, (_, i) => i + 1))
    bench.stop()
  })

  test('a live change: of the bandwidth for what is left on the link, a smaller queue drops the newest, notifications stay', () => {
    const bench = drive(constrictor({ bandwidth_limit_mbit: 8 }))
    bench.send('in', burst(4))
    bench.notify('in', 'FLUSH')
    bench.send('in', [payload(1000, 4), payload(1000, 5)])
    bench.notify('in', 'RESET')
    bench.advance(500e3)
    bench.reconfigure(constrictor({ bandwidth_limit_mbit: 80, max_queue_size: 2 }))
    expect(bench.metrics().link).toMatchObject({ queued_packets: 3, queue_full_packets: 3 })
    bench.send('in', payload(1000, 6))
    expect(bench.metrics().link).toMatchObject({ queued_packets: 3, queue_full_packets: 4 })
    bench.advance(1e9)
    expect(bench.received('out').map(({ bytes, time }) => [tagOf(bytes), time / 1e3])).toEqual([
      [0, 550],
      [1, 650],
      [2, 750],
    ])
    expect(bench.notifications('out')).toEqual(['FLUSH', 'RESET'])
    bench.stop()
  })

  test.each([
    [{ bandwidth_limit_mbit: 0 }, '/bandwidth_limit_mbit', '0 is below the minimum of 0.001 Mbit/s'],
    [{ max_queue_size: -1 }, '/max_queue_size', '-1 is below the minimum of 0 packets'],
  ])('%j is refused', (fields, pointer, message) => {
    expect(refusal(constrictor({ bandwidth_limit_mbit: 8, ...fields }))).toEqual({
      pointer: `/engine_config/pipeline/link/bandwidth_constrictor${pointer}`,
      message,
    })
  })
})

/** Times at which packets left, µs. */
const times = (bench: Bench) => bench.received('out').map(({ time }) => Math.round(time / 1e3))

describe.each([
  [
    'bandwidth_constrictor_sequencer',
    (mbit: number[], intervals: number[]) => ({
      link: {
        bandwidth_constrictor_sequencer: { input: 'in', output: 'out', bandwidth_limits_mbit: mbit, intervals },
      },
    }),
  ],
  [
    'bandwidth_limit_dynamic',
    (mbit: number[], intervals: number[]) => ({
      link: {
        bandwidth_limit_dynamic: {
          flows: [{ input: 'in', output: 'out' }],
          phases: intervals.map((duration, i) => ({ duration, bandwidth_limit_mbit: mbit[i] })),
        },
      },
    }),
  ],
])('%s', (_, config) => {
  // 8 Mbit/s: 1000 bytes take a millisecond; 2 Mbit/s: four; 1 Mbit/s: eight.
  test('what is on the link at a change crosses at both bandwidths, to the nanosecond', () => {
    const bench = drive(config([8, 2, 1], [2, 3, 4]))
    bench.send('in', burst(8))
    bench.advance(1e9)
    // 2 cross at 8 Mbit/s; by 5 ms three quarters of the third; by 9 ms 2 + 4 / 8 and a quarter of it are 3.25; 8 Mbit/s again.
    expect(times(bench)).toEqual([1000, 2000, 7000, 9750, 10_750, 14_000, 18_500, 19_500])
    bench.stop()
  })

  test('the same under a late clock, the packets at once', () => {
    const bench = drive(config([8, 2, 1], [2, 3, 4]))
    bench.send('in', burst(8))
    bench.simulation.clock.advanceTo(1.5e6)
    bench.advance(0)
    expect(bench.received('out')).toHaveLength(1)
    // Both the link's timer and that of the change are late.
    bench.simulation.clock.advanceTo(4e6)
    bench.advance(0)
    expect(bench.received('out')).toHaveLength(2)
    bench.advance(1e9)
    expect(times(bench).slice(2)).toEqual([7000, 9750, 10_750, 14_000, 18_500, 19_500])
    bench.stop()
  })

  test('a late clock between two changes: what crosses a change does so at both bandwidths', () => {
    const bench = drive(config([8, 2, 1], [2, 3, 4]))
    bench.advance(500e3)
    bench.send('in', burst(3))
    // The first was due at 1.5 ms; of the second half had crossed at 2 ms.
    bench.simulation.clock.advanceTo(3.9e6)
    bench.advance(0)
    expect(bench.received('out')).toHaveLength(1)
    bench.advance(1e9)
    expect(times(bench).slice(1)).toEqual([4000, 9250])
    bench.stop()
  })

  test('a clock that is late by several rounds: each phase has carried its share', () => {
    const bench = drive(config([8, 2], [1, 1]))
    bench.send('in', burst(20))
    bench.simulation.clock.advanceTo(10e6)
    bench.advance(0)
    // One packet and a quarter a round.
    expect(bench.received('out')).toHaveLength(6)
    bench.stop()
  })

  test('a packet that comes when a change is over but not seen yet crosses at the new bandwidth only', () => {
    const bench = drive(config([8, 2], [10, 10]))
    bench.advance(1e6)
    bench.simulation.clock.advanceTo(12e6)
    bench.send('in', payload(1000, 0))
    bench.advance(1e9)
    expect(bench.received('out').map(({ time }) => time)).toEqual([16e6])
    bench.stop()
  })

  test('phases count from the start of the run, and a packet at the very moment of a change meets the new one', () => {
    const bench = drive(config([8, 2], [10, 10]))
    bench.advance(10e6 * 2 * 1000 + 10e6 - 1)
    expect(bench.metrics().link.phase).toBe(0)
    bench.advance(1)
    bench.send('in', payload(1000, 0))
    expect(bench.metrics().link.phase).toBe(1)
    bench.advance(4e6)
    expect(bench.received('out').map(({ time, arrival }) => time - arrival)).toEqual([4e6])
    bench.stop()
  })

  test('changed lists begin at their first entry; the same ones go on', () => {
    const bench = drive(config([8, 2], [4, 4]))
    bench.advance(3e6)
    bench.reconfigure(config([8, 2], [4, 4]))
    bench.send('in', burst(3))
    bench.advance(2e6)
    // One has crossed, a quarter of the second.
    bench.reconfigure(config([1, 8], [2, 100]))
    bench.advance(1e9)
    expect(times(bench)).toEqual([4000, 7500, 8500])
    bench.stop()
  })

  test('the mean rate of an overloaded link is that of its phases', () => {
    const bench = drive(
      {
        source: { throughput_traffic_source: { output: 'in', throughput_mbit: 30, payload_size: 700, batch_size: 7 } },
        ...config([10, 4, 1], [17, 23, 60]),
        sink: { traffic_sink: { input: 'out', latency_budget: 1_000_000 } },
      },
      { record: false },
    )
    bench.advance(10e9)
    const mean = (10 * 17 + 4 * 23 + 1 * 60) / 100
    expect(Math.abs((bench.metrics().sink.bytes * 8) / 10 / 1e6 - mean)).toBeLessThan(0.001 * mean)
    bench.stop()
  })
})

describe('bandwidth_constrictor_sequencer', () => {
  const config = (fields: Record<string, unknown>) => ({
    link: {
      bandwidth_constrictor_sequencer: {
        input: 'in',
        output: 'out',
        bandwidth_limits_mbit: [8, 8],
        intervals: [10, 10],
        ...fields,
      },
    },
  })

  test('each interval has its queue, a smaller one drops the newest', () => {
    const bench = drive(config({ max_queue_sizes: [20, 3] }))
    bench.send('in', burst(30))
    expect(bench.metrics().link).toMatchObject({ queued_packets: 21, queue_full_packets: 9 })
    bench.advance(10e6)
    // Ten have crossed at the change; of the eleven, one is on the link and three wait.
    expect(bench.metrics().link).toMatchObject({ queued_packets: 4, queue_full_packets: 16 })
    bench.advance(9e6)
    expect(bench.received('out').map(({ bytes }) => tagOf(bytes))).toEqual(Array.from({ length: 14 }, (_, n) => n))
    bench.send('in', burst(30))
    expect(bench.metrics().link.queued_packets).toBe(4)
    bench.advance(1e6)
    bench.send('in', burst(30))
    expect(bench.metrics().link.queued_packets).toBe(21)
    bench.stop()
  })

  test('a packet at the very moment of a change meets the new queue', () => {
    const bench = drive(config({ max_queue_sizes: [0, 20] }))
    bench.advance(1e6)
    bench.simulation.clock.advanceTo(10e6)
    bench.send('in', burst(30))
    expect(bench.metrics().link).toMatchObject({ queued_packets: 21, queue_full_packets: 9 })
    bench.stop()
  })

  test('no sizes: a quarter of the slots of the run', () => {
    const bench = drive(config({}), { record: false })
    for (let i = 0; i < 40; i++) bench.send('in', burst(1000, 32))
    expect(bench.metrics().link.queued_packets).toBe(bench.packets.slots / 4 + 1)
    bench.stop()
  })

  test('without repeat the last values hold for good', () => {
    const bench = drive(config({ bandwidth_limits_mbit: [8, 2], max_queue_sizes: [20, 1], repeat: false }))
    bench.advance(1e9)
    bench.send('in', burst(5))
    bench.advance(1e9)
    expect(bench.received('out').map(({ time, arrival }) => time - arrival)).toEqual([4e6, 8e6])
    expect(bench.simulation.graph.timers.next).toBe(Number.POSITIVE_INFINITY)
    bench.stop()
  })

  test.each([
    [{ bandwidth_limits_mbit: [8] }, '/bandwidth_limits_mbit', '1 of them for 2 intervals: give one for each'],
    [{ max_queue_sizes: [1, 2, 3] }, '/max_queue_sizes', '3 of them for 2 intervals: give one for each'],
    [{ bandwidth_limits_mbit: [8, 0] }, '/bandwidth_limits_mbit/1', '0 is below the minimum of 0.001 Mbit/s'],
    [{ intervals: [0, 1] }, '/intervals/0', '0 is below the minimum of 1 ms'],
  ])('%j is refused', (fields, pointer, message) => {
    expect(refusal(config(fields))).toEqual({
      pointer: `/engine_config/pipeline/link/bandwidth_constrictor_sequencer${pointer}`,
      message,
    })
  })
})

describe('bandwidth_limit_dynamic', () => {
  const flows = [
    { input: 'in', output: 'between' },
    { input: 'between', output: 'out' },
  ]
  const phases = [
    { duration: 10, bandwidth_limit_mbit: 8 },
    { duration: 10, bandwidth_limit_mbit: 4 },
  ]

  test('a chain of its own flows crosses changes: one packet on the link at a time, none lost', () => {
    const bench = drive({ link: { bandwidth_limit_dynamic: { flows, phases } } })
    bench.send('in', burst(60))
    bench.simulation.clock.advanceTo(25e6)
    bench.advance(0)
    bench.advance(1e9)
    expect(bench.received('out').map(({ bytes }) => tagOf(bytes))).toEqual(Array.from({ length: 60 }, (_, n) => n))
    // 15 packets in 20 ms: 120 crossings in 160 ms.
    expect(bench.received('out').at(-1)?.time).toBe(160e6)
    bench.stop()
  })

  test('a chain of its own flows under a clock late by several phases: each packet crosses twice, in order, and the phase that holds has its bandwidth', () => {
    const slower = [8, 4, 2, 1].map((bandwidth_limit_mbit, i) => ({
      duration: i < 3 ? 3 : 1_000_000,
      bandwidth_limit_mbit,
    }))
    const bench = drive({ link: { bandwidth_limit_dynamic: { flows, phases: slower } } })
    bench.send('in', burst(20))
    // 3, 1.5 and 0.75 packets, and at 1 Mbit/s what is left of the sixth, three quarters, until 15 ms.
    bench.simulation.clock.advanceTo(14e6)
    bench.advance(0)
    expect(bench.metrics().link).toMatchObject({ flows_0_output_packets: 5, queued_packets: 20, phase: 3 })
    bench.advance(1e9)
    const out = bench.received('out')
    expect(out.map(({ bytes }) => tagOf(bytes))).toEqual(Array.from({ length: 20 }, (_, n) => n))
    // 8 ms each: of the 15 left of the first time over the link the first until 15 ms, then the 20 of the second time.
    expect(out.map(({ time }) => time / 1e6)).toEqual(Array.from({ length: 20 }, (_, n) => 15 + 14 * 8 + (n + 1) * 8))
    bench.stop()
  })

  test('a whole batch that comes in again under a late clock crosses at the bandwidth of then', () => {
    const late = [
      { duration: 10, bandwidth_limit_mbit: 64 },
      { duration: 1000, bandwidth_limit_mbit: 16 },
    ]
    const bench = drive({ link: { bandwidth_limit_dynamic: { flows, phases: late } } })
    bench.send('in', burst(256, 250))
    // All have crossed by 8 ms, and the link is free.
    bench.simulation.clock.advanceTo(12e6)
    bench.advance(0)
    bench.advance(1e9)
    expect(times(bench)).toEqual(Array.from({ length: 256 }, (_, n) => 12_000 + 125 * (n + 1)))
    bench.stop()
  })

  test('a changed queue leaves the phases where they are', () => {
    const config = (max_queue_size: number) => ({
      link: { bandwidth_limit_dynamic: { flows: [{ input: 'in', output: 'out' }], phases, max_queue_size } },
    })
    const bench = drive(config(5))
    bench.advance(5e6)
    bench.send('in', burst(10))
    bench.reconfigure(config(1))
    expect(bench.metrics().link).toMatchObject({ queued_packets: 2, queue_full_packets: 8 })
    bench.advance(5e6)
    expect(bench.metrics().link.phase).toBe(1)
    bench.stop()
  })
})
