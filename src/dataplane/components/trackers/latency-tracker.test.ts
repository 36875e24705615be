/** latency_tracker_sender and latency_tracker_receiver: delays that are known, to the nanosecond. */
import { describe, expect, test } from 'vitest'
import { type Bench, drive, type Pipeline, payload, refusal, tagOf } from '../../../../test/harness/component.ts'
import { checkPipelineConfig } from '../../engine/check.ts'
import { components } from '../registry.ts'
import { UnixTime } from './unix-time.ts'

const MS = 1e6
const sender = { sender: { latency_tracker_sender: { input: 'in', output: 'out' } } }
const receiver = (fields = {}) => ({ it: { latency_tracker_receiver: { input: 'wire', output: 'got', ...fields } } })
const figures = (bench: Bench) => bench.metrics().it as Record<string, number>

describe('times', () => {
  test.each([0, 1_795_305_600e9 + 123_456_768, 2 ** 63])('are exact 64 bits with the epoch %d', (epoch) => {
    const unix = new UnixTime({ epoch })
    const view = new DataView(new ArrayBuffer(8))
    for (const time of [0, 1, 4_294_967_295, 4_294_967_296, 7 * 86_400e9 + 12_345, 2 ** 52 - 1]) {
      unix.write(view, 0, time)
      expect(view.getBigUint64(0)).toBe(BigInt(epoch) + BigInt(time))
      expect(unix.read(view, 0)).toBe(time)
    }
  })

  test('from before the run are negative', () => {
    const view = new DataView(new ArrayBuffer(8))
    new UnixTime({ epoch: 1_795_305_600_000_000_000 }).write(view, 0, 0)
    expect(new UnixTime({ epoch: 1_795_305_605_000_000_000 }).read(view, 0)).toBeCloseTo(-5e9, -3)
  })
})

test('the header: send time, and nothing to send back', () => {
  const bench = drive(sender)
  bench.advance(4_294_967_297)
  bench.send('in', [payload(50, 3), payload(0)])
  const [first, second] = bench.take('out').map(({ bytes }) => Buffer.from(bytes))
  expect(first?.toString('hex', 0, 24)).toBe('00000001000000010000000000000000' + '0000000000000000')
  expect(first?.subarray(24)).toEqual(Buffer.from(payload(50, 3)))
  expect(second).toEqual(first?.subarray(0, 24))
  bench.stop()
})

describe('one-way delay', () => {
  const way = (fields = {}) => ({
    sender: { latency_tracker_sender: { input: 'in', output: 'sent' } },
    way: { delay_fixed: { input: 'sent', output: 'wire', delay: 30 } },
    ...receiver(fields),
  })

  test('is what an emulated delay makes it, and packets come out as they went in', () => {
    const bench = drive(way())
    for (let i = 0; i < 900; i++) {
      bench.send('in', payload(100, i))
      bench.advance(1 * MS)
    }
    expect(figures(bench).delay_mean).toBe(0)
    bench.advance(100 * MS)
    expect(figures(bench)).toMatchObject({
      delay_min: 30 * MS,
      delay_mean: 30 * MS,
      delay_max: 30 * MS,
      late_share: 0,
    })
    expect(bench.received('got').map(({ bytes }) => [bytes.length, tagOf(bytes)])).toEqual(
      Array.from({ length: 900 }, (_, i) => [100, i]),
    )
    bench.stop()
  })

  test('is not longer than it was where packets leave at fractions of a nanosecond: what takes the whole budget is not late', () => {
    // 1,200 bytes at 7 Mbit/s: one each 1,371,428.57 ns.
    const source = { throughput_traffic_source: { output: 'in', throughput_mbit: 7, payload_size: 1200 } }
    const delayed = (input: string, output: string) => ({ delay_fixed: { input, output, delay: 100 } })
    const bench = drive({
      source,
      ...sender,
      way: delayed('out', 'wire'),
      ...receiver({ latency_budget: 100 }),
      sink: { traffic_sink: { input: 'got', latency_budget: 100 } },
    })
    bench.advance(10_000 * MS)
    const { sink, it } = bench.metrics()
    expect(sink).toMatchObject({ late_packets: 0, lost_packets: 0, delay_max: 100 * MS })
    expect(sink.probe_packets).toBeGreaterThan(7000)
    expect(it).toMatchObject({ late_packets: 0, delay_max: 100 * MS })
    bench.stop()
  })

  test('least, mean, greatest and the share over the budget are those of the interval, and stay when nothing comes', () => {
    const bench = drive(way({ sampling_interval_ms: 100, latency_budget: 25 }))
    const delayed = (delay: number) =>
      bench.reconfigure({ way: { delay_fixed: { input: 'sent', output: 'wire', delay } } })
    for (const delay of [10, 20, 25, 65]) {
      delayed(delay)
      bench.send('in', payload(8))
    }
    bench.advance(100 * MS)
    const seen = { delay_min: 10 * MS, delay_mean: 30 * MS, delay_max: 65 * MS, late_share: 0.25, late_packets: 1 }
    expect(figures(bench)).toMatchObject(seen)
    bench.advance(1000 * MS)
    expect(figures(bench)).toMatchObject(seen)
    bench.reconfigure(way({ sampling_interval_ms: 100, latency_budget: 70 }))
    bench.send('in', payload(8))
    bench.advance(100 * MS)
    expect(figures(bench)).toMatchObject({ delay_min: 30 * MS, late_share: 0, late_packets: 1 })
    bench.stop()
  })

  test.each([
    ['behind', 5000, 0, -5000],
    ['ahead', 0, 5000, 5000],
  ])('where the clock here is %s it says so', (_, there, here, shown) => {
    const [from, to] = [drive(sender), drive(receiver())]
    from.advance(there * MS)
    to.advance(here * MS)
    from.send('in', payload(10))
    to.send(
      'wire',
      from.take('out').map(({ bytes }) => bytes),
    )
    to.advance(1000 * MS)
    expect(figures(to)).toMatchObject({ delay_mean: shown * MS, late_packets: shown > 100 ? 1 : 0, round_trips: 0 })
    from.stop()
    to.stop()
  })
})

/** Two runs, each with `ends`, and a network between them: `there` and `back` ms; the clock of the second is `ahead` ms ahead. */
function ping(ends: Pipeline, [there, back, ahead]: [number, number, number], steps: number): [Bench, Bench] {
  const [near, far] = [drive(ends), drive(ends)]
  far.advance(ahead * MS)
  const underway: { at: number; to: Bench; bytes: Uint8Array }[] = []
  for (let step = 0; step < steps; step++) {
    if (step % 10 === 0) near.send('in', payload(20))
    if (step % 7 === 3) far.send('in', payload(20))
    for (const { bytes } of near.take('out')) underway.push({ at: step + there, to: far, bytes })
    for (const { bytes } of far.take('out')) underway.push({ at: step + back, to: near, bytes })
    for (const { to, bytes } of underway.filter(({ at }) => at === step)) to.send('wire', bytes)
    near.advance(1 * MS)
    far.advance(1 * MS)
  }
  return [near, far]
}

describe('round trip', () => {
  const both = { ...sender, ...receiver() }

  test('is both ways without what the peer held, at both ends, whatever their clocks say', () => {
    const [near, far] = ping(both, [40, 25, 3000], 3000)
    const roundTrip = { round_trip_min: 65 * MS, round_trip_mean: 65 * MS, round_trip_max: 65 * MS }
    expect(figures(near)).toMatchObject({ ...roundTrip, delay_mean: (25 - 3000) * MS })
    expect(figures(far)).toMatchObject({ ...roundTrip, delay_mean: (40 + 3000) * MS })
    expect(figures(near).round_trips).toBeGreaterThan(400)
    near.stop()
    far.stop()
  })

  test('is not measured where several senders or receivers are', () => {
    const two = { ...both, other: { latency_tracker_sender: { input: 'in2', output: 'out2' } } }
    const [near, far] = ping(two, [40, 25, 0], 500)
    expect([figures(near).round_trips, figures(far).round_trips]).toEqual([0, 0])
    expect(figures(far).delay_mean).toBe(0)
    far.advance(500 * MS)
    expect(figures(far).delay_mean).toBe(40 * MS)
    near.stop()
    far.stop()
  })

  test('takes no time that its sender cannot have sent', () => {
    const bench = drive(both)
    bench.advance(100 * MS)
    const stamped = (sent: number, held: number) => {
      const bytes = new Uint8Array(24)
      const view = new DataView(bytes.buffer)
      view.setBigUint64(8, BigInt(sent))
      view.setBigUint64(16, BigInt(held))
      return bytes
    }
    bench.send('wire', [stamped(101 * MS, 0), stamped(60 * MS, 41 * MS), stamped(2 ** 60, 0), stamped(1, 2 ** 60)])
    expect(figures(bench).round_trips).toBe(0)
    bench.send('wire', stamped(60 * MS, 10 * MS))
    bench.advance(900 * MS)
    expect(figures(bench)).toMatchObject({ round_trips: 1, round_trip_mean: 30 * MS })
    bench.stop()
  })

  test('after a RESET nothing goes back until something comes', () => {
    const bench = drive(both)
    const echoes = () => {
      bench.send('in', payload(0))
      return bench.take('out').map(({ bytes }) => new DataView(bytes.buffer).getBigUint64(8))
    }
    const stamp = new Uint8Array(24).fill(7)
    bench.send('wire', stamp)
    expect(echoes()).toEqual([0x0707070707070707n])
    bench.notify('wire', 'RESET')
    expect(echoes()).toEqual([0n])
    expect(bench.notifications('got')).toEqual(['RESET'])
    bench.stop()
  })
})

describe('validate', () => {
  const end = (key: string, i: number) => ({
    [`${key} ${i}`]: { [key]: { input: `${key} in ${i}`, output: `${key} out ${i}` } },
  })
  const ends = (senders: number, receivers: number): Pipeline => {
    const pipeline: Pipeline = {}
    for (let i = 0; i < senders; i++) Object.assign(pipeline, end('latency_tracker_sender', i))
    for (let i = 0; i < receivers; i++) Object.assign(pipeline, end('latency_tracker_receiver', i))
    for (const [key, count] of [
      ['latency_tracker_sender', senders],
      ['latency_tracker_receiver', receivers],
    ] as const) {
      for (let i = 0; i < count; i++) {
        pipeline[`from ${key} ${i}`] = { uniform_traffic_source: { output: `${key} in ${i}`, interval: 1 } }
        pipeline[`to ${key} ${i}`] = { traffic_sink: { input: `${key} out ${i}` } }
      }
    }
    return pipeline
  }

  test.each([
    [1, 1, []],
    [1, 0, ['latency_tracker_sender 0']],
    [0, 1, ['latency_tracker_receiver 0']],
    [2, 1, ['latency_tracker_receiver 0']],
    [1, 2, ['latency_tracker_receiver 0', 'latency_tracker_receiver 1']],
  ])('%d senders and %d receivers', (senders, receivers, warned) => {
    const json = JSON.stringify({ version: 1, engine_config: { pipeline: ends(senders, receivers) } })
    const { warnings, problems } = checkPipelineConfig(json, components)
    expect(problems).toEqual([])
    expect(warnings.map(({ component }) => component)).toEqual(warned)
    for (const { component, pointer, message } of warnings) {
      expect(pointer).toBe(`/engine_config/pipeline/${component}/${component.slice(0, -2)}`)
      expect(message).toBe(
        'no round trip is measured: that takes exactly one latency_tracker_sender and one latency_tracker_receiver in the ' +
          `pipeline, and this one has ${senders} and ${receivers}`,
      )
    }
  })
})

test('what is too short for the header is dropped and counted', () => {
  const bench = drive(receiver())
  bench.send('wire', [new Uint8Array(0), new Uint8Array(23), new Uint8Array(24)])
  expect(figures(bench).malformed_packets).toBe(2)
  expect(bench.received('got')).toHaveLength(1)
  bench.stop()
})

test.each([
  [{ sampling_interval_ms: -1 }, '/sampling_interval_ms', '-1 is below the minimum of 1 ms (0 leaves it unset)'],
  [{ latency_budget: -1 }, '/latency_budget', '-1 is below the minimum of 0 ms'],
])('%j is refused', (fields, pointer, message) => {
  const problem = { pointer: `/engine_config/pipeline/it/latency_tracker_receiver${pointer}`, message }
  expect(refusal(receiver(fields))).toEqual(problem)
})
