/** `penstock top`: what every run of a node does, live. */
import { type Command, Option } from 'commander'
import { showFullScreen } from './full-screen.ts'
import type { NodeRuns } from './node-runs.ts'
import { type Format, interruption, pause, waitingTime, withOutput } from './options.ts'
import { type TargetOptions, targetOf, withTarget } from './target.ts'
import { named, paint, print, printDataLine } from './terminal.ts'
import { type Order, SORT_KEYS, type SortKey, sorted, topTables } from './top-table.ts'

/** How long rates are waited for, ms: a node samples as often as its telemetry.interval says. */
const PATIENCE_MS = 5_000
const LOOK_MS = 20

interface Options extends TargetOptions {
  output: Format
  sort: SortKey
  reverse?: boolean
  once?: boolean
  interval: number
}

async function top(options: Options): Promise<void> {
  const { client, node } = await targetOf(options)
  const { name } = (await client.getNode({ nodeId: node })).node!
  const stop = interruption()
  const { NodeRuns } = await import('./node-runs.ts')
  const runs = await NodeRuns.open(client, node, stop)
  const order: Order = { key: options.sort, isReversed: options.reverse === true }
  const isLive = process.stdout.isTTY === true && process.env.TERM !== 'dumb' && !options.once
  const over = new AbortController()
  const ends = AbortSignal.any([stop, over.signal])
  const shown = (async () => {
    if (options.output === 'json') await printLines(runs, { node, order, ...options }, ends)
    else if (isLive) await showScreen(runs, order, named(name), options.interval, ends)
    else {
      await measured(runs, ends)
      if (!ends.aborted) print(topTables(runs.all, order))
    }
  })()
  try {
    await Promise.race([shown, runs.failure])
  } finally {
    over.abort()
    await shown
    runs.close()
  }
}

/** Fulfilled once the rates of all runs are known, or have been waited for long enough. */
async function measured(runs: NodeRuns, stop: AbortSignal): Promise<void> {
  const end = performance.now() + PATIENCE_MS
  while (!runs.isMeasured && !stop.aborted && performance.now() < end) await pause(LOOK_MS, stop)
}

async function printLines(
  runs: NodeRuns,
  { node, order, once, interval }: { node: string; order: Order; once?: boolean; interval: number },
  stop: AbortSignal,
): Promise<void> {
  await measured(runs, stop)
  while (!stop.aborted) {
    printDataLine({ timestamp: new Date().toISOString(), node, runs: sorted(runs.all, order) })
    if (once) return
    await pause(interval, stop)
  }
}

async function showScreen(
  runs: NodeRuns,
  order: Order,
  name: string,
  interval: number,
  stop: AbortSignal,
): Promise<void> {
  const screen = {
    text: (columns: number) => {
      const { all } = runs
      const title = `${paint('penstock top', 'bold')}  ${name}  ${new Date().toISOString().slice(11, 19)}Z`
      const keys = paint('← → choose the column to sort by   r turns the order round   q quits', 'dim')
      return `${title}\n${keys}\n\n${topTables(all, order, columns)}`
    },
    press: ({ name: key }: { name?: string | undefined }) => {
      const step = key === 'right' ? 1 : key === 'left' ? -1 : 0
      const at = SORT_KEYS.indexOf(order.key) + step
      order.key = SORT_KEYS[(at + SORT_KEYS.length) % SORT_KEYS.length] as SortKey
      if (key === 'r') order.isReversed = !order.isReversed
    },
  }
  await showFullScreen(screen, interval, stop)
}

export function addTop(program: Command): void {
  withTarget(withOutput(program.command('top')))
    .summary('what the runs of a node do, live')
    .description(
      'Shows every run of a node, live: packets that come and go a second, bits a second on its busiest connection, packets lost, by reason, ' +
        'and those that it holds. Arrows choose the column to sort by, r turns the order round, q or Ctrl-C quits. Where the output is no ' +
        'terminal one table is printed. With -o json a line at each interval.',
    )
    .addOption(new Option('--sort <column>', 'the column to sort by').choices(SORT_KEYS).default('busy'))
    .option('--reverse', 'sort the other way round')
    .option('--once', 'print once and end')
    .addOption(
      new Option('-i, --interval <time>', 'from one drawing, or line, to the next: 500ms, 2s')
        .argParser(waitingTime)
        .default(1_000, '1s'),
    )
    .action(top)
}
