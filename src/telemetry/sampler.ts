/** Telemetry of one run: its metrics, read from shared memory at regular intervals while somebody listens. */
import type { HistogramPart, MetricEntry } from '../dataplane/engine/metrics.ts'
import { RegionReader } from '../dataplane/engine/metrics.ts'

/** One number with what it means; `uint64Value` holds a safe integer. */
interface SampledMetric {
  kind: 'GAUGE' | 'COUNTER'
  unit: string
  description: string
  histogram?: { name: string; part: Uppercase<HistogramPart> }
  occupancy?: string
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
  kpis: never[]
  /** When the sample was taken. */
  timestamp: Date
}

/** A sample no older than this serves a subscriber that has just come. */
export const FRESH_MS = 100

/** Reads a run's region into samples. */
export class Sampler {
  readonly #reader: RegionReader
  readonly #paths: [path: string, entries: MetricEntry[]][]
  #last: Sample | undefined

  constructor(region: SharedArrayBuffer) {
    this.#reader = new RegionReader(region)
    const paths = new Map<string, MetricEntry[]>()
    for (const entry of this.#reader.entries) {
      const entries = paths.get(entry.path)
      if (entries === undefined) paths.set(entry.path, [entry])
      else entries.push(entry)
    }
    this.#paths = [...paths]
  }

  /**
   * Reads all metrics now; `now` in milliseconds since the epoch. When they cannot be read whole it is the last sample that
   * could, as old as it says.
   */
  sample(now: number): Sample {
    const snapshot = this.#reader.snapshot()
    if (snapshot === undefined && this.#last !== undefined) return this.#last
    const { values } = snapshot ?? this.#reader.blank
    const sample: Sample = {
      metricCollections: this.#paths.map(([path, entries]) => ({
        path,
        metrics: Object.fromEntries(
          entries.map((entry) => [entry.name, metricOf(entry, values[entry.index] as number)]),
        ),
      })),
      kpis: [],
      timestamp: new Date(now),
    }
    this.#last = sample
    return sample
  }
}

function metricOf(entry: MetricEntry, value: number): SampledMetric {
  const { kind, unit, description, integer, histogram, occupancy } = entry
  const common: SampledMetric = { kind: kind === 'counter' ? 'COUNTER' : 'GAUGE', unit, description }
  if (histogram !== undefined) {
    common.histogram = { name: histogram.name, part: histogram.part.toUpperCase() as Uppercase<HistogramPart> }
  }
  if (occupancy !== undefined) common.occupancy = occupancy
  return integer && value >= 0 ? { ...common, uint64Value: Math.round(value) } : { ...common, doubleValue: value }
}

/** A run's samples for any number of listeners: read once a tick, and only while somebody listens. */
export class Telemetry<M> {
  /** Reads a sample now. */
  readonly take: () => M
  readonly #interval: number
  readonly #listeners = new Set<(sample: M) => void>()
  #timer: NodeJS.Timeout | undefined
  #last: { sample: M; at: number } | undefined

  /** `take` reads one sample; `interval` in milliseconds. */
  constructor(take: () => M, interval: number) {
    this.take = take
    this.#interval = interval
  }

  /** Gives `listener` a sample at every tick; returns what ends that. */
  follow(listener: (sample: M) => void): () => void {
    this.#listeners.add(listener)
    this.#timer ??= setInterval(() => this.#tick(), this.#interval)
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.close()
    }
  }

  /** A sample no older than FRESH_MS: what many who come at once share. */
  fresh(): M {
    return (this.#last !== undefined && performance.now() - this.#last.at < FRESH_MS ? this.#last : this.#read()).sample
  }

  /** No more ticks. */
  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #tick(): void {
    const { sample } = this.#read()
    for (const listener of this.#listeners) listener(sample)
  }

  #read(): { sample: M; at: number } {
    this.#last = { sample: this.take(), at: performance.now() }
    return this.#last
  }
}
