/** What numbers of a run were over the last ten minutes, in arrays of a fixed length. */
import type { Kpi, Metric, TelemetrySample } from '@penstock/client'

/** Seconds that are kept. */
export const SPAN = 600
/** Seconds between two points that are kept, at least: of samples that come faster the newest takes the place. */
const STEP = 0.5
/** Points kept of each number. */
const MAX_POINTS = SPAN / STEP
/** Numbers kept of a run: 20 MB of them. What comes beyond has no curve. */
export const MAX_SERIES = 2_000

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
  readonly #series = new Map<string, Float64Array>()
  /** Points written so far; the newest MAX_POINTS are there. */
  #count = 0

  /** Takes a sample over. One from well before the last is of a clock that was set back: what it told before has no place beside that, and is forgotten. */
  add({ metricCollections, kpis, timestamp }: TelemetrySample): void {
    const at = Date.parse(timestamp ?? '') / 1000
    if (at < this.#at(this.#count - 1) - STEP) this.#count = 0
    if (!(at > this.#at(this.#count - 1))) return
    const isNext = this.#count < 2 || this.#at(this.#count - 1) - this.#at(this.#count - 2) >= STEP
    if (isNext) this.#count++
    const index = (this.#count - 1) % MAX_POINTS
    this.#times[index] = at
    for (const values of this.#series.values()) values[index] = Number.NaN
    for (const { path, metrics } of metricCollections) {
      for (const name in metrics) this.#put(metricKey(path, name), index, numberOf(metrics[name] as Metric))
    }
    for (const kpi of kpis) {
      for (const [i, value] of kpiNumbers(kpi).entries()) {
        if (value !== undefined) this.#put(kpiKey(kpi.id, i), index, Number(value))
      }
    }
  }

  /** The times of the points, in seconds since 1970, oldest first. */
  times(): readonly number[] {
    return this.#read((index) => this.#times[index] as number)
  }

  /** What a number was at these times. */
  values(key: string): Series {
    const values = this.#series.get(key)
    return this.#read((index) => known(values?.[index]))
  }

  /** The change of a number per second at these times: unknown at the first, and where it fell. */
  rates(key: string): Series {
    const times = this.times()
    const values = this.values(key)
    return values.map((value, i) => {
      const before = values[i - 1]
      if (value === undefined || before === undefined || value < before) return undefined
      return (value - before) / ((times[i] as number) - (times[i - 1] as number))
    })
  }

  #put(key: string, index: number, value: number): void {
    let values = this.#series.get(key)
    if (values === undefined) {
      if (this.#series.size >= MAX_SERIES) return
      values = new Float64Array(MAX_POINTS).fill(Number.NaN)
      this.#series.set(key, values)
    }
    values[index] = value
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

function known(value: number | undefined): number | undefined {
  return value === undefined || Number.isNaN(value) ? undefined : value
}
