/** KPIs as a table, and in a line. */
import type { Kpi } from '../contract/types.ts'
import { type Colour, named, number, paint, scaled, scaledWith, table } from './terminal.ts'

/** One row: a KPI, or one of its values. */
interface KpiRow {
  label: string
  value: string
  unit: string
  /** What else there is to say. */
  note: string
}

/** Those of the colours that a KPI may name that a terminal has too. */
const COLOURS: readonly string[] = ['red', 'green', 'yellow', 'cyan'] satisfies Colour[]

const coloured = (text: string, color = ''): string => (COLOURS.includes(color) ? paint(text, color as Colour) : text)

/** `min 1  avg 2  max 3`, of those that are there. */
function spread(parts: Readonly<Record<string, number | undefined>>): string {
  return Object.entries(parts)
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${scaled(value)}`]))
    .join('  ')
}

function rowsOf(kpi: Kpi): KpiRow[] {
  const label = kpi.label || kpi.id
  const row = (value: string, unit = '', note = ''): KpiRow => ({ label, value, unit, note })
  if (kpi.error !== undefined) return [row('–', '', paint(named(kpi.error), 'red'))]
  if (kpi.value) return [row(number(kpi.value.value), kpi.value.unit)]
  if (kpi.gauge) return [row(number(kpi.gauge.value * 100), '%')]
  if (kpi.valueOverTime) {
    const { value, unit, min, avg, max } = kpi.valueOverTime
    return [row(number(value), unit, spread({ min, avg, max }))]
  }
  if (kpi.valueOverTimeComparison) {
    const { unit = '', ...of } = kpi.valueOverTimeComparison
    const one = spread({ min: of.value1Min, avg: of.value1Avg, max: of.value1Max })
    const two = spread({ min: of.value2Min, avg: of.value2Avg, max: of.value2Max })
    return [
      { label: `${label}: ${of.value1Text || '1'}`, value: number(of.value1), unit, note: one },
      { label: `${label}: ${of.value2Text || '2'}`, value: number(of.value2), unit, note: two },
    ]
  }
  if (kpi.dataRate) {
    const { goodput, overhead, type } = kpi.dataRate
    const unit = type === 'RATE' ? 'bit/s' : 'bytes'
    return [row(scaledWith(goodput, unit), '', overhead === 0 ? '' : `and ${scaledWith(overhead, unit)} of overhead`)]
  }
  const text = kpi.valueToText ?? kpi.valueToTextConditions
  if (text) return [row(coloured(named(text.text), text.color))]
  const { values = [], unit = '' } = kpi.multipleValues ?? kpi.multipleValuesOverTime ?? {}
  return values.map(({ label: own, value, color, description = '' }) => {
    return {
      label: own ? `${label}: ${own}` : label,
      value: coloured(number(value), color),
      unit,
      note: named(description),
    }
  })
}

/** The rows of all: what a configuration calls them hides, moves and colours nothing. */
const allRows = (kpis: readonly Kpi[]): KpiRow[] =>
  kpis.flatMap(rowsOf).map((row) => ({ ...row, label: named(row.label), unit: named(row.unit) }))

/** The table of `kpis`, as wide as the terminal at most. */
export function kpisTable(kpis: readonly Kpi[], width?: number): string {
  const rows = allRows(kpis)
  const hasNotes = rows.some(({ note }) => note !== '')
  const columns = [{ title: 'KPI' }, { title: 'VALUE', align: 'right' as const }, { title: 'UNIT' }]
  return table(
    hasNotes ? [...columns, { title: 'NOTE', wrap: true }] : columns,
    rows.map(({ label, value, unit, note }) => (hasNotes ? [label, value, unit, note] : [label, value, unit])),
    width,
  )
}

/** The same in one line for logs. */
export function kpisLine(kpis: readonly Kpi[]): string {
  return allRows(kpis)
    .map(({ label, value, unit, note }) => `${label} ${value}${unit && ` ${unit}`}${value === '–' ? ` (${note})` : ''}`)
    .join('  ')
}
