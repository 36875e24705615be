/** Metrics as tables: histograms in one row, per component, with rates where two samples are known. */
import type { HistogramPart } from '../dataplane/engine/histogram.ts'
import type { MetricEntry } from '../dataplane/engine/metrics.ts'
import { isTime, timeText } from './durations.ts'
import { type Column, named, number, paint, scaled, TOGETHER, table } from './terminal.ts'

/** One metric as a table needs it. */
export interface MetricRow extends Pick<MetricEntry, 'path' | 'name' | 'unit' | 'kind' | 'histogram' | 'occupancy'> {
  value: number | string | boolean
  /** Change per second since the sample before. */
  rate?: number | undefined
}

/** The numbers of a histogram as its row shows them, after how many values it has. */
const SHAPE: readonly HistogramPart[] = ['min', 'mean', 'p50', 'p90', 'p99', 'max']

/** What a metric that rose by `change` in so many seconds rose by per second; undefined where that says nothing: only what is counted has a rate. */
export function rateOf(
  { kind, unit, histogram }: Omit<MetricRow, 'value'>,
  change: number,
  seconds: number,
): number | undefined {
  const isCounted = kind === 'counter' && histogram === undefined && !isTime(unit)
  return isCounted && seconds > 0 ? change / seconds : undefined
}

interface Line {
  path: string
  name: string
  value: string
  rate: string
  unit: string
}

/** How values of `unit` are written, and the unit that is left to say: a time has its own with each value. */
function writer(unit: string, plain: (value: number) => string) {
  return isTime(unit) ? { text: (value: number) => timeText(value, unit), unit: '' } : { text: plain, unit }
}

/** One line for each metric, and one for all numbers of a histogram, where the first of them stands. */
function lines(rows: readonly MetricRow[]): Line[] {
  const histograms = new Map<string, Map<HistogramPart, MetricRow>>()
  const result: (() => Line)[] = []
  for (const row of rows) {
    if (row.histogram === undefined) {
      result.push(() => lineOf(row))
      continue
    }
    const { name, part } = row.histogram
    const key = JSON.stringify([row.path, name])
    let parts = histograms.get(key)
    if (parts === undefined) {
      const own = new Map<HistogramPart, MetricRow>()
      histograms.set(key, own)
      result.push(() => histogramLine(row.path, name, own))
      parts = own
    }
    parts.set(part, row)
  }
  return result.map((line) => line())
}

function lineOf({ path, name, unit: given, value, rate }: MetricRow): Line {
  const { text, unit } = writer(given, number)
  return {
    path,
    name,
    value: typeof value === 'number' ? text(value) : String(value),
    rate: rate === undefined ? '' : `${scaled(rate)}/s`,
    unit,
  }
}

function histogramLine(path: string, name: string, parts: ReadonlyMap<HistogramPart, MetricRow>): Line {
  const count = Number(parts.get('count')?.value ?? 0)
  const { text, unit } = writer(parts.get('min')?.unit ?? '', scaled)
  const shape = SHAPE.map((part) => `${part} ${text(Number(parts.get(part)?.value ?? 0))}`)
  const numbers = shape.map((each) => each.replaceAll(' ', TOGETHER)).join(`${TOGETHER} `)
  const [value, rate] = count === 0 ? ['nothing recorded', ''] : [numbers, `n=${number(count)}`]
  return { path, name, value, rate, unit }
}

/** The rows that are no place's, and those of places that somebody has. */
function inUse(rows: readonly MetricRow[]): MetricRow[] {
  const place = (path: string, name: string) => JSON.stringify([path, name])
  const empty = new Set(rows.flatMap(({ path, name, value }) => (Number(value) === 0 ? [place(path, name)] : [])))
  return rows.filter(({ path, occupancy }) => occupancy === undefined || !empty.has(place(path, occupancy)))
}

/**
 * The table of `given`, each component's name on its first row, its key from `keys` below it. Rows of places that nobody has are counted
 * below it only, unless `all` are asked for.
 */
export function metricsTable(
  given: readonly MetricRow[],
  keys: ReadonlyMap<string, string> = new Map(),
  { all = false } = {},
): string {
  const rows = all ? given : inUse(given)
  const hidden = given.length - rows.length
  const columns: Column[] = [
    { title: 'COMPONENT' },
    { title: 'METRIC' },
    { title: 'VALUE', align: 'right', wrap: true },
    { title: 'UNIT' },
    { title: 'RATE', align: 'right' },
  ]
  let last: string | null = null
  let below = ''
  const cells = lines(rows).map(({ path, name, value, rate, unit }) => {
    const first = path === last ? below : paint(named(path) || '(run)', 'cyan')
    const key = keys.get(path)
    below = path !== last && key ? paint(`(${key})`, 'dim') : ''
    last = path
    return [first, named(name), value, named(unit), rate]
  })
  const rated = cells.some((row) => row[4] !== '')
  const shown = table(rated ? columns : columns.slice(0, 4), cells)
  if (hidden === 0) return shown
  return `${shown}\n${paint(`${number(hidden)} metrics of places that nobody has are left out: --all shows them`, 'dim')}`
}
