/** What numbers of a run were over the last ten minutes, in arrays of a fixed length. */
import type { Kpi, Metric, TelemetrySample } from '@penstock/client'

/** Seconds that are kept. */
export const SPAN = 600
/** Seconds between two points that are kept, at least: of samples that come faster the newest takes the place. */
const STEP = 0.5
/** Points kept of each number. */
const MAX_POINTS = SPAN / STEP
/** Metrics kept of a run: 20 MB of them. What comes beyond has no curve. */
export const MAX_SERIES = 2_000
/** Numbers of KPIs kept beside them, which may be added while a run of many metrics is on. */
export const MAX_KPI_SERIES = 1_000

/** A point in time, and what a number was then; undefined where nothing is known. */
export type Series = readonly (number | undefined)[]

/** What a metric is called here. */
export function metricKey(path: string, name: string): string {
  return `${path}\n${name}`
}

/** What the `index`-th number of a KPI is called here. */
export function kpiKey(id: string, index: number): string {
  return `\n${id}\n${index}`
}

/** The value of a metric; a truth counts as 1 or 0, a text is none. */
export function numberOf({ uint64Value, int64Value, doubleValue, boolValue }: Metric): number {
  return Number(uint64Value ?? int64Value ?? doubleValue ?? boolValue ?? Number.NaN)
}

/** The numbers that are drawn over time of a KPI, in the order in which it has them. */
function kpiNumbers(kpi: Kpi): readonly (number | string | undefined)[] {
  const { valueOverTime, valueOverTimeComparison: two, dataRate, multipleValuesOverTime: many } = kpi
  if (valueOverTime !== undefined) {
    const { value, min, max, avg } = valueOverTime
    return [value, min, max, avg]
  }
  if (two !== undefined) {
    const { value1, value2, value1Min, value1Max, value1Avg, value2Min, value2Max, value2Avg } = two
    return [value1, value2, value1Min, value1Max, value1Avg, value2Min, value2Max, value2Avg]
  }
  if (dataRate !== undefined) return [dataRate.goodput, dataRate.overhead]
  return many?.values.map(({ value }) => value) ?? []
}

export class History {
  readonly #times = new Float64Array(MAX_POINTS)
  /** Seconds that had truly passed at each point, from some moment on, whoever set the node's clock meanwhile. */
  readonly #passed = new Float64Array(MAX_POINTS)
  /** The same at the last sample. */
  #now = 0
  readonly #metrics = new Map<string, Float64Array>()
  readonly #kpis = new Map<string, Float64Array>()
  /** How the configuration has each KPI; undefined: not told yet. */
  #definitions: ReadonlyMap<string, string> | undefined
  #lacksKpis = false
  /** Points written so far; the newest MAX_POINTS are there. */
  #count = 0

  /**
   * Takes a sample over, so many seconds after the one before; undefined: what their timestamps say. One from well before the last is of a clock that was set
   * back: what it told before has no place beside that, and is forgotten.
   */
  add({ metricCollections, kpis, timestamp }: TelemetrySample, seconds?: number): void {
    const at = Date.parse(timestamp ?? '') / 1000
    const since = at - this.#at(this.#count - 1)
    this.#now += seconds ?? (Number.isFinite(since) && since > 0 ? since : 0)
    if (at < this.#at(this.#count - 1) - STEP) this.#count = 0
    if (!(at > this.#at(this.#count - 1))) return
    const isNext = this.#count < 2 || this.#at(this.#count - 1) - this.#at(this.#count - 2) >= STEP
    if (isNext) this.#count++
    const index = (this.#count - 1) % MAX_POINTS
    this.#times[index] = at
    this.#passed[index] = this.#now
    for (const values of this.#metrics.values()) values[index] = Number.NaN
    for (const values of this.#kpis.values()) values[index] = Number.NaN
    for (const { path, metrics } of metricCollections) {
      for (const name in metrics) {
        put(this.#metrics, MAX_SERIES, metricKey(path, name), index, numberOf(metrics[name] as Metric))
      }
    }
    for (const kpi of kpis) {
      for (const [i, value] of kpiNumbers(kpi).entries()) {
        if (value === undefined) continue
        const isKept = put(this.#kpis, MAX_KPI_SERIES, kpiKey(kpi.id, i), index, Number(value))
        this.#lacksKpis ||= !isKept
      }
    }
  }

  /** Whether some numbers of KPIs found no place. */
  get lacksKpis(): boolean {
    return this.#lacksKpis
  }

  /** Tells how the configuration has each KPI, by id: what one was before it changed is of something else, and is forgotten. */
  define(definitions: ReadonlyMap<string, string>): void {
    for (const [id, before] of this.#definitions ?? []) {
      if (definitions.get(id) === before) continue
      const first = kpiKey(id, 0).slice(0, -1)
      for (const key of this.#kpis.keys()) if (key.startsWith(first)) this.#kpis.delete(key)
      this.#lacksKpis = false
    }
    this.#definitions = definitions
  }

  /** The times of the points, in seconds since 1970, oldest first. */
  times(): readonly number[] {
    return this.#read((index) => this.#times[index] as number)
  }

  /** What a number was at these times. */
  values(key: string): Series {
    const values = this.#kpis.get(key) ?? this.#metrics.get(key)
    return this.#read((index) => known(values?.[index]))
  }

  /** The change of a number per second at these times: unknown at the first, and where it fell. */
  rates(key: string): Series {
    const passed = this.#read((index) => this.#passed[index] as number)
    const values = this.values(key)
    return values.map((value, i) => {
      const before = values[i - 1]
      if (value === undefined || before === undefined || value < before) return undefined
      return (value - before) / ((passed[i] as number) - (passed[i - 1] as number))
    })
  }

  /** The time of the `n`-th point; that of none is before all. */
  #at(n: number): number {
    return n < 0 ? Number.NEGATIVE_INFINITY : (this.#times[n % MAX_POINTS] as number)
  }

  /** What `of` gives for the place of each point of the last SPAN seconds. */
  #read<Value>(of: (index: number) => Value): Value[] {
    const since = this.#at(this.#count - 1) - SPAN
    const found: Value[] = []
    for (let n = Math.max(0, this.#count - MAX_POINTS); n < this.#count; n++) {
      if (this.#at(n) >= since) found.push(of(n % MAX_POINTS))
    }
    return found
  }
}

/** Returns whether there was a place for it. */
function put(all: Map<string, Float64Array>, most: number, key: string, index: number, value: number): boolean {
  let values = all.get(key)
  if (values === undefined) {
    if (all.size >= most) return false
    values = new Float64Array(MAX_POINTS).fill(Number.NaN)
    all.set(key, values)
  }
  values[index] = value
  return true
}

function known(value: number | undefined): number | undefined {
  return value === undefined || Number.isNaN(value) ? undefined : value
}
