/** One reading of a run's numbers, and the samples made of it: of a sample only what somebody asks for is made. */
import type { Kpi } from '../contract/types.ts'
import type { HistogramPart } from '../dataplane/engine/histogram.ts'
import type { MetricEntry, PacketRole } from '../dataplane/engine/metrics.ts'

/** What a number means. */
interface Described {
  readonly kind: 'GAUGE' | 'COUNTER'
  readonly unit: string
  readonly description: string
  readonly histogram?: { name: string; part: Uppercase<HistogramPart> }
  readonly occupancy?: string
  readonly role?: Uppercase<PacketRole>
  readonly port?: { name: string; side: 'INPUT' | 'OUTPUT' }
}

/** One number with what it means; `uint64Value` holds a safe integer. */
interface SampledMetric extends Described {
  doubleValue?: number
  uint64Value?: number
}

interface SampledCollection {
  /** Component name, or a path of the run. */
  path: string
  metrics: Record<string, SampledMetric>
}

export interface Sample {
  metricCollections: SampledCollection[]
  kpis: Kpi[]
  /** When the run published its numbers, or, where it does nothing, when they were read. */
  timestamp: Date
}

interface PlacedMetric {
  readonly name: string
  /** Where its value stands. */
  readonly index: number
  readonly integer: boolean
  readonly described: Described
}

/** Metrics by path, without their values, in the order in which a sample has them. */
export type MetricSet = readonly { readonly path: string; readonly metrics: readonly PlacedMetric[] }[]

/** All of the entries. */
export function metricSet(entries: readonly MetricEntry[]): MetricSet {
  const paths = new Map<string, PlacedMetric[]>()
  for (const entry of entries) {
    const { path, name, index, integer } = entry
    const metric = { name, index, integer, described: describe(entry) }
    const metrics = paths.get(path)
    if (metrics === undefined) paths.set(path, [metric])
    else metrics.push(metric)
  }
  return [...paths].map(([path, metrics]) => ({ path, metrics }))
}

/** Those of a set that are chosen; no path without any. */
function chosenOf(set: MetricSet, isChosen: (name: string, metric: Described) => boolean): MetricSet {
  return set
    .map(({ path, metrics }) => ({ path, metrics: metrics.filter(({ name, described }) => isChosen(name, described)) }))
    .filter(({ metrics }) => metrics.length > 0)
}

function describe({ kind, unit, description, histogram, occupancy, role, port }: MetricEntry): Described {
  return {
    kind: kind === 'counter' ? 'COUNTER' : 'GAUGE',
    unit,
    description,
    ...(histogram && {
      histogram: { name: histogram.name, part: histogram.part.toUpperCase() as Uppercase<HistogramPart> },
    }),
    ...(occupancy !== undefined && { occupancy }),
    ...(role && { role: role.toUpperCase() as Uppercase<PacketRole> }),
    ...(port && { port: { name: port.name, side: port.side === 'input' ? 'INPUT' : 'OUTPUT' } }),
  }
}

export class Reading {
  readonly kpis: Kpi[]
  readonly timestamp: Date
  readonly #metrics: MetricSet
  /** Of the run itself. */
  readonly #values: Float64Array
  /** Of the process, behind those of the run; a function until they are needed. */
  #process: Float64Array | (() => Float64Array)

  /** `metrics`: all that there are; `process` reads the values behind those in `values`, at the first need. */
  constructor(
    metrics: MetricSet,
    values: Float64Array,
    process: Float64Array | (() => Float64Array),
    kpis: Kpi[],
    timestamp: Date,
  ) {
    this.#metrics = metrics
    this.#values = values
    this.#process = process
    this.kpis = kpis
    this.timestamp = timestamp
  }

  /** Those of its metrics that are chosen, for `sample` of any reading of the same run. */
  choose(isChosen: (name: string, metric: Described) => boolean): MetricSet {
    return chosenOf(this.#metrics, isChosen)
  }

  /** A sample of these metrics, or of all. */
  sample(of: MetricSet = this.#metrics): Sample {
    const metricCollections = of.map(({ path, metrics }) => {
      const made: Record<string, SampledMetric> = {}
      for (const { name, index, integer, described } of metrics) {
        const value = this.#value(index)
        made[name] =
          integer && value >= 0
            ? { ...described, uint64Value: Math.round(value) }
            : { ...described, doubleValue: value }
      }
      return { path, metrics: made }
    })
    return { metricCollections, kpis: this.kpis, timestamp: this.timestamp }
  }

  /** Reads what has not been needed so far: whatever is sampled later is of now. */
  complete(): this {
    if (typeof this.#process === 'function') this.#process = this.#process()
    return this
  }

  #value(index: number): number {
    const { length } = this.#values
    if (index < length) return this.#values[index] as number
    this.complete()
    return (this.#process as Float64Array)[index - length] as number
  }
}
