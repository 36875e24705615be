/** `penstock pipelines apply`: the pipelines of files on a node, created or updated by their names. */
import { Application, type Applied } from './apply.ts'
import { Failure, PartFailure } from './failure.ts'
import type { Pipeline } from './messages.ts'
import { type Format, interruption } from './options.ts'
import { goOnUnread } from './output.ts'
import { readPipelines } from './pipeline-files.ts'
import type { AddVerb, Common } from './pipelines-options.ts'
import { placedLine } from './problems.ts'
import { targetOf } from './target.ts'
import { ask, harmless, print, printJson } from './terminal.ts'

interface Options extends Common {
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

/** Asks whether these are to go, before anything is done; throws unless the answer is yes. */
async function confirmRemoval(remove: readonly Pipeline[], node: string): Promise<void> {
  const list = remove.map(({ id, name, started }) => `  "${name}" ${id}${started ? ', started' : ''}`).join('\n')
  const what = `--prune deletes ${remove.length} pipelines of node ${node} that are in none of the files:\n${list}\n`
  const answer = await ask(`${what}delete them, whoever made them?`)
  if (answer === undefined) throw new Failure(`${what}nothing was changed: --yes deletes them`)
  if (!answer) throw new Failure('nothing was changed')
}

function tell(applied: Applied, step: 'settings' | 'start' | 'delete', dryRun: boolean): void {
  const { name, result, error, problems = [], changes, id = '', file } = applied
  if (error !== undefined) {
    const what = step === 'start' ? 'is not started' : 'is refused'
    const lines = problems.map((problem) => `\n  ${placedLine(problem, file ?? '-')}`)
    const told = lines.length > 0 ? lines.join('') : ` ${error}`
    process.stderr.write(harmless(`penstock: "${name}" ${what}:${told}\n`))
    return
  }
  if (step === 'start') {
    print(`${(dryRun ? 'start' : 'started').padEnd(WIDTH)}  ${name}  ${applied.runId ?? ''}`.trimEnd())
    return
  }
  if (result === 'refused') return
  print(`${TOLD[result][dryRun ? 1 : 0].padEnd(WIDTH)}  ${name}  ${id}`.trimEnd())
  for (const [how, fields] of [
    [changes?.running ? 'restart' : 'next run', changes?.restart ?? []],
    [changes?.running ? 'live' : 'next run', changes?.live ?? []],
  ] as const) {
    for (const { pointer, message } of fields) {
      print(`${' '.repeat(WIDTH)}  ${how}  ${pointer}${how === 'next run' ? '' : `: ${message}`}`)
    }
  }
}

async function apply(files: string[], options: Options): Promise<void> {
  const { output, prune = false, yes = false, dryRun = false, start = false, forceRestart = false } = options
  const wanted = await readPipelines(files)
  if (wanted.length === 0) throw new Failure('the files hold no pipeline: nothing was changed')
  const { client, node } = await targetOf(options)
  const before = await client.getPipelines(node)
  const names = new Set(wanted.map(({ settings }) => settings.name))
  const remove = prune ? before.filter(({ name }) => !names.has(name)) : []
  if (remove.length > 0 && !yes && !dryRun) await confirmRemoval(remove, node)
  // What is to be done does not depend on who reads of it.
  goOnUnread()
  const report = (applied: Applied, step: 'settings' | 'start' | 'delete') => {
    if (output !== 'json') tell(applied, step, dryRun)
  }
  const signal = interruption()
  const application = new Application(client, node, before, { start, dryRun, forceRestart, remove, signal, report })
  try {
    await application.run(wanted)
  } finally {
    printEnd(application, { output, dryRun, node })
  }
  if (!application.isRefused) return
  const refused = application.applied.filter(({ error }) => error !== undefined).length
  const kept = remove.length > 0 && !application.applied.some(({ result }) => result === 'deleted')
  throw new PartFailure(
    `${refused} of ${wanted.length + (kept ? 0 : remove.length)} pipelines ${dryRun ? 'would be' : 'were'} refused or not started` +
      `${kept ? '; nothing was deleted, therefore' : ''}`,
  )
}

function printEnd(
  { applied }: Application,
  { output, dryRun, node }: { output: Format; dryRun: boolean; node: string },
): void {
  if (output === 'json') printJson({ node, dryRun, pipelines: applied })
  else if (dryRun) print('dry run: nothing was changed')
}

export function addApply(add: AddVerb): void {
  add('apply', 'create and update pipelines by name, as files ask')
    .description(
      'Creates and updates the pipelines of a node as files ask, by their names; what is so already is left alone. A file is YAML or JSON ' +
        'and has pipelines with their settings, as "penstock pipelines export" writes it; of a directory *.yaml, *.yml and *.json are taken. ' +
        'Exit code 2 when something was refused and the rest was done.',
    )
    .argument('<file...>', 'files and directories, - for standard input')
    .option('--start', 'then start those that are not started')
    .option('--prune', "delete the node's other pipelines, once it has been confirmed")
    .option('--yes', 'do not ask before pipelines are deleted')
    .option('--force-restart', 'restart those whose run cannot take a change over')
    .option('--dry-run', 'change nothing: show what would be done, what a run takes over, and what needs another run')
    .action(apply)
}
