/** Samples of telemetry as tables and plain objects need them. */
import type { Run, TelemetrySample } from '@penstock/client'
import type { HistogramPart } from '../dataplane/engine/histogram.ts'
import { type MetricRow, rateOf } from './metrics-table.ts'

type Metric = TelemetrySample['metricCollections'][number]['metrics'][string]
type Value = number | string | boolean

/** The value of a metric: 64-bit integers come as strings; what a counter loses beyond 2^53 does not show in a table. */
export function numberOf(metric: Metric): Value {
  const whole = metric.uint64Value ?? metric.int64Value
  if (whole !== undefined) return Number(whole)
  return metric.doubleValue ?? metric.boolValue ?? metric.stringValue ?? ''
}

function histogramOf({ name, part }: NonNullable<Metric['histogram']>): NonNullable<MetricRow['histogram']> {
  return { name, part: part.toLowerCase() as HistogramPart }
}

/** A row for each metric; `since`: the sample before and the seconds from it, for the rates of counters. */
export function rowsOf(sample: TelemetrySample, since?: { sample?: TelemetrySample; seconds: number }): MetricRow[] {
  const previous = new Map(since?.sample?.metricCollections.map(({ path, metrics }) => [path, metrics]))
  const rows: MetricRow[] = []
  for (const { path, metrics } of sample.metricCollections) {
    for (const [name, metric] of Object.entries(metrics)) {
      const value = numberOf(metric)
      const old = previous.get(path)?.[name]
      const start = old === undefined ? 0 : Number(numberOf(old))
      const row: MetricRow = {
        path,
        name,
        unit: metric.unit,
        kind: metric.kind === 'COUNTER' ? 'counter' : 'gauge',
        value,
      }
      if (metric.histogram) row.histogram = histogramOf(metric.histogram)
      if (metric.occupancy) row.occupancy = metric.occupancy
      // Averages of the whole run are shown where something was counted, as of a run in the foreground.
      const isComparable = since !== undefined && (since.sample === undefined ? Number(value) > 0 : old !== undefined)
      if (isComparable && typeof value === 'number') row.rate = rateOf(row, value - start, since.seconds)
      rows.push(row)
    }
  }
  return rows
}

/** `{component: {metric: value}}`, as a run in the foreground and a simulation print it. */
export function metricsOf({ metricCollections }: TelemetrySample): Record<string, Record<string, Value>> {
  return Object.fromEntries(
    metricCollections.map(({ path, metrics }) => [
      path,
      Object.fromEntries(Object.entries(metrics).map(([name, metric]) => [name, numberOf(metric)])),
    ]),
  )
}

/** Seconds from the beginning of a run to its end; 0 where either is unknown, and where the clock was set back and a node left it at that. */
export const secondsOf = ({ startedAt, endedAt }: Run): number =>
  startedAt === undefined || endedAt === undefined ? 0 : Math.max(0, Date.parse(endedAt) - Date.parse(startedAt)) / 1000
