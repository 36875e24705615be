/** `penstock pipelines apply`: the pipelines of files on a node or several, created or updated by their names. */
import { PenstockError } from '@penstock/client'
import type { Command } from 'commander'
import { withAllNodes } from './all-nodes.ts'
import { Application, type Applied } from './apply.ts'
import { isOfSeveral, lackOf, type Place, type PlaceOptions, placeName, placesOf } from './apply-places.ts'
import { Failure, PartFailure } from './failure.ts'
import { collect, type Format, interruption, withOutput } from './options.ts'
import { goOnUnread } from './output.ts'
import { placedLine } from './problems.ts'
import { clientFor, withClient } from './target.ts'
import { ask, harmless, named, paint, print, printJson } from './terminal.ts'

interface Options extends PlaceOptions {
  output: Format
  start?: boolean
  prune?: boolean
  yes?: boolean
  dryRun?: boolean
  forceRestart?: boolean
}

/** Width of the column with what was done. */
const WIDTH = 'unchanged'.length

/** How each result is told: as done, and as it would be. */
const TOLD: Record<Exclude<Applied['result'], 'refused'>, readonly [string, string]> = {
  created: ['created', 'create'],
  updated: ['updated', 'update'],
  unchanged: ['unchanged', 'unchanged'],
  deleted: ['deleted', 'delete'],
}

/** Asks whether what is to go from these is to, before anything is done; throws unless the answer is yes. */
async function confirmRemoval(places: readonly Place[]): Promise<void> {
  const lines = places.flatMap((place) =>
    place.remove.map(
      ({ id, name, started }) =>
        `  "${named(name)}" ${id}${started ? ', started' : ''}${places.length > 1 ? ` on ${placeName(place)}` : ''}`,
    ),
  )
  const where = places.length > 1 ? `${places.length} nodes` : `node ${places[0]?.id}`
  const what = `--prune deletes ${lines.length} pipelines of ${where} that are in none of the files:\n${lines.join('\n')}\n`
  const answer = await ask(`${what}delete them, whoever made them?`)
  if (answer === undefined) throw new Failure(`${what}nothing was changed: --yes deletes them`)
  if (!answer) throw new Failure('nothing was changed')
}

function tell(applied: Applied, step: 'settings' | 'start' | 'delete', dryRun: boolean): void {
  const { name, result, error, problems = [], changes, id = '', file } = applied
  if (error !== undefined) {
    const what = step === 'start' ? 'is not started' : 'is refused'
    const lines = problems.map((problem) => `\n  ${placedLine(problem, file ?? '-')}`)
    const told = lines.length > 0 ? lines.join('') : ` ${named(error)}`
    process.stderr.write(harmless(`penstock: "${named(name)}" ${what}:${told}\n`))
    return
  }
  if (step === 'start') {
    print(`${(dryRun ? 'start' : 'started').padEnd(WIDTH)}  ${named(name)}  ${applied.runId ?? ''}`.trimEnd())
    return
  }
  if (result === 'refused') return
  print(`${TOLD[result][dryRun ? 1 : 0].padEnd(WIDTH)}  ${named(name)}  ${id}`.trimEnd())
  for (const [how, fields] of [
    [changes?.running ? 'restart' : 'next run', changes?.restart ?? []],
    [changes?.running ? 'live' : 'next run', changes?.live ?? []],
  ] as const) {
    for (const { pointer, message } of fields) {
      print(`${' '.repeat(WIDTH)}  ${how}  ${named(pointer)}${how === 'next run' ? '' : `: ${named(message)}`}`)
    }
  }
}

async function apply(files: string[], options: Options): Promise<void> {
  const { output, prune = false, yes = false, dryRun = false, start = false, forceRestart = false } = options
  // The other commands for pipelines do not wait for what reads YAML.
  const { readPipelines } = await import('./pipeline-files.ts')
  const wanted = await readPipelines(files)
  if (wanted.length === 0) throw new Failure('the files hold no pipeline: nothing was changed')
  const names = new Set(wanted.map(({ settings }) => settings.name))
  const client = clientFor(options)
  const places = await placesOf(client, options, ({ name }) => prune && !names.has(name))
  const pruned = places.filter(({ remove }) => remove.length > 0)
  if (pruned.length > 0 && !yes && !dryRun) await confirmRemoval(pruned)
  // What is to be done does not depend on who reads of it.
  goOnUnread()
  const report = (applied: Applied, step: 'settings' | 'start' | 'delete') => {
    if (output !== 'json') tell(applied, step, dryRun)
  }
  const several = isOfSeveral(options)
  const signal = interruption()
  try {
    for (const place of places) {
      if (place.error !== undefined) continue
      if (several && output !== 'json') print(paint(placeName(place), 'bold'))
      const { id, before, remove } = place
      place.application = new Application(client, id, before, { start, dryRun, forceRestart, remove, signal, report })
      await place.application.run(wanted).catch((error: unknown) => {
        if (!several || !(error instanceof PenstockError) || error.code === 'UNAUTHENTICATED') throw error
        place.error = { code: error.code, message: error.message }
      })
    }
  } finally {
    printEnd(places, { output, dryRun, several })
  }
  const lacks = places.flatMap((place) => {
    const lack = lackOf(place, wanted.length, dryRun)
    return lack === undefined ? [] : [several ? `  ${placeName(place)}: ${lack}` : lack]
  })
  if (lacks.length === 0) return
  throw new PartFailure(
    several
      ? `${lacks.length} of ${places.length} nodes ${dryRun ? 'would not have' : 'do not have'} all of it:\n${lacks.join('\n')}`
      : lacks.join('\n'),
  )
}

function printEnd(
  places: readonly Place[],
  { output, dryRun, several }: { output: Format; dryRun: boolean; several: boolean },
): void {
  if (output !== 'json') {
    if (dryRun) print('dry run: nothing was changed')
    return
  }
  const told = places.map(({ id, name, application, error }) => {
    return { id, name, pipelines: application?.applied ?? [], ...(error !== undefined && { error }) }
  })
  const [only] = told
  printJson(several ? { dryRun, nodes: told } : { node: only?.id, dryRun, pipelines: only?.pipelines })
}

export function addApply(pipelines: Command): void {
  withAllNodes(withClient(withOutput(pipelines.command('apply'))))
    .summary('create and update pipelines by name, as files ask')
    .description(
      'Creates and updates the pipelines of a node, or of several, as files ask, by their names; what is so already is left alone. A file is YAML or JSON ' +
        'and has pipelines with their settings, as "penstock pipelines export" writes it; of a directory *.yaml, *.yml and *.json are taken. ' +
        'Exit code 2 when something was refused, or a node did not answer, and the rest was done.',
    )
    .argument('<file...>', 'files and directories, - for standard input')
    .option('--node <id|name>', 'the node meant (default: the one talked to); may be given several times', collect)
    .option('--start', 'then start those that are not started')
    .option('--prune', "delete the node's other pipelines, once it has been confirmed")
    .option('--yes', 'do not ask before pipelines are deleted')
    .option('--force-restart', 'restart those whose run cannot take a change over')
    .option('--dry-run', 'change nothing: show what would be done, what a run takes over, and what needs another run')
    .action(apply)
}
