/** Follows the metrics of a run: a table that is redrawn, or a JSON object a line; and sums up once the run has ended. */
import type { HistogramPart } from '../dataplane/engine/histogram.ts'
import { ApiFailure } from './api-failure.ts'
import type { ApiClient } from './client.ts'
import { spanText } from './durations.ts'
import { Failure } from './failure.ts'
import { kpisTable } from './kpis-table.ts'
import type { Run, TelemetrySample } from './messages.ts'
import { type MetricRow, metricsTable, rateOf } from './metrics-table.ts'
import { type Format, interruption } from './options.ts'
import { LiveRegion, paint, print } from './terminal.ts'

export interface TelemetryOptions {
  output: Format
  /** In tables, places that nobody has too. */
  all?: boolean
  /** End after so many samples. */
  count?: number
  /** Only these; none: all. */
  components: readonly string[]
}

type Metric = TelemetrySample['metricCollections'][number]['metrics'][string]
type Value = number | string | boolean

/** 64-bit integers come as strings; what a counter loses beyond 2^53 does not show in a table. */
function numberOf(metric: Metric): Value {
  const whole = metric.uint64Value ?? metric.int64Value
  if (whole !== undefined) return Number(whole)
  return metric.doubleValue ?? metric.boolValue ?? metric.stringValue ?? ''
}

function histogramOf({ name, part }: NonNullable<Metric['histogram']>): NonNullable<MetricRow['histogram']> {
  return { name, part: part.toLowerCase() as HistogramPart }
}

/** A row for each metric; `since`: the sample before and the seconds from it, for the rates of counters. */
function rowsOf(sample: TelemetrySample, since?: { sample?: TelemetrySample; seconds: number }): MetricRow[] {
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
function metricsOf({ metricCollections }: TelemetrySample): Record<string, Record<string, Value>> {
  return Object.fromEntries(
    metricCollections.map(({ path, metrics }) => [
      path,
      Object.fromEntries(Object.entries(metrics).map(([name, metric]) => [name, numberOf(metric)])),
    ]),
  )
}

const secondsBetween = (from: string | undefined, to: string | undefined): number =>
  from === undefined || to === undefined ? 0 : (Date.parse(to) - Date.parse(from)) / 1000

function only(sample: TelemetrySample, components: readonly string[]): TelemetrySample {
  if (components.length === 0) return sample
  return { ...sample, metricCollections: sample.metricCollections.filter(({ path }) => components.includes(path)) }
}

/** The table of its KPIs, with what sets it apart from what follows; nothing where it has none. */
const kpisText = ({ kpis }: TelemetrySample): string => (kpis.length === 0 ? '' : `${kpisTable(kpis)}\n\n`)

/** What a run that has ended came to. `sample`: its last one, when there is one. */
function printSummary(run: Run, sample: TelemetrySample | undefined, { output, all }: TelemetryOptions): void {
  const seconds = secondsBetween(run.startedAt, run.endedAt)
  const { outcome = 'FAILED', error } = run
  if (output === 'json') {
    const { kpis = [] } = sample ?? {}
    print(JSON.stringify({ outcome, error, seconds, kpis, metrics: sample === undefined ? {} : metricsOf(sample) }))
    return
  }
  const keys = new Map<string, string>()
  const rows = sample && rowsOf(sample, { seconds })
  const counts = rows === undefined ? 'no counts of this run are kept' : metricsTable(rows, keys, { all })
  print(
    `${sample === undefined ? '' : kpisText(sample)}${counts}\n\n${outcome.toLowerCase()} after ${spanText(seconds)}`,
  )
}

/**
 * Shows samples until the run has ended, `count` were seen, or Ctrl-C. Gives the record of a run that has ended, which is summed up then:
 * its last counts and how it ended.
 */
export async function followTelemetry(
  client: ApiClient,
  node: string,
  run: string,
  options: TelemetryOptions,
): Promise<Run | undefined> {
  const { count, components } = options
  const live = new LiveRegion()
  const stop = interruption()
  const over = new AbortController()
  const signal = AbortSignal.any([stop, over.signal])
  const before = await client.getRun(node, run)
  // Of a run that has ended there is one sample, its last.
  const hasEnded = before?.state === 'ENDED'
  let last: TelemetrySample | undefined
  let seen = 0
  try {
    for await (const given of client.openTelemetryStream(node, run, signal)) {
      seen++
      const sample = only(given, components)
      if (!hasEnded) show(sample, last, options, live)
      last = sample
      if (seen === count && !hasEnded) over.abort()
    }
  } catch (error) {
    if (!(error instanceof ApiFailure && error.code === 'ABORTED')) throw error
    // The stream ends with the run: its record says how.
    const ended = await client.getRun(node, run)
    if (ended?.state !== 'ENDED') throw error
    if (live.available) live.clear()
    printSummary(ended, last, options)
    return ended
  }
  live.keep()
  if (!signal.aborted) throw new Failure('the stream of telemetry ended')
  return undefined
}

function show(
  sample: TelemetrySample,
  last: TelemetrySample | undefined,
  { output, all }: TelemetryOptions,
  live: LiveRegion,
): void {
  if (output === 'json') {
    print(JSON.stringify({ timestamp: sample.timestamp, kpis: sample.kpis, metrics: metricsOf(sample) }))
    return
  }
  const since =
    last === undefined ? undefined : { sample: last, seconds: secondsBetween(last.timestamp, sample.timestamp) }
  const metrics = metricsTable(rowsOf(sample, since), new Map(), { all })
  const text = `${paint(sample.timestamp ?? '', 'bold')}\n${kpisText(sample)}${metrics}`
  if (live.available) live.draw(text)
  else print(`${text}\n`)
}
