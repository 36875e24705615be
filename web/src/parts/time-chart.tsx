/** Curves over time, drawn by uPlot; what they show stands below as text. */
import { useEffect, useRef } from 'react'
import uPlot from 'uplot'
import { useTheme } from '../app/theme.ts'
import type { Series } from '../data/history.ts'
import 'uplot/dist/uPlot.min.css'
import { lastOf, stacked } from './chart-data.ts'
import { quantityText } from './quantity.ts'
import './time-chart.css'

export interface Curve {
  readonly label: string
  /** A colour, or the name of a custom property that has one. */
  readonly colour: string
  readonly values: Series
  /** A thin broken line: a bound or a mean of another curve. */
  readonly isAside?: boolean
}

interface Props {
  /** What it shows, for who cannot see it. */
  readonly label: string
  /** Seconds since 1970. */
  readonly times: readonly number[]
  readonly curves: readonly Curve[]
  readonly unit: string
  /** Areas on top of each other. */
  readonly isStack?: boolean
  readonly height?: number
  /** What the full height stands for at least. */
  readonly least?: number
}

const HEIGHT = 180
/** Seconds that the width stands for, at least. */
const WIDTH_SECONDS = 60
/** Letters of a unit that an axis has room for. */
const MAX_AXIS_UNIT = 5

export function TimeChart({ label, times, curves, unit, isStack = false, height = HEIGHT, least = 0 }: Props) {
  const host = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot>(null)
  const theme = useTheme()
  // A chart is made anew when what it consists of changes, not when its numbers do.
  const shape = JSON.stringify([
    theme,
    unit,
    isStack,
    height,
    least,
    curves.map(({ colour, isAside, label }) => [colour, isAside, label]),
  ])
  // biome-ignore lint/correctness/useExhaustiveDependencies: the shape stands for what the options are made of
  useEffect(() => {
    const element = host.current
    if (element === null) return
    const made = new uPlot(optionsOf(curves, unit, isStack, height, least, element.clientWidth), [[]], element)
    chart.current = made
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
      chart.current = null
    }
  }, [shape])
  useEffect(() => {
    const rows = curves.map(({ values }) => values)
    chart.current?.setData([[...times], ...(isStack ? stacked(rows) : rows).map(column)])
  }, [times, curves, isStack])
  return (
    <div className="time-chart">
      <div ref={host} role="img" aria-label={`${label}, over time`} style={{ minHeight: height }} />
      <ul className="legend small">
        {curves.map(({ label: name, colour, values, isAside = false }) => (
          <li key={name}>
            <i className={isAside ? 'aside' : ''} style={{ color: cssColour(colour) }} aria-hidden="true" />
            {name} <b>{textOf(lastOf(values), unit)}</b>
          </li>
        ))}
      </ul>
    </div>
  )
}

const column = (series: Series): (number | null)[] => series.map((value) => value ?? null)

const textOf = (value: number | undefined, unit: string): string =>
  value === undefined ? '–' : quantityText(value, unit)

/** For a style sheet. */
const cssColour = (colour: string): string => (colour.startsWith('--') ? `var(${colour})` : colour)

/** For a canvas. */
function canvasColour(colour: string): string {
  return colour.startsWith('--') ? getComputedStyle(document.documentElement).getPropertyValue(colour).trim() : colour
}

function optionsOf(
  curves: readonly Curve[],
  unit: string,
  isStack: boolean,
  height: number,
  least: number,
  width: number,
): uPlot.Options {
  const axis: uPlot.Axis = {
    stroke: canvasColour('--quiet'),
    grid: { stroke: canvasColour('--line'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui, sans-serif',
  }
  return {
    // On the right there is room for half of the last time.
    ...{ width, height, legend: { show: false }, padding: [8, 26, 0, 0] },
    cursor: { y: false, points: { show: true }, drag: { x: false, y: false } },
    scales: {
      x: { range: ({ data: [times] }) => spanOf(times) },
      y: {
        range: (_, min, max) => {
          const [low, high] = [Math.min(0, min ?? 0), Math.max(least, max ?? 0)]
          return [low * 1.1, high > low ? high * 1.1 : low + 1]
        },
      },
    },
    axes: [
      { ...axis, space: 70, size: 26, values: (_, splits) => splits.map(clockText) },
      { ...axis, space: 34, size: 76, values: (_, splits) => splits.map((value) => axisText(value, unit)) },
    ],
    series: [{}, ...curves.map((curve) => seriesOf(curve, isStack))],
    // Areas of a stack reach down to the one below.
    bands: isStack ? curves.slice(1).map((_, i) => ({ series: [i + 2, i + 1] as [number, number] })) : [],
  }
}

/** The seconds that the width stands for; of a single point uPlot would make a day. */
function spanOf(times: ArrayLike<number>): [number, number] {
  const last = times[times.length - 1] ?? 0
  return [Math.min(times[0] ?? 0, last - WIDTH_SECONDS), last]
}

/** Hours, minutes and seconds of the reader's own clock. */
function clockText(seconds: number): string {
  return new Date(seconds * 1000).toTimeString().slice(0, 8)
}

/** Long units stand below the chart only. */
function axisText(value: number, unit: string): string {
  return quantityText(value, unit.length > MAX_AXIS_UNIT && unit !== 'fraction' ? '' : unit)
}

function seriesOf({ label, colour, isAside = false }: Curve, isStack: boolean): uPlot.Series {
  const stroke = canvasColour(colour)
  return {
    label,
    stroke,
    width: isAside ? 1 : 1.75,
    points: { show: false },
    ...(isAside ? { dash: [4, 4] } : {}),
    ...(isStack ? { fill: translucent(stroke) } : {}),
  }
}

/** The colour with a third of its strength; any that a canvas knows. */
function translucent(colour: string): string {
  const context = document.createElement('canvas').getContext('2d')
  if (context === null) return colour
  context.fillStyle = colour
  return /^#[0-9a-f]{6}$/.test(context.fillStyle) ? `${context.fillStyle}55` : colour
}
