import { describe, expect, it } from 'vitest'
import {
  bindMetrics,
  type Counter,
  counter,
  createRegion,
  type Gauge,
  gauge,
  Histogram,
  histogram,
  MetricLayout,
  RegionReader,
  RegionWriter,
} from './metrics.ts'
import { Random } from './random.ts'

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
    expect(reader.snapshot().values.every((value) => value === 0)).toBe(true)
    writer.publish(values, 42)
    const { time, values: seen } = reader.snapshot()
    expect(time).toBe(42)
    const byName = Object.fromEntries(reader.entries.map((entry) => [entry.name, seen[entry.index]]))
    expect(byName).toMatchObject({ hits: 3, level: -1.5, size_count: 100, size_min: 1, size_max: 100, size_mean: 50.5 })
    expect(Math.abs(byName.size_p50 - 50) / 50).toBeLessThan(1 / 16)
    expect(Math.abs(byName.size_p99 - 99) / 99).toBeLessThan(1 / 16)
  })

  it('quantiles stay within a bucket of the exact ones over nine decades', () => {
    const values = new Float64Array(7)
    const made = new Histogram(values, 0)
    const random = new Random(7)
    const exact: number[] = []
    for (let i = 0; i < 20_000; i++) {
      const value = 10 ** (random.float() * 13)
      exact.push(value)
      made.record(value)
    }
    made.summarise()
    exact.sort((a, b) => a - b)
    for (const [part, q] of [
      [4, 0.5],
      [5, 0.9],
      [6, 0.99],
    ]) {
      const wanted = exact[Math.ceil(q * exact.length) - 1]
      expect(Math.abs(values[part] - wanted) / wanted).toBeLessThan(1 / 32)
    }
    expect(values[1]).toBe(exact[0])
    expect(values[2]).toBe(exact.at(-1))
  })
})
