/** The plots of docs/choosing-a-code.md. */
import { CODES, overheadFor } from './candidates.ts'
import { type Comparison, type Figure, TRAFFIC } from './cells.ts'
import { LOSSES, leastOverhead, MEAN_BURST, PATTERNS } from './links.ts'
import { type Axis, type Chart, drawn, type Panel, type Series } from './svg.ts'
import { percent } from './tables.ts'

/** Shares lost from this on have their place on the scale; none lost is at its foot. */
const LEAST = 5e-6
/** Part of the scale below `LEAST`, where each code that lost nothing has a height of its own. */
const FOOT = 0.16

const between = (value: number, low: number, high: number): number =>
  (Math.log(value) - Math.log(low)) / (Math.log(high) - Math.log(low))

const lostAxis: Axis = {
  title: 'still lost',
  ticks: [
    { at: 0.1, text: '10 %' },
    { at: 0.01, text: '1 %' },
    { at: 0.001, text: '0.1 %' },
    { at: 1e-4, text: '0.01 %' },
    { at: 1e-5, text: '0.001 %' },
    { at: 0, text: 'none' },
  ],
  // Below 0 it is the part of the foot: -1 is its bottom.
  place: (value) =>
    value < 0
      ? FOOT * (1 + value)
      : value === 0
        ? FOOT / 2
        : FOOT + (1 - FOOT) * between(Math.max(value, LEAST), LEAST, 0.4),
}

const overheadAxis: Axis = {
  title: 'repair packets per packet',
  ticks: [0.05, 0.1, 0.2, 0.5, 1].map((at) => ({ at, text: percent(at) })),
  place: (value) => between(value, 0.043, 1.2),
}

/** Logarithmic but for the first millisecond, so that 0 has a place. */
const delayAxis: Axis = {
  title: 'in-order delay, ms at 10,000 packets/s',
  ticks: [0, 1, 2, 5, 10, 20, 50, 100].map((at) => ({ at, text: String(at) })),
  place: (value) => 0.03 + (0.94 * Math.log1p(value / 0.7)) / Math.log1p(150 / 0.7),
}

type Quantile = 'p50' | 'p99'

const DRAWN = CODES.filter((code) => code !== 'raft')

function seriesOf(figures: readonly Figure[], across: (figure: Figure) => number): Series[] {
  return DRAWN.flatMap((code, style) => {
    const own = figures.filter((figure) => figure.code === code)
    if (own.length === 0) return []
    const none = -(style + 1) / (DRAWN.length + 1)
    const points = own.map((figure) => ({
      x: across(figure),
      y: figure.lost === 0 ? none : figure.lost / TRAFFIC.packets,
    }))
    const name = code === 'ideal' ? 'ideal code' : code
    return [{ style, name, points, dashed: code === 'ideal' }]
  })
}

const linkName = (pattern: (typeof PATTERNS)[number]): string =>
  pattern === 'uniform' ? 'packets lost one by one' : `packets lost in bursts of ${MEAN_BURST} on average`

type Part = (loss: number, figures: readonly Figure[]) => Panel

function panelsOf(
  figures: readonly Figure[],
  comparison: Comparison,
  pattern: Figure['link']['pattern'],
  part: Part,
): Panel[] {
  return LOSSES.map((loss) => {
    const own = figures.filter(
      ({ link, comparison: of }) => of === comparison && link.pattern === pattern && link.loss === loss,
    )
    return part(loss, own)
  })
}

function overheadChart(figures: readonly Figure[], pattern: Figure['link']['pattern']): Chart {
  const title = `What is still lost, by overhead: ${linkName(pattern)}`
  const panels = panelsOf(figures, 'overhead', pattern, (loss, own) => ({
    title: `${percent(loss)} lost on the link`,
    series: seriesOf(own, ({ rate }) => rate),
    ...(leastOverhead(loss) > 0.05 && { limit: { x: leastOverhead(loss), text: 'capacity' } }),
  }))
  const description = 'One panel for each share lost on the link, one line for each code; the tables have the numbers.'
  return { title, description, x: overheadAxis, y: lostAxis, panels }
}

function delayChart(figures: readonly Figure[], pattern: Figure['link']['pattern'], quantile: Quantile): Chart {
  const title = `What is still lost, by in-order delay (${quantile}): ${linkName(pattern)}`
  const panels = panelsOf(figures, 'delay', pattern, (loss, own) => ({
    title: `${percent(loss)} lost on the link, ${percent(overheadFor(loss))} overhead`,
    series: seriesOf(own, (figure) => figure[quantile]),
  }))
  const description = `One panel for each share lost on the link, one line for each code from short blocks and windows to long ones; the tables have the numbers.`
  return { title, description, x: { ...delayAxis, title: `${quantile}: ${delayAxis.title}` }, y: lostAxis, panels }
}

/** File name to SVG. */
export function plots(figures: readonly Figure[]): Map<string, string> {
  const all = new Map<string, string>()
  for (const pattern of PATTERNS) {
    all.set(`overhead-${pattern}.svg`, drawn(overheadChart(figures, pattern)))
    for (const quantile of ['p50', 'p99'] as const) {
      all.set(`delay-${quantile}-${pattern}.svg`, drawn(delayChart(figures, pattern, quantile)))
    }
  }
  return all
}
