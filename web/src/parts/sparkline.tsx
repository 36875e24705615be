/** A small curve of the last values, on a canvas: hundreds of them are drawn again each second. */
import { useEffect, useRef } from 'react'
import { useTheme } from '../app/theme.ts'

interface Props {
  /** Oldest first. */
  readonly values: readonly number[]
  /** How many values the width stands for; the newest is at the right edge. */
  readonly span: number
  /** What the full height stands for at least. */
  readonly least: number
  /** Name of a custom property with a colour, as in `--accent`. */
  readonly colour: string
  /** What it shows, for who cannot see it. */
  readonly label: string
}

const WIDTH = 88
const HEIGHT = 28

export function Sparkline({ values, span, least, colour, label }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const theme = useTheme()
  // biome-ignore lint/correctness/useExhaustiveDependencies: the theme decides what the colour is
  useEffect(() => {
    if (canvas.current !== null) draw(canvas.current, values, span, least, colour)
  }, [values, span, least, colour, theme])
  return <canvas ref={canvas} className="sparkline" role="img" aria-label={label} />
}

function draw(canvas: HTMLCanvasElement, values: readonly number[], span: number, least: number, name: string): void {
  const ratio = devicePixelRatio
  canvas.width = WIDTH * ratio
  canvas.height = HEIGHT * ratio
  const context = canvas.getContext('2d')
  if (context === null) return
  const colour = getComputedStyle(document.documentElement).getPropertyValue(name)
  context.scale(ratio, ratio)
  const top = Math.max(least, ...values)
  const step = WIDTH / (span - 1)
  const x = (index: number): number => WIDTH - (values.length - 1 - index) * step
  const y = (value: number): number => HEIGHT - 1.5 - (value / top) * (HEIGHT - 3)
  context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--line')
  context.fillRect(0, HEIGHT - 1, WIDTH, 1)
  context.beginPath()
  for (const [index, value] of values.entries()) context.lineTo(x(index), y(value))
  context.strokeStyle = colour
  context.lineWidth = 1.5
  context.lineJoin = 'round'
  context.stroke()
  context.lineTo(WIDTH, HEIGHT)
  context.lineTo(x(0), HEIGHT)
  context.globalAlpha = 0.14
  context.fillStyle = colour
  context.fill()
}
