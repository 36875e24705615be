/** What a KPI is drawn as, whatever the form that its configuration gives it. */
import type { Kpi } from '@penstock/client'
import { type History, kpiKey, type Series } from '../../data/history.ts'
import { CURVES } from '../../parts/chart-data.ts'
import type { Curve } from '../../parts/time-chart.tsx'

export interface Item {
  readonly label: string
  readonly value: number
  readonly description?: string | undefined
  readonly colour?: string | undefined
}

export type Shape =
  | { readonly kind: 'number'; readonly value: number; readonly unit: string }
  /** 0 to 1. */
  | { readonly kind: 'gauge'; readonly value: number }
  | { readonly kind: 'text'; readonly text: string; readonly colour: string | undefined }
  | { readonly kind: 'numbers'; readonly unit: string; readonly items: readonly Item[] }
  | { readonly kind: 'curves'; readonly unit: string; readonly isStack: boolean; readonly curves: readonly Curve[] }
  | { readonly kind: 'nothing'; readonly why: string }

/** Columns that a KPI takes where it does not say, by its shape. */
const COLUMNS: Readonly<Partial<Record<Shape['kind'], number>>> = { curves: 2, numbers: 2 }

/** Columns of four, at least one. */
export function columnsOf({ columnSpan = 0 }: Kpi, shape: Shape): number {
  return Math.min(4, columnSpan > 0 ? columnSpan : (COLUMNS[shape.kind] ?? 1))
}

export function shapeOf(kpi: Kpi, history: History): Shape {
  const { value, gauge, dataRate, multipleValues, multipleValuesOverTime: many } = kpi
  const series = (index: number): Series => history.values(kpiKey(kpi.id, index))
  if (kpi.error !== undefined) return { kind: 'nothing', why: kpi.error }
  if (value !== undefined) return { kind: 'number', value: Number(value.value), unit: value.unit ?? '' }
  if (gauge !== undefined) return { kind: 'gauge', value: Number(gauge.value) }
  const text = kpi.valueToText ?? kpi.valueToTextConditions
  if (text !== undefined) return { kind: 'text', text: text.text, colour: text.color || undefined }
  if (multipleValues !== undefined) {
    return { kind: 'numbers', unit: multipleValues.unit ?? '', items: multipleValues.values.map(itemOf) }
  }
  if (many !== undefined) {
    const curves = many.values.map(({ label, color }, i) => curve(label, color || paletteOf(i), series(i)))
    return { kind: 'curves', unit: many.unit ?? '', isStack: many.graphType === 'AREA_STACK', curves }
  }
  if (dataRate !== undefined) {
    const curves = [curve('Goodput', paletteOf(0), series(0)), curve('Overhead', paletteOf(1), series(1))]
    return { kind: 'curves', unit: dataRate.type === 'RATE' ? 'bit/s' : 'bytes', isStack: true, curves }
  }
  return overTime(kpi, series)
}

/** One value or two over time, each with its least, greatest and mean where the configuration asks for them. */
function overTime({ valueOverTime: one, valueOverTimeComparison: two }: Kpi, series: (index: number) => Series): Shape {
  if (one !== undefined) {
    const asides = asidesOf('', paletteOf(0), [one.min, one.max, one.avg], series, 1)
    const curves = [curve('Now', paletteOf(0), series(0)), ...asides]
    return { kind: 'curves', unit: one.unit ?? '', isStack: false, curves }
  }
  if (two === undefined) return { kind: 'nothing', why: 'it has no value yet' }
  const [first, second] = [two.value1Text || 'First', two.value2Text || 'Second']
  const curves = [
    curve(first, paletteOf(0), series(0)),
    ...asidesOf(`${first}, `, paletteOf(0), [two.value1Min, two.value1Max, two.value1Avg], series, 2),
    curve(second, paletteOf(1), series(1)),
    ...asidesOf(`${second}, `, paletteOf(1), [two.value2Min, two.value2Max, two.value2Avg], series, 5),
  ]
  return { kind: 'curves', unit: two.unit ?? '', isStack: false, curves }
}

const ASIDES = ['least', 'greatest', 'mean'] as const

function asidesOf(
  prefix: string,
  colour: string,
  values: readonly (unknown | undefined)[],
  series: (index: number) => Series,
  first: number,
): readonly Curve[] {
  return ASIDES.flatMap((label, i) =>
    values[i] === undefined ? [] : [{ ...curve(prefix + label, colour, series(first + i)), isAside: true }],
  )
}

const curve = (label: string, colour: string, values: Series): Curve => ({ label, colour, values })

const paletteOf = (index: number): string => CURVES[index % CURVES.length] as string

function itemOf({
  label,
  value,
  description,
  color,
}: {
  label: string
  value: unknown
  description?: string
  color?: string
}): Item {
  return { label, value: Number(value), description, colour: color || undefined }
}
