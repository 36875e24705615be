/** Reading a run's metrics from shared memory, and telling them to many. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { counter, createRegion, gauge, MetricLayout, RegionWriter } from '../dataplane/engine/metrics.ts'
import { FRESH_MS, Sampler, Telemetry } from './sampler.ts'

test('a sample groups the metrics by path, with value, kind, unit and description', () => {
  const layout = new MetricLayout()
  layout.declare('sink', { packets: counter('Packets taken', 'packets'), level: gauge('Fill level', 'ms') })
  layout.declare('loss', { dropped: counter('Packets lost', 'packets') })
  const region = createRegion(layout)
  new RegionWriter(region).publish(Float64Array.of(7, -0.5, 2 ** 52), 1)
  expect(new Sampler(region).sample(1_234)).toEqual({
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

test('those who come at once share a fresh sample', () => {
  let reads = 0
  const telemetry = new Telemetry(() => ++reads, 1_000)
  expect([telemetry.fresh(), telemetry.fresh()]).toEqual([1, 1])
  vi.advanceTimersByTime(FRESH_MS)
  expect(telemetry.fresh()).toBe(2)
})
