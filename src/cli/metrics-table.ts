/** Metrics as tables: histograms in one row, per component, with rates where two samples are known. */
import { isTime, timeText } from './durations.ts'
import { type Column, number, paint, scaled, table } from './terminal.ts'

/** One metric as a table needs it. */
export interface MetricRow {
  path: string
  name: string
  unit: string
  kind: 'counter' | 'gauge'
  value: number | string | boolean
  /** Change per second since the sample before. */
  rate?: number | undefined
}

const PARTS = ['count', 'min', 'mean', 'p50', 'p90', 'p99', 'max'] as const

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

/** Joins the seven parts of a histogram into one line. */
function lines(rows: readonly MetricRow[]): Line[] {
  const known = new Map(rows.map((row) => [`${row.path}\n${row.name}`, row]))
  const result: Line[] = []
  const taken = new Set<string>()
  for (const row of rows) {
    if (taken.has(`${row.path}\n${row.name}`)) continue
    const base = row.name.endsWith('_count') ? row.name.slice(0, -'_count'.length) : null
    const parts = base === null ? [] : PARTS.map((part) => known.get(`${row.path}\n${base}_${part}`))
    if (base !== null && parts.every((part) => part !== undefined)) {
      for (const part of parts) taken.add(`${part?.path}\n${part?.name}`)
      const [count, ...rest] = parts.map((part) => Number(part?.value))
      const { text, unit } = writer(parts[1]?.unit ?? '', scaled)
      const shape = PARTS.slice(1).map((part, i) => `${part} ${text(rest[i] as number)}`)
      const value = count === 0 ? 'nothing recorded' : shape.join('  ')
      result.push({ path: row.path, name: base, value, rate: count === 0 ? '' : `n=${number(count)}`, unit })
    } else {
      const { text, unit } = writer(row.unit, number)
      const value = typeof row.value === 'number' ? text(row.value) : String(row.value)
      const rate = row.rate === undefined ? '' : `${scaled(row.rate)}/s`
      result.push({ path: row.path, name: row.name, value, rate, unit })
    }
  }
  return result
}

/** The table of `rows`, each component's name on its first row, its key from `keys` below it. */
export function metricsTable(rows: readonly MetricRow[], keys: ReadonlyMap<string, string> = new Map()): string {
  const columns: Column[] = [
    { title: 'COMPONENT' },
    { title: 'METRIC' },
    { title: 'VALUE', align: 'right' },
    { title: 'UNIT' },
    { title: 'RATE', align: 'right' },
  ]
  let last: string | null = null
  let below = ''
  const cells = lines(rows).map(({ path, name, value, rate, unit }) => {
    const first = path === last ? below : paint(path || '(run)', 'cyan')
    const key = keys.get(path)
    below = path !== last && key ? paint(`(${key})`, 'dim') : ''
    last = path
    return [first, name, value, unit, rate]
  })
  const rated = cells.some((row) => row[4] !== '')
  return table(rated ? columns : columns.slice(0, 4), cells)
}
