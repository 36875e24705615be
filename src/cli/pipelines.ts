/** `penstock pipelines`: the operations on pipelines of a node. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Level } from '../contract/types.ts'
import type { ApiClient } from './client.ts'
import { Failure, SilentFailure, UsageFailure } from './failure.ts'
import { followLog } from './follow.ts'
import { addLogs } from './logs.ts'
import type { CreateSettings, Pipeline, UpdateSettings } from './messages.ts'
import { duration, type Format, interruption, logLevel, readInput, whole, withOutput } from './options.ts'
import { LINK_TYPES } from './pcapng-writer.ts'
import { inFile, withPlaces } from './problems.ts'
import { type TapOptions, tap } from './tap.ts'
import { findPipeline, findRun, type TargetOptions, targetOf, withTarget } from './target.ts'
import { addTelemetry } from './telemetry.ts'
import { ask, type Column, paint, print, printDataLine, printJson, table } from './terminal.ts'
import { printVerdict } from './validate.ts'
import { setVariables } from './variables.ts'

interface Common extends TargetOptions {
  output: Format
}

interface SettingOptions {
  cpuPin?: number | 'none'
  performanceMode?: boolean
  restartPolicy?: NonNullable<CreateSettings['restartPolicy']>
  startupPolicy?: NonNullable<CreateSettings['startupPolicy']>
  logLevel?: Level
  instructionsTimeout?: number
  nodeReference?: string
}

const MAX_RESTARTS = 4294967295

/** `never`, `always`, `always:5`, `on-failure`, `on-failure:5`. */
function restartPolicy(given: string): NonNullable<CreateSettings['restartPolicy']> {
  const [, policy, count = '0'] = /^(never|always|on-failure)(?::(\d+))?$/.exec(given) ?? []
  const maxRestarts = Number(count)
  if (policy === undefined || maxRestarts > MAX_RESTARTS || (policy === 'never' && given !== 'never')) {
    throw new InvalidArgumentError('Expected never, always, on-failure, or with a limit always:5, on-failure:5.')
  }
  if (policy === 'never') return { never: {} }
  return policy === 'always' ? { always: { maxRestarts } } : { onFailure: { maxRestarts } }
}

function startupPolicy(given: string): NonNullable<CreateSettings['startupPolicy']> {
  if (given === 'manual') return { manual: {} }
  if (given === 'auto') return { auto: {} }
  throw new InvalidArgumentError('Expected manual or auto.')
}

/** `none` gives the choice back to the node. */
function cpuPin(given: string): number | 'none' {
  return given === 'none' ? given : whole(0, 4294967295)(given)
}

function seconds(given: string): number {
  const value = /^\d+$/.test(given) ? Number(given) : Math.ceil(duration(given) / 1000)
  if (value < 1 || value > 2147483647) throw new InvalidArgumentError('Expected at least one second.')
  return value
}

function withSettings(command: Command): Command {
  return command
    .option('--cpu-pin <number>', 'CPU thread to pin the run to, as the kernel numbers them from 0, or none', cpuPin)
    .option('--performance-mode', 'never sleep: spin on the sockets')
    .option('--no-performance-mode', 'sleep when there is nothing to do')
    .option('--restart-policy <policy>', 'never, always, on-failure; with a limit on-failure:5', restartPolicy)
    .option('--startup-policy <policy>', 'manual, or auto to start with the node', startupPolicy)
    .option('--log-level <level>', 'default logging level of its runs', logLevel)
    .option('--instructions-timeout <seconds>', 'when an instruction to a run counts as timed out', seconds)
    .option('--node-reference <id>', 'id of the related node')
}

function policyName(policy: Record<string, unknown> | undefined): string {
  const [[name, value] = ['', {}]] = Object.entries(policy ?? {})
  const limit = (value as { maxRestarts?: number }).maxRestarts
  const written = name === 'onFailure' ? 'on-failure' : name
  return limit ? `${written}, ${limit} times at most` : written
}

function stateOf({ started, currentRun, restarts }: Pipeline): string {
  const state = currentRun?.state.toLowerCase() ?? (started ? 'started' : 'stopped')
  if (currentRun?.outcome) {
    return `${state} (${currentRun.outcome.toLowerCase()})${restarts?.nextAt === undefined ? '' : ', starts again'}`
  }
  return state
}

function coloured(pipeline: Pipeline): string {
  const text = stateOf(pipeline)
  if (pipeline.currentRun?.state === 'RUNNING') return paint(text, 'green')
  return pipeline.currentRun?.outcome === 'FAILED' ? paint(text, 'red') : text
}

function printPipelines(pipelines: readonly Pipeline[]): void {
  if (pipelines.length === 0) {
    print('no pipelines; create one with "penstock pipelines create NAME CONFIG.json"')
    return
  }
  const columns: Column[] = ['ID', 'NAME', 'STATE', 'RUN', 'CPU', 'RESTART', 'STARTUP'].map((title) => ({ title }))
  const rows = pipelines.map((pipeline) => [
    pipeline.id,
    pipeline.name,
    coloured(pipeline),
    pipeline.currentRun?.id ?? '',
    String(pipeline.currentRun?.cpu ?? pipeline.cpuPin ?? ''),
    policyName(pipeline.restartPolicy),
    policyName(pipeline.startupPolicy),
  ])
  print(table(columns, rows))
}

/** `2 of at most 5 in a row, the next at 2026-11-22T10:00:00.000Z`; undefined when there is nothing to say. */
function restartsText({ restarts, restartPolicy }: Pipeline): string | undefined {
  if (restarts === undefined) return undefined
  const most = (restartPolicy?.always ?? restartPolicy?.onFailure)?.maxRestarts
  const next = restarts.nextAt === undefined ? '' : `, the next at ${restarts.nextAt}`
  return `${restarts.count}${most ? ` of at most ${most}` : ''} in a row${next}`
}

function printPipeline(pipeline: Pipeline, output: Format, withConfig = false): void {
  if (output === 'json') {
    printJson(pipeline)
    return
  }
  const run = pipeline.currentRun
  const facts: [string, string | undefined][] = [
    ['id', pipeline.id],
    ['name', pipeline.name],
    ['state', coloured(pipeline)],
    ['run', run?.id],
    ['started', run?.startedAt],
    ['ended', run?.endedAt],
    ['error', run?.error],
    ['restarts', restartsText(pipeline)],
    ['cpu', run?.cpu === undefined ? undefined : String(run.cpu)],
    ['cpu pin', pipeline.cpuPin === undefined ? 'chosen by the node' : String(pipeline.cpuPin)],
    ['performance mode', pipeline.performanceMode ? 'on' : 'off'],
    ['restart policy', policyName(pipeline.restartPolicy)],
    ['startup policy', policyName(pipeline.startupPolicy)],
    ['log level', pipeline.defaultLoggingLevel],
    ['instructions timeout', `${pipeline.instructionsTimeout} s`],
    ['node reference', pipeline.nodeReferenceId],
  ]
  const rows = facts.filter((fact): fact is [string, string] => Boolean(fact[1]))
  print(table([{ title: '' }, { title: '', wrap: true }], rows))
  if (withConfig) print(`\n${pipeline.jsonConfig}`)
}

type Explanation = Awaited<ReturnType<ApiClient['explainUpdate']>>

function printExplanation(explanation: Explanation, output: Format): void {
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

/** The settings of a pipeline as it is: what an update that changes nothing would send. */
function settingsOf({ id, started, currentRun, restarts, ...settings }: Pipeline): UpdateSettings {
  return { ...settings, forceRestart: false }
}

function given(options: SettingOptions): Partial<UpdateSettings> {
  const settings: Partial<UpdateSettings> = {}
  if (options.cpuPin !== undefined) settings.cpuPin = options.cpuPin === 'none' ? undefined : options.cpuPin
  if (options.performanceMode !== undefined) settings.performanceMode = options.performanceMode
  if (options.restartPolicy) settings.restartPolicy = options.restartPolicy
  if (options.startupPolicy) settings.startupPolicy = options.startupPolicy
  if (options.logLevel) settings.defaultLoggingLevel = options.logLevel
  if (options.instructionsTimeout) settings.instructionsTimeout = options.instructionsTimeout
  if (options.nodeReference !== undefined) settings.nodeReferenceId = options.nodeReference || undefined
  return settings
}

type Event = Awaited<ReturnType<ApiClient['streamPipelines']>> extends AsyncIterable<infer E> ? E : never

function printEvent(event: Event, output: Format): void {
  if (output === 'json') {
    printDataLine(event)
    return
  }
  for (const [kind, change] of Object.entries(event)) {
    const { pipeline } = change as { pipeline?: Pipeline }
    if (pipeline) print(`${kind.padEnd(6)}  ${pipeline.id}  ${pipeline.name}  ${coloured(pipeline)}`)
  }
}

async function listPipelines(options: Common & { watch?: boolean }): Promise<void> {
  const { client, node } = await targetOf(options)
  const signal = interruption()
  // The stream first: a change after the list was read is an event, then.
  const events = options.watch ? await client.streamPipelines(node, signal) : null
  const found = await client.getPipelines(node)
  if (options.output !== 'json') printPipelines(found)
  else if (options.watch) printDataLine(found)
  else printJson(found)
  if (!events) return
  try {
    for await (const event of events) printEvent(event, options.output)
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** Asks whether a started pipeline is to go; throws unless the answer is yes. */
async function confirmDeletion({ name, id }: Pipeline): Promise<void> {
  const what = `pipeline "${name}" (${id}) is started`
  const answer = await ask(`${what}: stop its run and delete it?`)
  if (answer === undefined) throw new Failure(`${what}: --force stops its run and deletes it`)
  if (!answer) throw new Failure('not deleted')
}

export function addPipelines(program: Command): void {
  const pipelines = program
    .command('pipelines')
    .summary("a node's pipelines")
    .description("Works on a node's pipelines.")
  const add = (usage: string, summary: string): Command =>
    withTarget(withOutput(pipelines.command(usage)))
      .summary(summary)
      .description(`${summary[0].toUpperCase()}${summary.slice(1)}.`)
  const ID = 'id or name of the pipeline'

  add('list', 'list the pipelines').option('-w, --watch', 'then show every change until Ctrl-C').action(listPipelines)

  add('get', 'show one pipeline and its configuration')
    .alias('show')
    .argument('<pipeline>', ID)
    .option('--config', 'print the configuration only, as it was given')
    .action(async (name: string, options: Common & { config?: boolean }) => {
      const { client, node } = await targetOf(options)
      const pipeline = await findPipeline(client, node, name)
      if (options.config) print(pipeline.jsonConfig)
      else printPipeline(pipeline, options.output, true)
    })

  withSettings(add('create', 'create a pipeline; it is not started'))
    .argument('<name>', 'name of the pipeline')
    .argument('<config.json>', 'its configuration, - for standard input')
    .action(async (name: string, file: string, options: Common & SettingOptions) => {
      const jsonConfig = await readInput(file)
      const { client, node } = await targetOf(options)
      const created = client.createPipeline(node, { name, jsonConfig, ...given(options) })
      printPipeline(await withPlaces(created, { file, text: jsonConfig }), options.output)
    })

  add('validate', 'check a configuration on a node, which knows its CPUs, and whom it trusts; nothing is stored')
    .argument('<config.json>', 'the configuration, - for standard input')
    .action(async (file: string, { output, ...options }: Common) => {
      const text = await readInput(file)
      const { client, node } = await targetOf(options)
      const { problems, warnings } = await client.validatePipeline(node, { name: 'any', jsonConfig: text })
      printVerdict({ problems: inFile(problems), warnings: inFile(warnings) }, { file, text }, { output })
    })

  withSettings(add('update', 'change a pipeline; what is not given stays as it is'))
    .argument('<pipeline>', ID)
    .argument('[config.json]', 'its new configuration, - for standard input')
    .option('--name <name>', 'its new name')
    .option('--force-restart', 'restart it when the running one cannot take the change over')
    .option('--dry-run', 'change nothing: show what the run would take over, and what needs another run, and why')
    .action(
      async (
        name: string,
        file: string | undefined,
        options: Common & SettingOptions & { name?: string; forceRestart?: boolean; dryRun?: boolean },
      ) => {
        const { client, node } = await targetOf(options)
        const pipeline = await findPipeline(client, node, name)
        const settings = { ...settingsOf(pipeline), ...given(options), forceRestart: options.forceRestart ?? false }
        if (file !== undefined) settings.jsonConfig = await readInput(file)
        if (options.name !== undefined) settings.name = options.name
        const source = file === undefined ? undefined : { file, text: settings.jsonConfig }
        if (options.dryRun) {
          printExplanation(await withPlaces(client.explainUpdate(node, pipeline.id, settings), source), options.output)
        } else {
          printPipeline(await withPlaces(client.updatePipeline(node, pipeline.id, settings), source), options.output)
        }
      },
    )

  add('set', 'set variables of a pipeline')
    .description(
      'Writes values to every place in the configuration that a variable points to: penstock pipelines set ID loss=0.05',
    )
    .argument('<pipeline>', ID)
    .argument('<variable=value...>', 'variables of its configuration and their values')
    .option('--force-restart', 'restart it when the running one cannot take the change over')
    .action(async (name: string, assignments: string[], options: Common & { forceRestart?: boolean }) => {
      const { client, node } = await targetOf(options)
      const pipeline = await findPipeline(client, node, name)
      const settings = { ...settingsOf(pipeline), forceRestart: options.forceRestart ?? false }
      settings.jsonConfig = setVariables(pipeline.jsonConfig, assignments)
      printPipeline(await client.updatePipeline(node, pipeline.id, settings), options.output)
    })

  add('delete', 'delete a pipeline; of one that is started the run is stopped first')
    .argument('<pipeline>', ID)
    .option('--force', 'do not ask before a run is stopped')
    .action(async (name: string, options: Common & { force?: boolean }) => {
      const { client, node } = await targetOf(options)
      const pipeline = await findPipeline(client, node, name)
      if (pipeline.started && !options.force) await confirmDeletion(pipeline)
      const { id } = pipeline
      await client.deletePipeline(node, id)
      if (options.output === 'json') printJson({ id })
      else print(`deleted ${id}`)
    })

  add('start', 'start a new run')
    .argument('<pipeline>', ID)
    .option('-f, --follow', 'then show the log of the run until it ends or Ctrl-C')
    .action(async (name: string, options: Common & { follow?: boolean }) => {
      const { client, node } = await targetOf(options)
      const { id } = await findPipeline(client, node, name)
      const runId = await client.startPipeline(node, id)
      if (options.output === 'json') printJson({ runId })
      else print(`started run ${runId}`)
      if (!options.follow) return
      const outcome = await followLog(client, node, runId, { lines: 1000, output: options.output })
      if (outcome === 'FAILED') throw new SilentFailure()
    })

  add('stop', 'ask the current run to stop')
    .argument('[pipeline]', ID)
    .option('--run <id>', 'the run to stop, instead of a pipeline')
    .action(async (name: string | undefined, options: Common & { run?: string }) => {
      const { client, node } = await targetOf(options)
      if (options.run !== undefined) await client.stopRun(node, options.run)
      else if (name === undefined) throw new UsageFailure('name a pipeline, or a run with --run')
      else await client.stopPipeline(node, (await findPipeline(client, node, name)).id)
      if (options.output === 'json') printJson({})
      else print('stopping')
    })

  addLogs(add)
  addTelemetry(add)

  add('tap', 'show packets on their way through a run, or write them as pcapng')
    .description(
      'Copies packets that leave a component of a run, or with --input those that come to it. The run does not wait: what finds no room is ' +
        'dropped and counted. Without --write a line for each packet; with -o json {time, link, length, data}.',
    )
    .argument('<pipeline>', ID)
    .argument('<component>', 'the name of a component in the configuration')
    .option('--run <id>', 'a run, instead of the current one of the pipeline')
    .option('--input', 'packets that come to the component')
    .option('-w, --write <file>', 'write them as pcapng; - is standard output, as in … -w - | tshark -r -')
    .option('-c, --count <number>', 'end after this many packets', whole(1, 1_000_000_000))
    .option('-s, --snap-length <bytes>', 'bytes kept of each packet', whole(1, 65_535))
    .addOption(
      new Option(
        '--link-type <type>',
        'what pcapng calls the packets; left out: raw (IP) where they look like it',
      ).choices(Object.keys(LINK_TYPES)),
    )
    .action(
      async (name: string, component: string, options: Common & Omit<TapOptions, 'component'> & { run?: string }) => {
        const { client, node } = await targetOf(options)
        await tap(client, node, await findRun(client, node, name, options.run), { ...options, component })
      },
    )
}
