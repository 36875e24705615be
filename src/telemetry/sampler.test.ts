/** Reading a run's metrics from shared memory, and telling them to many. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { counter, createRegion, gauge, histogram, MetricLayout, RegionWriter } from '../dataplane/engine/metrics.ts'
import { ProcessMeter } from './process-meter.ts'
import type { Sample } from './reading.ts'
import { FRESH_MS, Sampler, Telemetry } from './sampler.ts'

test('a sample groups the metrics by path, with value, kind, unit and description', () => {
  const layout = new MetricLayout()
  layout.declare('sink', { packets: counter('Packets taken', 'packets'), level: gauge('Fill level', 'ms') })
  layout.declare('loss', { dropped: counter('Packets lost', 'packets') })
  const region = createRegion(layout)
  new RegionWriter(region).publish(Float64Array.of(7, -0.5, 2 ** 52), 1)
  expect(new Sampler(region).read(1_234).sample()).toEqual({
    timestamp: new Date(1_234),
    kpis: [],
    metricCollections: [
      {
        path: 'sink',
        metrics: {
          packets: { kind: 'COUNTER', unit: 'packets', description: 'Packets taken', uint64Value: 7 },
          level: { kind: 'GAUGE', unit: 'ms', description: 'Fill level', doubleValue: -0.5 },
        },
      },
      {
        path: 'loss',
        metrics: {
          dropped: { kind: 'COUNTER', unit: 'packets', description: 'Packets lost', uint64Value: 2 ** 52 },
        },
      },
    ],
  })
})

test('the numbers of a histogram say whose they are and which', () => {
  const layout = new MetricLayout()
  layout.declare('sink', { delay: histogram('Delay', 'ms'), packets: counter('Packets taken', 'packets') })
  const { metrics = {} } = new Sampler(createRegion(layout)).read(1).sample().metricCollections[0] ?? {}
  const parts = ['COUNT', 'MIN', 'MAX', 'MEAN', 'P50', 'P90', 'P99']
  expect(Object.fromEntries(Object.entries(metrics).map(([name, metric]) => [name, metric.histogram]))).toEqual({
    ...Object.fromEntries(parts.map((part) => [`delay_${part.toLowerCase()}`, { name: 'delay', part }])),
    packets: undefined,
  })
})

test('the numbers of a place say which of them tells whether somebody has it', () => {
  const layout = new MetricLayout()
  layout.declare('rtp', {
    streams: gauge('Streams'),
    ssrc: { ...gauge('SSRC'), occupancy: 'packets' },
    packets: { ...gauge('Packets', 'packets'), occupancy: 'packets' },
  })
  const { metrics = {} } = new Sampler(createRegion(layout)).read(1).sample().metricCollections[0] ?? {}
  expect(Object.entries(metrics).map(([name, { occupancy }]) => [name, occupancy])).toEqual([
    ['streams', undefined],
    ['ssrc', 'packets'],
    ['packets', 'packets'],
  ])
})

test('numbers of packets say what became of them, and those of a port which one it is', () => {
  const layout = new MetricLayout()
  layout.declare('loss', {
    emulated: { ...counter('Packets lost', 'packets'), role: 'intended' },
    queue: { ...gauge('Packets here', 'packets'), role: 'held' },
    rounds: counter('Rounds'),
  })
  const entry = { path: 'loss', kind: 'counter', unit: 'bytes', description: '', integer: true } as const
  layout.number({ ...entry, name: 'input_bytes', port: { name: 'input', side: 'input' } })
  const { metrics = {} } = new Sampler(createRegion(layout)).read(1).sample().metricCollections[0] ?? {}
  expect(Object.entries(metrics).map(([name, { role, port }]) => [name, role, port])).toEqual([
    ['emulated', 'INTENDED', undefined],
    ['queue', 'HELD', undefined],
    ['rounds', undefined, undefined],
    ['input_bytes', undefined, { name: 'input', side: 'INPUT' }],
  ])
})

test('metrics that cannot be read whole are the last ones that could, with their time', () => {
  const layout = new MetricLayout()
  layout.declare('sink', { packets: counter('Packets taken', 'packets') })
  const region = createRegion(layout)
  const sequence = new Int32Array(region, 8, 1)
  const packetsOf = (sample: Sample) => sample.metricCollections[0]?.metrics.packets?.uint64Value
  const writer = new RegionWriter(region)
  const sampler = new Sampler(region)
  sequence[0]++ // the writer begins, and stands still
  expect(packetsOf(sampler.read(100).sample())).toBe(0)
  sequence[0]++
  writer.publish(Float64Array.of(7), 1)
  const seen = sampler.read(1_000).sample()
  expect(packetsOf(seen)).toBe(7)
  sequence[0]++
  new Float64Array(region, region.byteLength - 8)[0] = 99
  expect(sampler.read(2_000).sample()).toEqual(seen)
  sequence[0]++
  const next = sampler.read(3_000).sample()
  expect([packetsOf(next), next.timestamp]).toEqual([99, new Date(3_000)])
})

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

test('is read once a tick however many listen, and not at all when nobody does', () => {
  let reads = 0
  const telemetry = new Telemetry(() => ++reads, 1_000)
  const heard: number[][] = [[], [], []]
  const leave = heard.map((samples) => telemetry.follow((sample) => samples.push(sample)))
  vi.advanceTimersByTime(3_000)
  expect(heard).toEqual([
    [1, 2, 3],
    [1, 2, 3],
    [1, 2, 3],
  ])
  leave[0]?.()
  vi.advanceTimersByTime(1_000)
  leave[1]?.()
  leave[2]?.()
  vi.advanceTimersByTime(5_000)
  expect(reads).toBe(4)
  expect(vi.getTimerCount()).toBe(0)
  telemetry.follow((sample) => heard[0]?.push(sample))
  vi.advanceTimersByTime(1_000)
  expect(heard[0]).toEqual([1, 2, 3, 5])
})

test('one who asks for fewer gets those of every nth tick, and between them nothing is read', () => {
  let reads = 0
  const telemetry = new Telemetry(() => ++reads, 1_000)
  const heard: number[] = []
  const leave = telemetry.follow((sample) => heard.push(sample), 2_001)
  vi.advanceTimersByTime(9_000)
  expect([reads, heard]).toEqual([3, [1, 2, 3]])
  const all: number[] = []
  telemetry.follow((sample) => all.push(sample), 1)
  vi.advanceTimersByTime(3_000)
  expect([all, heard]).toEqual([
    [4, 5, 6],
    [1, 2, 3, 6],
  ])
  leave()
})

test('those who come at once share a fresh sample', () => {
  let reads = 0
  const telemetry = new Telemetry(() => ++reads, 1_000)
  expect([telemetry.fresh(), telemetry.fresh()]).toEqual([1, 1])
  vi.advanceTimersByTime(FRESH_MS)
  expect(telemetry.fresh()).toBe(2)
})

test('one that is always taken is taken without listeners, and serves who comes with the sample of the last tick', () => {
  let reads = 0
  const telemetry = new Telemetry(() => ++reads, 1_000)
  telemetry.always = true
  expect(telemetry.fresh()).toBe(1)
  vi.advanceTimersByTime(2_900)
  expect([reads, telemetry.fresh()]).toEqual([3, 3])
  const heard: number[] = []
  telemetry.follow((sample) => heard.push(sample))()
  vi.advanceTimersByTime(1_000)
  expect([reads, heard]).toEqual([4, []])
  telemetry.always = false
  vi.advanceTimersByTime(5_000)
  expect([reads, vi.getTimerCount()]).toEqual([4, 0])
})

/** A run's numbers, and who samples a KPI that is the rate of its one counter. */
function rateOfPackets(): { writer: RegionWriter; sampler: Sampler } {
  const layout = new MetricLayout()
  layout.declare('sink', { packets: counter('Packets taken', 'packets') })
  const region = createRegion(layout)
  const writer = new RegionWriter(region)
  const kpis = {
    variables: {},
    metrics: [{ id: 'rate', label: '', description: '', value: { expression: 'rate({sink/packets})' } }],
  }
  const sampler = new Sampler(region, { kpis })
  return { writer, sampler }
}

test('KPIs are evaluated at the time at which the numbers were published, of a run that publishes', () => {
  const { writer, sampler } = rateOfPackets()
  const sampleAt = (now: number, packets: number, published: number) => {
    writer.publish(Float64Array.of(packets), published * 1e6)
    return sampler.read(now).sample().kpis[0]?.value?.value
  }
  sampleAt(1_000_000, 100, 999_990)
  expect(sampleAt(1_001_000, 200, 1_000_990)).toBe(100)
  expect(sampleAt(1_002_009, 300, 1_001_990)).toBe(100)
  // Nothing has happened since: the numbers are of now.
  expect(sampleAt(1_003_990, 300, 1_001_990)).toBe(0)
})

test('KPIs and timestamp of the last sample of a run are of when it ended, however long after that it is taken', () => {
  const { writer, sampler } = rateOfPackets()
  writer.publish(Float64Array.of(100), 1_000_000e6)
  sampler.read(1_000_000)
  writer.publish(Float64Array.of(150), 1_000_500e6)
  const last = sampler.readLast(1_003_000, new Date(8_003_000))
  expect(last.kpis[0]?.value?.value).toBe(100)
  expect(last.timestamp).toEqual(new Date(8_000_500))
})

test('a sample says what time its numbers are of, and none is of before another', () => {
  const { writer, sampler } = rateOfPackets()
  expect(sampler.readLast(999_000).timestamp).toEqual(new Date(999_000))
  writer.publish(Float64Array.of(1), 999_960e6)
  expect(sampler.read(1_000_000).timestamp).toEqual(new Date(999_960))
  expect(sampler.read(1_001_000).timestamp).toEqual(new Date(1_001_000))
  expect(sampler.readLast(1_001_500).timestamp).toEqual(new Date(1_001_000))
  expect(sampler.readLast(1_001_500.6, new Date(1_001_500)).timestamp).toEqual(new Date(1_001_000))
})

test("the process's figures stand in the same sample, and in KPIs", () => {
  const layout = new MetricLayout()
  layout.declare('sink', { packets: counter('Packets taken', 'packets') })
  const kpis = {
    variables: {},
    metrics: [{ id: 'k', label: '', description: '', value: { expression: '{/process/resident_memory} > 1e6' } }],
  }
  const sample = new Sampler(createRegion(layout), { kpis, process: new ProcessMeter() }).read(1).sample()
  const { metrics = {} } = sample.metricCollections.find(({ path }) => path === '/process') ?? {}
  expect(Object.keys(metrics)).toEqual(['cpu_time', 'resident_memory', 'heap_used', 'open_descriptors', 'threads'])
  for (const metric of Object.values(metrics)) expect(metric.uint64Value ?? metric.doubleValue).toBeGreaterThan(0)
  expect(sample.kpis[0]?.value?.value).toBe(1)
})

test("of a choice only that is made, and the process's figures are read only where they are of it", () => {
  const layout = new MetricLayout()
  layout.declare('sink', {
    packets: { ...counter('Packets taken', 'packets'), role: 'consumed' },
    level: gauge('Fill level', 'ms'),
  })
  layout.declare('idle', { rounds: counter('Rounds') })
  const region = createRegion(layout)
  const process = new ProcessMeter()
  const read = vi.spyOn(process, 'read')
  const sampler = new Sampler(region, { process })
  const consumed = sampler.read(1).choose((_, { role }) => role === 'CONSUMED')
  new RegionWriter(region).publish(Float64Array.of(7, 0, 0), 1)
  const reading = sampler.read(2)
  expect(reading.sample(consumed).metricCollections).toEqual([
    {
      path: 'sink',
      metrics: {
        packets: { kind: 'COUNTER', unit: 'packets', description: 'Packets taken', role: 'CONSUMED', uint64Value: 7 },
      },
    },
  ])
  expect(read).not.toHaveBeenCalled()
  expect(reading.sample().metricCollections.map(({ path }) => path)).toEqual(['sink', 'idle', '/process'])
  reading.sample()
  expect(read).toHaveBeenCalledTimes(1)
})
