/** Telemetry of one run: its metrics, read from shared memory at regular intervals while somebody listens. */
import type { KpisConfig } from '../dataplane/engine/kpis.ts'
import type { MetricEntry, MetricSnapshot } from '../dataplane/engine/metrics.ts'
import { RegionReader } from '../dataplane/engine/metrics.ts'
import { Kpis } from './kpis/kpis.ts'
import type { ProcessMeter } from './process-meter.ts'
import type { Numbers } from './prometheus.ts'
import { type MetricSet, metricSet, Reading } from './reading.ts'

/** A sample no older than this serves a subscriber that has just come. */
export const FRESH_MS = 100

/** A run that has published no longer ago, in milliseconds, is publishing: its numbers are of the time that it says. */
const PUBLISHING_MS = 50

/**
 * What time the numbers of a run are of, which are read at `now` on the run's clock; both in milliseconds since the epoch. Those of a run that is
 * idle are of now, however long ago it published them; a rate must not be off by the time since others were.
 */
export function timeOf({ time }: MetricSnapshot, now: number): number {
  const published = time / 1e6
  return Math.abs(now - published) < PUBLISHING_MS ? published : now
}

export interface SamplerOptions {
  /** Evaluated with each sample. */
  kpis?: KpisConfig | undefined
  /** Whose figures are in each sample. */
  process?: ProcessMeter
}

const NO_VALUES = new Float64Array(0)

/** Reads a run's region. */
export class Sampler {
  readonly #reader: RegionReader
  readonly #process: ProcessMeter | undefined
  /** All numbers of a sample: those of the region, then those of the process. */
  readonly #entries: readonly MetricEntry[]
  readonly #metrics: MetricSet
  #kpis: Kpis | undefined
  #last: Reading | undefined
  /** What time its numbers are of, ms. */
  #time = Number.NEGATIVE_INFINITY

  constructor(region: SharedArrayBuffer, { kpis, process }: SamplerOptions = {}) {
    this.#reader = new RegionReader(region)
    this.#process = process
    const { length } = this.#reader.blank.values
    const added = process?.entries.map((entry) => ({ ...entry, index: entry.index + length })) ?? []
    this.#entries = [...this.#reader.entries, ...added]
    this.#metrics = metricSet(this.#entries)
    this.setKpis(kpis)
  }

  /** Evaluates these from the next sample on; what functions over time look back on begins anew. */
  setKpis(kpis: KpisConfig | undefined): void {
    this.#kpis = kpis === undefined ? undefined : new Kpis(kpis, this.#entries)
  }

  /**
   * Reads the run's numbers now and evaluates the KPIs; `now` in milliseconds since the epoch on a clock that nobody sets, `date` what time it is then. The
   * reading says what time its numbers are of, so that rates between two readings are what KPIs say. When they cannot be read whole it is the last reading
   * that could, as old as it says. The process's figures are read once something wants them.
   */
  read(now: number, date: Date = new Date(now)): Reading {
    return this.#read((snapshot) => timeOf(snapshot, now), now, date)
  }

  /** The same of a run that is over: its numbers are of when it published them last, however long its end took. */
  readLast(now: number, date: Date = new Date(now)): Reading {
    return this.#read(({ time }) => (time === 0 ? now : Math.min(time / 1e6, now)), now, date)
  }

  /** `timeIn` says what time a snapshot is of, ms. */
  #read(timeIn: (snapshot: MetricSnapshot) => number, now: number, date: Date): Reading {
    const snapshot = this.#reader.snapshot()
    if (snapshot === undefined && this.#last !== undefined) return this.#last
    const read = snapshot ?? this.#reader.blank
    const readProcess = () => this.#process?.read() ?? NO_VALUES
    const process = this.#kpis === undefined ? undefined : readProcess()
    // Never before that of the last reading.
    const time = Math.max(this.#time, timeIn(read))
    // One of the same time says the same of it: `date` is whole milliseconds.
    const last = time === this.#time ? this.#last : undefined
    this.#time = time
    const kpis = process && this.#kpis?.evaluate(joined(read.values, process), this.#time / 1000)
    const of = last?.timestamp ?? new Date(date.getTime() - Math.max(0, now - this.#time))
    this.#last = new Reading(this.#metrics, read.values, process ?? readProcess, kpis ?? [], of)
    return this.#last
  }

  /** All numbers of the run itself now; undefined when they cannot be read whole. */
  numbers(): Numbers | undefined {
    const snapshot = this.#reader.snapshot()
    return snapshot === undefined ? undefined : { entries: this.#reader.entries, values: snapshot.values }
  }
}

function joined(values: Float64Array, added: Float64Array): Float64Array {
  const all = new Float64Array(values.length + added.length)
  all.set(values)
  all.set(added, values.length)
  return all
}

interface Listener<M> {
  readonly hear: (sample: M) => void
  /** Ticks from one sample that it hears to the next. */
  readonly ticks: number
}

/** A run's samples for any number of listeners: read once a tick at most, and only for who listens or while `always` is set. */
export class Telemetry<M> {
  /** Reads a sample now. */
  readonly take: () => M
  readonly #interval: number
  readonly #listeners = new Set<Listener<M>>()
  #ticks = 0
  #always = false
  #timer: NodeJS.Timeout | undefined
  #last: { sample: M; at: number } | undefined

  /** `take` reads one sample; `interval` in milliseconds. */
  constructor(take: () => M, interval: number) {
    this.take = take
    this.#interval = interval
  }

  /** Whether every tick is taken, whoever listens: samples that depend on those before them are the same for all then. */
  set always(always: boolean) {
    this.#always = always
    if (always) {
      this.#read()
      this.#start()
    } else if (this.#listeners.size === 0) this.close()
  }

  /** How many ticks are between samples that are `interval` milliseconds apart, at least. */
  ticksIn(interval: number): number {
    return Math.max(1, Math.ceil(interval / this.#interval))
  }

  /** Has `hear` told a sample at the ticks that are at least `interval` milliseconds apart; returns what ends that. */
  follow(hear: (sample: M) => void, interval = 0): () => void {
    const listener = { hear, ticks: this.ticksIn(interval) }
    this.#listeners.add(listener)
    this.#start()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0 && !this.#always) this.close()
    }
  }

  /** What one who comes now begins with: the sample of the last tick if every tick is taken, else one no older than FRESH_MS. */
  fresh(): M {
    const last = this.#last
    const serves = last !== undefined && (this.#always || performance.now() - last.at < FRESH_MS)
    return (serves ? last : this.#read()).sample
  }

  /** No more ticks. */
  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #start(): void {
    this.#timer ??= setInterval(() => this.#tick(), this.#interval)
  }

  #tick(): void {
    this.#ticks++
    const due = [...this.#listeners].filter(({ ticks }) => this.#ticks % ticks === 0)
    if (due.length === 0 && !this.#always) return
    const { sample } = this.#read()
    for (const { hear } of due) hear(sample)
  }

  #read(): { sample: M; at: number } {
    this.#last = { sample: this.take(), at: performance.now() }
    return this.#last
  }
}
