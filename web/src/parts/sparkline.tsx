/** A small curve of the last values. It is SVG: each canvas would be a layer that the browser puts together anew in every frame, and there are hundreds. */
import { memo } from 'react'
import { curveOf, HEIGHT, WIDTH } from './sparkline-path.ts'

interface Props {
  /** Oldest first. */
  readonly values: readonly number[]
  /** How many values the width stands for; the newest is at the right edge. */
  readonly span: number
  /** What the full height stands for at least. */
  readonly least: number
  /** Whether more of it is bad. */
  readonly isBad?: boolean
  /** What it shows, for who cannot see it. */
  readonly label: string
}

export const Sparkline = memo(({ values, span, least, isBad = false, label }: Props) => {
  const { line, area } = curveOf(values, span, least)
  return (
    <svg
      className={isBad ? 'sparkline bad' : 'sparkline'}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={label}
    >
      <path className="ground" d={`M0 ${HEIGHT - 0.5}H${WIDTH}`} />
      <path className="area" d={area} />
      <path className="line" d={line} />
    </svg>
  )
})
