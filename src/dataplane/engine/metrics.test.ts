import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, it } from 'vitest'
import { packageRoot } from '../../package-root.ts'
import { HISTOGRAM_NUMBERS, type Histogram } from './histogram.ts'
import {
  bindMetrics,
  type Counter,
  counter,
  createRegion,
  type Gauge,
  gauge,
  histogram,
  MetricLayout,
  type MetricSnapshot,
  RegionReader,
  RegionWriter,
} from './metrics.ts'

/** A region of `count` counters. */
function wide(count: number): { region: SharedArrayBuffer; writer: RegionWriter } {
  const layout = new MetricLayout()
  layout.declare('box', Object.fromEntries(Array.from({ length: count }, (_, i) => [`c${i}`, counter('.')])))
  const region = createRegion(layout)
  return { region, writer: new RegionWriter(region) }
}

describe('metrics', () => {
  it('a reader sees what was published, by the names of the directory', () => {
    const declarations = { hits: counter('Hits.'), level: gauge('Level.', 'bytes'), size: histogram('Size.', 'bytes') }
    const layout = new MetricLayout()
    const places = layout.declare('box', declarations)
    const region = createRegion(layout)
    const writer = new RegionWriter(region)
    const values = new Float64Array(writer.values)
    const histograms: Histogram[] = []
    const metrics = bindMetrics(declarations, places, values, histograms)
    ;(metrics.hits as Counter).add(3)
    ;(metrics.level as Gauge).set(-1.5)
    for (let i = 1; i <= 100; i++) (metrics.size as Histogram).record(i)
    for (const made of histograms) made.summarise()
    const reader = new RegionReader(region)
    expect(reader.snapshot()).toEqual(reader.blank)
    expect(reader.blank).toEqual({ time: 0, values: new Float64Array(2 + HISTOGRAM_NUMBERS) })
    writer.publish(values, 42)
    const { time, values: seen } = reader.snapshot() as MetricSnapshot
    expect(time).toBe(42)
    const byName = Object.fromEntries(reader.entries.map((entry) => [entry.name, seen[entry.index]]))
    expect(byName).toMatchObject({ hits: 3, level: -1.5, size_count: 100, size_min: 1, size_max: 100, size_mean: 50.5 })
    expect(Math.abs(byName.size_p50 - 50) / 50).toBeLessThan(1 / 16)
    expect(Math.abs(byName.size_p99 - 99) / 99).toBeLessThan(1 / 16)
  })

  it('numbers that a writer stands in the middle of are not given out, until it is done', () => {
    const { region, writer } = wide(4)
    const reader = new RegionReader(region)
    writer.publish(Float64Array.of(1, 2, 3, 4), 5)
    const sequence = new Int32Array(region, 8, 1)
    sequence[0]++
    expect(reader.snapshot()).toBeUndefined()
    sequence[0]++
    expect(reader.snapshot()).toEqual({ time: 5, values: Float64Array.of(1, 2, 3, 4) })
    writer.publish(Float64Array.of(1, -2, Number.NaN, 4), 6)
    expect(reader.snapshot()).toEqual({ time: 6, values: Float64Array.of(1, -2, Number.NaN, 4) })
  })

  it('a reader beside a writer in another thread sees whole publications only', async () => {
    // So many that a writer without pause leaves a reader little chance to be done between two publications.
    const { region } = wide(1_000)
    const reader = new RegionReader(region)
    const thread = new Worker(
      `import(${JSON.stringify(join(packageRoot(), 'dist/src/dataplane/engine/metrics.js'))}).then(({ RegionWriter }) => {
        const { region, stop } = require('node:worker_threads').workerData
        const writer = new RegionWriter(region)
        const values = new Float64Array(1_000)
        for (let n = 1; Atomics.load(stop, 0) === 0; n++) {
          writer.publish(values.fill(n / 3), n)
          if (n % 20 === 0) Atomics.wait(stop, 0, 0, 2)
        }
      })`,
      { eval: true, workerData: { region, stop: new Int32Array(region, 40, 1) } },
    )
    let whole = 0
    let last = 0
    for (const end = performance.now() + 20_000; whole < 100 && performance.now() < end; ) {
      const snapshot = reader.snapshot()
      if (snapshot === undefined || snapshot.time === last) continue
      whole++
      last = snapshot.time
      const expected = last / 3
      expect(snapshot.values.findIndex((value) => value !== expected)).toBe(-1)
    }
    Atomics.store(new Int32Array(region), 10, 1)
    Atomics.notify(new Int32Array(region), 10)
    await once(thread, 'exit')
    expect(whole).toBe(100)
  })
})
