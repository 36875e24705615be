/** The tables of docs/choosing-a-code.md, and their places in it. */
import { CODES, OVERHEADS, overheadFor } from './candidates.ts'
import { type Comparison, type Figure, TRAFFIC } from './cells.ts'
import { LINKS, type LossyLink, leastLoss, MEAN_BURST } from './links.ts'

/** `5 %`, `0.0013 %`, with two digits where there are more. */
export function percent(share: number): string {
  return `${Number((share * 100).toPrecision(2))} %`
}

/** The same of packets that were lost; `none` is less than one in all. */
function lostShare(lost: number): string {
  return lost === 0 ? 'none' : percent(lost / TRAFFIC.packets)
}

const milliseconds = (value: number): string => (value < 10 ? value.toFixed(1) : String(Math.round(value)))

/** A Markdown table, its columns aligned. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, i) => Math.max(3, title.length, ...rows.map((row) => (row[i] as string).length)))
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => cell.padEnd(widths[i] as number)).join(' | ')} |`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}

function linkTitle({ pattern, loss }: LossyLink): string {
  return `${percent(loss)} lost, ${pattern === 'uniform' ? 'one by one' : `in bursts of ${MEAN_BURST}`}`
}

const isOf =
  (comparison: Comparison, { pattern, loss }: LossyLink) =>
  (figure: Figure): boolean =>
    figure.comparison === comparison && figure.link.pattern === pattern && figure.link.loss === loss

/** What is still lost, a row for each code and a column for each overhead. */
function overheadTable(figures: readonly Figure[], link: LossyLink): string {
  const own = figures.filter(isOf('overhead', link))
  const rows = CODES.filter((code) => own.some((figure) => figure.code === code)).map((code) => [
    code === 'ideal' ? 'ideal code' : code,
    ...OVERHEADS.map((rate) => {
      const found = own.find((figure) => figure.code === code && figure.rate === rate)
      return found ? `${lostShare(found.lost)} (${milliseconds(found.p99)})` : ''
    }),
  ])
  const least = ['least that any code leaves', ...OVERHEADS.map((rate) => percent(leastLoss(link.loss, rate)))]
  return table(['overhead', ...OVERHEADS.map(percent)], [...rows, least])
}

function delayTable(figures: readonly Figure[], link: LossyLink): string {
  const rows = figures
    .filter(isOf('delay', link))
    .map(({ code, settings, overhead, lost, p50, p99 }) => [
      code === 'ideal' ? 'ideal code' : code,
      settings,
      percent(overhead),
      lostShare(lost),
      milliseconds(p50),
      milliseconds(p99),
    ])
  return table(['code', 'settings', 'overhead', 'still lost', 'p50, ms', 'p99, ms'], rows)
}

function raftTable(figures: readonly Figure[]): string {
  const rows = LINKS.flatMap((link) =>
    figures
      .filter(isOf('raft', link))
      .map(({ overhead, lost, p50, p99 }) => [
        linkTitle(link),
        percent(overhead),
        lostShare(lost),
        milliseconds(p50),
        milliseconds(p99),
      ]),
  )
  return table(['link, each way', 'sent beyond the packets', 'still lost', 'p50, ms', 'p99, ms'], rows)
}

const perLink = (of: (link: LossyLink) => string): string =>
  LINKS.map((link) => `### ${linkTitle(link)}${of(link)}`).join('\n\n')

/** Marker to what stands between it and its end. */
function tables(figures: readonly Figure[]): Map<string, string> {
  return new Map([
    ['overhead', perLink((link) => `\n\n${overheadTable(figures, link)}`)],
    ['delay', perLink((link) => ` at ${percent(overheadFor(link.loss))} overhead\n\n${delayTable(figures, link)}`)],
    ['raft', raftTable(figures)],
  ])
}

/** `page` with the tables between their markers. Throws where a marker is missing. */
export function withTables(page: string, figures: readonly Figure[]): string {
  let result = page
  for (const [name, text] of tables(figures)) {
    const [begin, end] = [`<!-- ${name}: written by npm run bench:codes -->`, `<!-- end of ${name} -->`]
    const [from, to] = [result.indexOf(begin), result.indexOf(end)]
    if (from < 0 || to < from) throw new Error(`no "${begin}" … "${end}" on the page: put both where the table belongs`)
    result = `${result.slice(0, from + begin.length)}\n\n${text}\n\n${result.slice(to)}`
  }
  return result
}
