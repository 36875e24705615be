/** `penstock pipelines logs`: what a run says, and those that come after it. */
import { PenstockError } from '@penstock/client'
import type { Level } from '../contract/types.ts'
import { followLog, type LogOptions, printNextRun } from './follow.ts'
import { collect, type Format, interruption, logLevel, whole } from './options.ts'
import type { AddVerb } from './pipelines-options.ts'
import { ComingRuns, meantPipeline, meantRun } from './runs.ts'
import { type TargetOptions, targetOf } from './target.ts'
import { named } from './terminal.ts'

/** More lines than a node keeps of a run. */
const ALL_LINES = 1_000_000

interface Options extends TargetOptions {
  output: Format
  run?: string
  lines?: number
  level?: Level
  component?: string[]
  follow?: boolean
}

async function logs(given: string | undefined, options: Options): Promise<void> {
  const { client, node } = await targetOf(options)
  const { component: components = [], level, output } = options
  const isFiltered = components.length > 0 || level !== undefined
  const shown: LogOptions = { lines: options.lines ?? (isFiltered ? ALL_LINES : 100), output, components }
  if (level !== undefined) shown.level = level
  if (!options.follow) {
    shown.isPastOnly = options.follow === false
    await followLog(client, node, await meantRun(client, node, given, options.run), shown)
    return
  }
  const { id: pipeline, currentRun } = await meantPipeline(client, node, given, options.run)
  const run = currentRun === undefined ? undefined : await meantRun(client, node, given, options.run)
  const stop = interruption()
  const coming = await ComingRuns.open(client, { node, pipeline, known: run === undefined ? [] : [run] }, stop)
  if (run !== undefined) await followLog(client, node, run, shown, stop)
  // Of a run that came meanwhile every line is new.
  const whole = { ...shown, lines: ALL_LINES }
  for (let next = await coming.next(); next !== undefined && !stop.aborted; next = await coming.next()) {
    printNextRun(next, output)
    await followLog(client, node, next.id, whole, stop).catch((error: unknown) => {
      if (!(error instanceof PenstockError) || error.code !== 'NOT_FOUND') throw error
      process.stderr.write(`the log of run ${next?.id} is gone: ${named(error.message)}\n`)
    })
  }
}

/** Adds the verb to `penstock pipelines`. */
export function addLogs(add: AddVerb): void {
  add('logs', 'show the log of a run')
    .description(
      'Shows the log of a run until it ends, or with --follow those of the next runs of its pipeline too, until Ctrl-C. ' +
        '--no-follow shows what there is, and ends. With -o json a line for each message, and {nextRun} between runs.',
    )
    .argument('[pipeline|run]', 'id or name of a pipeline, whose current run is meant, or id of a run')
    .option('--run <id>', 'a run, instead of the current one of a pipeline')
    .option('-f, --follow', 'go on with the next run, after a restart too')
    .option('--no-follow', 'only what there is now, also of a run that goes on')
    .option(
      '-n, --lines <number>',
      'past lines looked at first (default: 100; with --level or --component all that are kept)',
      whole(0, ALL_LINES),
    )
    .option('--level <level>', 'only lines of this level and above: STATE, DEBUG, INFO, WARN, ERROR, FATAL', logLevel)
    .option('--component <name>', 'only lines of this component; may be given several times', collect)
    .action(logs)
}
