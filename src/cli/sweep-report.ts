/** A sweep as a table, as CSV (RFC 4180), and as lines of JSON or documents of YAML. */
import { NS_PER_MS } from '../dataplane/engine/clock.ts'
import { type Figure, figureText } from './sweep-figures.ts'
import { type Row, type Summary, summaryOf } from './sweep-rows.ts'
import { type Setting, valueText } from './sweep-settings.ts'
import { type Column, dataLine, named, table, terminalWidth } from './terminal.ts'

/** What the rows are of. */
export interface Sweep {
  readonly settings: readonly Setting[]
  readonly figures: readonly Figure[]
  /** Seeds a combination. */
  readonly repeat: number
}

function cellOf(figure: Figure, { mean, standardDeviation, texts }: Summary, repeat: number): string {
  if (texts !== undefined) return texts.join(' / ')
  const middle = figureText(mean, figure)
  if (mean === undefined || standardDeviation === undefined || repeat === 1) return middle
  return `${middle} ± ${figureText(standardDeviation, figure)}`
}

function seedsOf({ runs }: Row, repeat: number): string {
  const [first, last] = [runs[0]?.seed, runs.at(-1)?.seed]
  const range = first === last ? String(first) : `${first}–${last}`
  return runs.length === repeat ? range : `${range}, ${runs.length} of ${repeat}`
}

const width = (text: string): number => text.length

/** The settings that differ between rows, by their places among all. */
const varied = (settings: readonly Setting[]): number[] =>
  settings.flatMap(({ values }, i) => (values.length > 1 ? [i] : []))

/** The figures in as many tables, one below the other, as the terminal is too narrow for; each row begins with what differs and its seeds. */
export function sweepTable(rows: readonly Row[], { settings, figures, repeat }: Sweep, room = terminalWidth()): string {
  const shown = varied(settings)
  const fixed: Column[] = [
    ...shown.map((i) => ({ title: settings[i]?.target ?? '', align: 'right' as const })),
    { title: repeat > 1 ? 'SEEDS' : 'SEED', align: 'right' },
  ]
  const begins = rows.map((row) => [...shown.map((i) => valueText(row.combination[i])), seedsOf(row, repeat)])
  const columns = figures.map((figure) => ({
    title: named(figure.name),
    align: 'right' as const,
    cells: rows.map((row) => named(cellOf(figure, summaryOf(figure, row), repeat))),
  }))
  const widest = (title: string, cells: readonly string[]) => Math.max(width(title), ...cells.map(width)) + 2
  const begin = fixed.reduce(
    (sum, { title }, i) =>
      sum +
      widest(
        title,
        begins.map((cells) => cells[i] ?? ''),
      ),
    0,
  )
  const parts: (typeof columns)[] = [[]]
  let used = begin
  for (const column of columns) {
    const needed = widest(column.title, column.cells)
    if (used + needed - 2 > room && parts.at(-1)?.length !== 0) {
      parts.push([])
      used = begin
    }
    parts.at(-1)?.push(column)
    used += needed
  }
  return parts
    .map((part) =>
      table(
        [...fixed, ...part],
        begins.map((cells, i) => [...cells, ...part.map((column) => column.cells[i] as string)]),
        room,
      ),
    )
    .join('\n\n')
}

/** Reasons why KPIs have no value that are told one by one. */
const MAX_REASONS = 10

/** Why KPIs have no value, each reason once. */
function reasonsOf(rows: readonly Row[], figures: readonly Figure[]): string[] {
  const kpis = new Map(figures.flatMap(({ kpi }) => (kpi === undefined ? [] : [[kpi.id, kpi]])))
  const runs = rows.flatMap((row) => row.runs)
  const seedsOf = new Map<string, number[]>()
  for (const { seed, result } of runs) {
    for (const { id, errorOf } of kpis.values()) {
      const error = result.end.outcome === 'FAILED' ? undefined : errorOf(result)
      if (error === undefined) continue
      const reason = named(`${id}: ${error}`)
      seedsOf.set(reason, [...(seedsOf.get(reason) ?? []), seed])
    }
  }
  const lines = [...seedsOf].map(([reason, [seed, ...more]]) => {
    if (runs.length === 1) return `No value of ${reason}`
    const others = more.length === 0 ? '' : ` and ${more.length} more`
    return `No value with seed ${seed}${others} of ${reason}`
  })
  const rest = lines.length - MAX_REASONS
  return rest > 0 ? [...lines.slice(0, MAX_REASONS), `and ${rest} more reasons why KPIs have no value`] : lines
}

/** What is the same in all rows, what the table means, and why values are missing; '' when there is nothing to say. */
export function sweepCaption(rows: readonly Row[], { settings, figures, repeat }: Sweep): string {
  const combination = rows[0]?.combination ?? []
  const same = settings.flatMap(({ target, values }, i) =>
    values.length === 1 ? [`${target}=${valueText(combination[i])}`] : [],
  )
  return [
    ...(same.length > 0 ? [`All rows: ${same.join('  ')}`] : []),
    ...(repeat > 1 ? ['± is the standard deviation of the runs of a row.'] : []),
    ...reasonsOf(rows, figures),
  ].join('\n')
}

const quoted = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)

/**
 * A header and a line for each combination: its settings, its first seed, how many runs are done, and of each figure the mean, with more
 * than one seed the sample standard deviation too (`_sd`).
 */
export function sweepCsv(rows: readonly Row[], { settings, figures, repeat }: Sweep): string {
  const titles = figures.flatMap(({ name }) => (repeat > 1 ? [name, `${name}_sd`] : [name]))
  const header = [...settings.map(({ target }) => target), 'seed', 'runs', ...titles]
  const lines = rows.map((row) => [
    ...row.combination.map(valueText),
    String(row.runs[0]?.seed),
    String(row.runs.length),
    ...figures.flatMap((figure) => {
      const { mean, standardDeviation, texts } = summaryOf(figure, row)
      const middle = texts?.join(' / ') ?? String(mean ?? '')
      return repeat > 1 ? [middle, String(standardDeviation ?? '')] : [middle]
    }),
  ])
  return [header, ...lines].map((line) => line.map(quoted).join(',')).join('\n')
}

/** One line for each combination: its settings, its runs, and of each figure unit, value of each run, mean and standard deviation. */
export function sweepLines(rows: readonly Row[], { settings, figures }: Sweep): string {
  return rows
    .map((row) =>
      dataLine({
        set: Object.fromEntries(settings.map(({ target }, i) => [target, row.combination[i]])),
        runs: row.runs.map(({ seed, result: { end, elapsed } }) => ({
          seed,
          outcome: end.outcome === 'STOPPED' ? 'DURATION' : end.outcome,
          ...(end.error === undefined ? {} : { error: end.error }),
          elapsedMs: elapsed / NS_PER_MS,
        })),
        figures: Object.fromEntries(
          figures.map((figure) => [figure.name, { unit: figure.unit, ...summaryOf(figure, row) }]),
        ),
      }),
    )
    .join('\n')
}
