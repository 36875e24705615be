/** The shape of a small curve, in the units of its box. */

export const WIDTH = 88
export const HEIGHT = 28

/** Half the width of the line, which is all drawn at the top and at the ground. */
const EDGE = 1.5

export interface Curve {
  /** Data of an SVG path; empty without values. */
  readonly line: string
  /** What is below it. */
  readonly area: string
}

/** The values, oldest first, as a curve that ends at the right edge: `span` of them fill the width, and `least` or the largest the height. */
export function curveOf(values: readonly number[], span: number, least: number): Curve {
  if (values.length === 0) return { line: '', area: '' }
  const top = Math.max(least, ...values)
  const step = WIDTH / (span - 1)
  const first = WIDTH - (values.length - 1) * step
  const points = values.map((value, index) => {
    const y = HEIGHT - EDGE - (value / top) * (HEIGHT - 2 * EDGE)
    return `${round(first + index * step)} ${round(y)}`
  })
  const line = `M${points.join('L')}`
  return { line, area: `${line}V${HEIGHT}H${round(first)}Z` }
}

/** Hundredths: as fine as any screen. */
function round(value: number): number {
  return Math.round(value * 100) / 100
}
