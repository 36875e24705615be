/** The tables of `penstock top`: a row for each run in the order asked for, and what they lose, by reason. */
import { spanText } from './durations.ts'
import type { RunStatus } from './node-runs.ts'
import type { DropReason } from './run-figures.ts'
import { type Column, named, number, paint, scaled, table } from './terminal.ts'

interface Sortable {
  title: string
  /** What is compared: texts from A to Z, numbers from the greatest down. */
  value(run: RunStatus): number | string | undefined
  shown(run: RunStatus): string
}

const rate = (value: number | undefined): string => (value === undefined ? '' : value === 0 ? '·' : scaled(value))

const STATES = { STARTING: 'starting', RUNNING: 'running', STOPPING: 'stopping', ENDED: 'waiting' } as const

/** By the word of `--sort`. */
const COLUMNS = {
  name: { title: 'PIPELINE', value: ({ name }) => name, shown: ({ name }) => named(name) },
  state: { title: 'STATE', value: ({ state }) => STATES[state], shown: ({ state }) => STATES[state] },
  time: { title: 'TIME', value: ({ seconds }) => seconds, shown: ({ seconds }) => timeOf(seconds) },
  busy: {
    title: 'BUSY',
    value: ({ busy }) => busy,
    shown: ({ busy }) => (busy === undefined ? '' : `${Math.round(busy * 100)} %`),
  },
  in: {
    title: 'IN/S',
    value: ({ enteredPerSecond }) => enteredPerSecond,
    shown: ({ enteredPerSecond }) => rate(enteredPerSecond),
  },
  out: {
    title: 'OUT/S',
    value: ({ finishedPerSecond }) => finishedPerSecond,
    shown: ({ finishedPerSecond }) => rate(finishedPerSecond),
  },
  bits: {
    title: 'BIT/S',
    value: ({ bitsPerSecond }) => bitsPerSecond,
    shown: ({ bitsPerSecond }) => rate(bitsPerSecond),
  },
  drops: {
    title: 'DROPS/S',
    value: ({ droppedPerSecond }) => droppedPerSecond,
    shown: ({ droppedPerSecond }) => rate(droppedPerSecond),
  },
  held: { title: 'HELD', value: ({ held }) => held, shown: ({ held }) => (held === undefined ? '' : number(held)) },
} satisfies Record<string, Sortable>

export type SortKey = keyof typeof COLUMNS

/** The words of `--sort`, in the order of the columns. */
export const SORT_KEYS = Object.keys(COLUMNS) as SortKey[]

export interface Order {
  key: SortKey
  /** The other way round. */
  isReversed: boolean
}

function timeOf(seconds: number | undefined): string {
  return seconds === undefined ? '' : spanText(Math.round(seconds))
}

/** The runs in the order asked for; those of which nothing is known come last, equal ones by name. */
export function sorted(runs: readonly RunStatus[], { key, isReversed }: Order): RunStatus[] {
  const column: Sortable = COLUMNS[key]
  const compare = (a: RunStatus, b: RunStatus): number => {
    const [x, y] = [column.value(a), column.value(b)]
    if (x === y || x === undefined || y === undefined) return Number(x === undefined) - Number(y === undefined)
    const isBefore = typeof x === 'number' ? x > Number(y) : x < String(y)
    return isBefore === isReversed ? 1 : -1
  }
  return [...runs].sort((a, b) => compare(a, b) || (a.name < b.name ? -1 : 1))
}

const REASONS: Record<DropReason, string> = { drop: 'dropped', overflow: 'queue full', intended: 'emulated loss' }

/** Both tables. */
export function topTables(runs: readonly RunStatus[], order: Order, width?: number): string {
  if (runs.length === 0) return 'no pipeline is started: start one with "penstock pipelines start NAME"'
  const rows = sorted(runs, order)
  const columns: Column[] = SORT_KEYS.map((key) => ({
    title: COLUMNS[key].title + (key === order.key ? (order.isReversed ? '▲' : '▼') : ''),
    align: key === 'name' || key === 'state' ? 'left' : 'right',
  }))
  const shown = table(
    columns,
    rows.map((run) => SORT_KEYS.map((key) => COLUMNS[key].shown(run))),
    width,
  )
  const drops = rows.flatMap(({ name, drops = [] }) =>
    [...drops]
      .sort((a, b) => (b.perSecond ?? 0) - (a.perSecond ?? 0) || b.total - a.total)
      .map(({ component, metric, reason, perSecond, total }) => [
        ...[named(name), named(component), named(metric), REASONS[reason]],
        ...[rate(perSecond), number(total)],
      ]),
  )
  if (drops.length === 0) return shown
  const titles = ['PIPELINE', 'COMPONENT', 'METRIC', 'REASON'].map((title) => ({ title }))
  const numbers = ['LOST/S', 'LOST'].map((title) => ({ title, align: 'right' }) as const)
  return `${shown}\n\n${paint('Lost, by reason', 'bold')}\n${table([...titles, ...numbers], drops, width)}`
}
