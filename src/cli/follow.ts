/** Follows a run: its log line by line, its telemetry as a table that is redrawn. */
import type { ApiClient, LogMessage, TelemetrySample } from './client.ts'
import { ApiFailure } from './client.ts'
import { type MetricRow, metricsTable } from './metrics-table.ts'
import { type Format, interruption } from './options.ts'
import { LiveRegion, paint, print } from './terminal.ts'

const COLOURS = { STATE: 'cyan', DEBUG: 'dim', INFO: 'dim', WARN: 'yellow', ERROR: 'red', FATAL: 'red' } as const

function printMessage({ timestamp = '', level, component, message, fields }: LogMessage): void {
  const more = Object.entries(fields ?? {}).map(([name, value]) => ` ${paint(`${name}=${value}`, 'dim')}`)
  print(
    `${timestamp} ${paint(level.padEnd(5), COLOURS[level])} ${component ? `${component}: ` : ''}${message}${more.join('')}`,
  )
}

/** The line that ends every run's log. */
const ENDED = /^ended: ([A-Z]+)/

/** Prints a run's log, `lines` past ones first, until the run has ended or Ctrl-C; gives the outcome once it has ended. */
export async function followLog(
  client: ApiClient,
  node: string,
  run: string,
  { lines, output }: { lines: number; output: Format },
): Promise<string | undefined> {
  // At least one past line is asked for: it tells whether the run has ended already.
  let hidden = lines === 0
  const asked = Math.max(lines, 1)
  for await (const { messages } of client.openLogStream(node, run, asked, interruption())) {
    for (const message of messages) {
      const outcome = message.component === '' ? ENDED.exec(message.message)?.[1] : undefined
      if (!hidden || outcome) {
        if (output === 'json') print(JSON.stringify(message))
        else printMessage(message)
      }
      hidden = false
      if (outcome) return outcome
    }
  }
  return undefined
}

function rowsOf(sample: TelemetrySample, before: TelemetrySample | null, only: readonly string[]): MetricRow[] {
  const elapsed = before ? (Date.parse(sample.timestamp ?? '') - Date.parse(before.timestamp ?? '')) / 1000 : 0
  const previous = new Map(before?.metricCollections.map(({ path, metrics }) => [path, metrics]))
  const rows: MetricRow[] = []
  for (const { path, metrics } of sample.metricCollections) {
    if (only.length > 0 && !only.includes(path)) continue
    for (const [name, metric] of Object.entries(metrics)) {
      const value = numberOf(metric)
      const old = previous.get(path)?.[name]
      const counted = metric.kind === 'COUNTER' && typeof value === 'number' && old && elapsed > 0
      const rate = counted ? (value - Number(numberOf(old))) / elapsed : undefined
      rows.push({ path, name, unit: metric.unit, kind: metric.kind === 'COUNTER' ? 'counter' : 'gauge', value, rate })
    }
  }
  return rows
}

type Metric = TelemetrySample['metricCollections'][number]['metrics'][string]

/** 64-bit integers come as strings; what a counter loses beyond 2^53 does not show in a table. */
function numberOf(metric: Metric): number | string | boolean {
  const whole = metric.uint64Value ?? metric.int64Value
  if (whole !== undefined) return Number(whole)
  return metric.doubleValue ?? metric.boolValue ?? metric.stringValue ?? ''
}

/** Shows samples until the run ends, `count` were seen, or Ctrl-C; gives how many. */
export async function followTelemetry(
  client: ApiClient,
  node: string,
  run: string,
  options: { output: Format; count?: number; components: readonly string[] },
): Promise<number> {
  const live = new LiveRegion()
  const stop = interruption()
  const over = new AbortController()
  const signal = AbortSignal.any([stop, over.signal])
  let before: TelemetrySample | null = null
  let seen = 0
  try {
    for await (const sample of client.openTelemetryStream(node, run, signal)) {
      seen++
      if (options.output === 'json') print(JSON.stringify(sample))
      else {
        const text = `${paint(sample.timestamp ?? '', 'bold')}\n${metricsTable(rowsOf(sample, before, options.components))}`
        if (live.available) live.draw(text)
        else print(`${text}\n`)
      }
      before = sample
      if (seen === options.count) over.abort()
    }
  } catch (error) {
    // A stopped run ends its stream with ABORTED: after samples that is the ordinary end.
    if (!(error instanceof ApiFailure && error.code === 'ABORTED' && seen > 0)) throw error
    live.keep()
    if (options.output !== 'json') print(error.message)
  }
  live.keep()
  return seen
}
