/** `penstock pipelines update` and `set`: changes to the settings and the configuration of a pipeline. */
import { type ExplainUpdateResponse, PenstockError } from '@penstock/client'
import { Failure } from './failure.ts'
import { readInput } from './input.ts'
import { type Format, problemLines } from './options.ts'
import {
  type AddVerb,
  type Common,
  given,
  PIPELINE,
  refuseTaken,
  type SettingOptions,
  settingsOf,
  withSettings,
} from './pipelines-options.ts'
import { printPipeline } from './pipelines-shown.ts'
import { placedLines, type Source, withPlaces } from './problems.ts'
import { findPipeline, targetOf } from './target.ts'
import { named, paint, print, printJson, table } from './terminal.ts'
import { setVariables } from './variables.ts'

function printExplanation(explanation: ExplainUpdateResponse, output: Format): void {
  if (output === 'json') {
    printJson(explanation)
    return
  }
  const { running, live, restart } = explanation
  const rows = [
    ...restart.map(({ pointer, message }) => [running ? paint('restart', 'yellow') : 'next run', pointer, message]),
    ...live.map(({ pointer, message }) => [running ? 'live' : 'next run', pointer, running ? message : '']),
  ]
  if (rows.length > 0) print(table([{ title: 'APPLIED' }, { title: 'CHANGE' }, { title: 'WHY', wrap: true }], rows))
  if (rows.length === 0) print('nothing changes')
  else if (!running) print('\nno run is on: all of it is for the next one')
  else if (restart.length > 0) print('\nthe run cannot take all of it over: --force-restart replaces it')
  else print('\nthe run takes all of it over')
}

/** Waits for the update of `pipeline`; of what its run cannot take over it is said with which option the run is replaced. */
async function orForceRestart<R>(call: Promise<R>, pipeline: string, source?: Source): Promise<R> {
  try {
    return await call
  } catch (error) {
    // The one failed precondition of an update that names fields.
    const isRefused =
      error instanceof PenstockError && error.code === 'FAILED_PRECONDITION' && error.problems.length > 0
    if (!isRefused) throw error
    const lines = source === undefined ? problemLines(error.problems) : placedLines(error.problems, source)
    throw new Failure(
      `pipeline "${named(pipeline)}" is running and its run cannot take all of it over: --force-restart replaces the run, or stop it first\n${lines}`,
    )
  }
}

interface UpdateOptions {
  name?: string
  force?: boolean
  forceRestart?: boolean
  dryRun?: boolean
}

export function addUpdate(add: AddVerb): void {
  withSettings(add('update', 'change a pipeline; what is not given stays as it is'))
    .argument('<pipeline>', PIPELINE)
    .argument('[config.json]', 'its new configuration, - for standard input')
    .option('--name <name>', 'its new name')
    .option('--force', 'also when another pipeline has that name')
    .option('--force-restart', 'restart it when the running one cannot take the change over')
    .option('--dry-run', 'change nothing: show what the run would take over, and what needs another run, and why')
    .action(async (name: string, file: string | undefined, options: Common & SettingOptions & UpdateOptions) => {
      const { client, node } = await targetOf(options)
      const pipeline = await findPipeline(client, node, name)
      const settings = { ...settingsOf(pipeline), ...given(options), forceRestart: options.forceRestart ?? false }
      if (file !== undefined) settings.jsonConfig = await readInput(file)
      if (options.name !== undefined) {
        if (!options.force) await refuseTaken(client, node, options.name, pipeline.id)
        settings.name = options.name
      }
      const source = file === undefined ? undefined : { file, text: settings.jsonConfig }
      const request = { ...settings, nodeId: node, id: pipeline.id }
      if (options.dryRun) {
        printExplanation(await withPlaces(client.explainUpdate(request), source), options.output)
      } else {
        const updated = await withPlaces(orForceRestart(client.updatePipeline(request), pipeline.name, source), source)
        printPipeline(updated.pipeline!, options.output)
      }
    })
}

export function addSet(add: AddVerb): void {
  add('set', 'set variables of a pipeline, or fields of its components')
    .description(
      'Writes values to every place in the configuration that a variable points to, or to fields of components: ' +
        'penstock pipelines set ID loss=0.05 delay.jitter=10',
    )
    .argument('<pipeline>', PIPELINE)
    .argument('<variable=value...>', 'variables of its configuration, or component.field, and their values')
    .option('--force-restart', 'restart it when the running one cannot take the change over')
    .action(async (name: string, assignments: string[], options: Common & { forceRestart?: boolean }) => {
      const { client, node } = await targetOf(options)
      const pipeline = await findPipeline(client, node, name)
      const settings = { ...settingsOf(pipeline), forceRestart: options.forceRestart ?? false }
      settings.jsonConfig = setVariables(pipeline.jsonConfig, assignments)
      const call = client.updatePipeline({ ...settings, nodeId: node, id: pipeline.id })
      const updated = await orForceRestart(call, pipeline.name)
      printPipeline(updated.pipeline!, options.output)
    })
}
