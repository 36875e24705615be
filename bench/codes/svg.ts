/** Charts as SVG text: panels side by side with axes, lines and marks. Light or dark, as the reader's system is. */

interface Tick {
  at: number
  text: string
}

/** From values to 0..1 along an axis. */
export interface Axis {
  title: string
  ticks: readonly Tick[]
  /** 0 at the left or bottom, 1 at the right or top. */
  place(value: number): number
}

interface Point {
  x: number
  y: number
}

export interface Series {
  /** Names its colour and mark, from 0. */
  style: number
  name: string
  points: readonly Point[]
  /** Whether the points are joined (default true). */
  joined?: boolean
  dashed?: boolean
}

export interface Panel {
  title: string
  series: readonly Series[]
  /** A vertical line with a text beside it. */
  limit?: { x: number; text: string }
}

export interface Chart {
  title: string
  /** What it is for who does not see it. */
  description: string
  x: Axis
  y: Axis
  /** Two in a row. */
  panels: readonly Panel[]
}

const PANEL = { width: 390, height: 250, left: 66, right: 14, top: 34, bottom: 44 }
const HEAD = 62
const COLUMNS = 2
/** Okabe and Ito's colours, which colour-blind readers tell apart; black and yellow give way to grey and brown. */
const COLOURS = ['#767676', '#0072b2', '#d55e00', '#009e73', '#cc79a7', '#b8860b', '#56b4e9', '#8b5a2b']

const STYLE = `text{font:12px system-ui,sans-serif;fill:#1f2328}.title{font-size:15px;font-weight:600}.head{font-weight:600}
.sheet{fill:#fff}.frame{fill:none;stroke:#8c959f}.grid{stroke:#d8dee4}.limit{stroke:#8c959f;stroke-dasharray:2 3}.note{font-size:11px;fill:#57606a}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.sheet{fill:#0d1117}.frame{stroke:#6e7681}.grid{stroke:#30363d}.limit{stroke:#6e7681}.note{fill:#9da7b3}}`

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
const short = (value: number): string => String(Math.round(value * 10) / 10)

function text(x: number, y: number, content: string, rest = ''): string {
  return `<text x="${short(x)}" y="${short(y)}"${rest && ` ${rest}`}>${escaped(content)}</text>`
}

function line(x1: number, y1: number, x2: number, y2: number, rest: string): string {
  return `<line x1="${short(x1)}" y1="${short(y1)}" x2="${short(x2)}" y2="${short(y2)}" ${rest}/>`
}

/** The marks by style: what tells series apart where colours do not. */
function mark(style: number, x: number, y: number): string {
  const colour = COLOURS[style % COLOURS.length]
  const shapes = [
    'M-4 0H4M0-4V4',
    '',
    'M-3.5-3.5h7v7h-7z',
    'M0-4.5 4.2 3.2h-8.4z',
    'M0-4.8 4.8 0 0 4.8-4.8 0z',
    'M0 4.5 4.2-3.2h-8.4z',
    'M-3.5-3.5 3.5 3.5M-3.5 3.5 3.5-3.5',
  ]
  const shape = shapes[style % shapes.length]
  const at = `transform="translate(${short(x)} ${short(y)})"`
  if (!shape) return `<circle r="4" ${at} fill="${colour}"/>`
  const drawn = shape.includes('z') ? `fill="${colour}"` : `fill="none" stroke="${colour}" stroke-width="2"`
  return `<path d="${shape}" ${at} ${drawn}/>`
}

function stroke({ style, dashed }: Series): string {
  const colour = COLOURS[style % COLOURS.length]
  return `fill="none" stroke="${colour}" stroke-width="1.8"${dashed ? ' stroke-dasharray="5 4"' : ''}`
}

function drawSeries(series: Series, place: (point: Point) => Point): string[] {
  const places = series.points.map(place)
  const path = places.map(({ x, y }) => `${short(x)},${short(y)}`).join(' ')
  const drawn = series.joined === false || places.length < 2 ? [] : [`<polyline points="${path}" ${stroke(series)}/>`]
  return [...drawn, ...places.map(({ x, y }) => mark(series.style, x, y))]
}

function drawPanel(panel: Panel, { x, y }: Pick<Chart, 'x' | 'y'>, left: number, top: number): string[] {
  const [x0, y0] = [left + PANEL.left, top + PANEL.top]
  const width = PANEL.width - PANEL.left - PANEL.right
  const height = PANEL.height - PANEL.top - PANEL.bottom
  const across = (value: number): number => x0 + x.place(value) * width
  const up = (value: number): number => y0 + height - y.place(value) * height
  const out = [text(x0, y0 - 10, panel.title, 'class="head"')]
  for (const tick of x.ticks) {
    out.push(line(across(tick.at), y0, across(tick.at), y0 + height, 'class="grid"'))
    out.push(text(across(tick.at), y0 + height + 16, tick.text, 'text-anchor="middle"'))
  }
  for (const tick of y.ticks) {
    out.push(line(x0, up(tick.at), x0 + width, up(tick.at), 'class="grid"'))
    out.push(text(x0 - 7, up(tick.at) + 4, tick.text, 'text-anchor="end"'))
  }
  out.push(`<rect x="${x0}" y="${y0}" width="${width}" height="${height}" class="frame"/>`)
  out.push(text(x0 + width / 2, y0 + height + 34, x.title, 'text-anchor="middle"'))
  if (panel.limit) {
    const at = across(panel.limit.x)
    out.push(line(at, y0, at, y0 + height, 'class="limit"'))
    // Lines fall from the upper left to the lower right: there is room above them, and below where the limit is further right.
    const isAbove = at < x0 + width / 5
    const [anchor, aside, down] = isAbove ? ['start', 5, 13] : ['end', -5, height * 0.6]
    out.push(text(at + aside, y0 + down, panel.limit.text, `class="note" text-anchor="${anchor}"`))
  }
  for (const series of panel.series)
    out.push(...drawSeries(series, (point) => ({ x: across(point.x), y: up(point.y) })))
  return out
}

/** One entry for each name, in the order in which they first come. */
function legend(panels: readonly Panel[]): string[] {
  const out: string[] = []
  const seen = new Set<string>()
  let at = 16
  for (const series of panels.flatMap(({ series }) => series)) {
    if (seen.has(series.name)) continue
    seen.add(series.name)
    if (series.joined !== false) out.push(`<polyline points="${at},47 ${at + 24},47" ${stroke(series)}/>`)
    out.push(mark(series.style, at + 12, 47), text(at + 30, 51, series.name))
    at += 46 + series.name.length * 7
  }
  return out
}

/** The whole drawing. The same chart gives the same bytes. */
export function drawn({ title, description, x, y, panels }: Chart): string {
  const width = PANEL.width * COLUMNS
  const height = HEAD + Math.ceil(panels.length / COLUMNS) * PANEL.height
  const parts = panels.flatMap((panel, i) =>
    drawPanel(panel, { x, y }, (i % COLUMNS) * PANEL.width, HEAD + Math.floor(i / COLUMNS) * PANEL.height),
  )
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<desc>${escaped(description)}</desc>`,
    `<style>${STYLE}</style>`,
    `<rect width="${width}" height="${height}" class="sheet"/>`,
    text(16, 24, title, 'class="title"'),
    ...legend(panels),
    ...parts,
    '</svg>',
    '',
  ].join('\n')
}
