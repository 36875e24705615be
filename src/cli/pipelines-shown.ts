/** Pipelines as people read them: their state, a table of them, one with all its facts. */
import type { Pipeline, RestartPolicy, StartupPolicy } from '@penstock/client'
import type { Format } from './options.ts'
import { type Column, named, paint, print, printJson, table } from './terminal.ts'

function policyName(policy: RestartPolicy | StartupPolicy | undefined): string {
  const [[name, value] = ['', {}]] = Object.entries(policy ?? {})
  const limit = (value as { maxRestarts?: number }).maxRestarts
  const written = name === 'onFailure' ? 'on-failure' : name
  return limit ? `${written}, ${limit} times at most` : written
}

function stateOf({ started, currentRun, restarts }: Pipeline): string {
  // Of a node of a later version they may be numbers.
  const state = currentRun === undefined ? (started ? 'started' : 'stopped') : `${currentRun.state}`.toLowerCase()
  if (currentRun?.outcome) {
    return `${state} (${`${currentRun.outcome}`.toLowerCase()})${restarts?.nextAt === undefined ? '' : ', starts again'}`
  }
  return state
}

/** What state it is in, green while it runs. */
export function coloured(pipeline: Pipeline): string {
  const text = stateOf(pipeline)
  if (pipeline.currentRun?.state === 'RUNNING') return paint(text, 'green')
  return pipeline.currentRun?.outcome === 'FAILED' ? paint(text, 'red') : text
}

export const PIPELINE_COLUMNS: readonly Column[] = [
  { title: 'ID', whole: true },
  { title: 'NAME' },
  { title: 'STATE' },
  { title: 'RUN', whole: true, spare: true },
  { title: 'CPU', spare: true },
  { title: 'RESTART', spare: true },
  { title: 'STARTUP', spare: true },
]

/** One row under PIPELINE_COLUMNS. */
export function pipelineRow(pipeline: Pipeline): string[] {
  const { id, name, currentRun, cpuPin, restartPolicy, startupPolicy } = pipeline
  return [
    id,
    named(name),
    coloured(pipeline),
    currentRun?.id ?? '',
    String(currentRun?.cpu ?? cpuPin ?? ''),
    policyName(restartPolicy),
    policyName(startupPolicy),
  ]
}

export function printPipelines(pipelines: readonly Pipeline[]): void {
  if (pipelines.length === 0) {
    print('no pipelines; create one with "penstock pipelines create NAME CONFIG.json"')
    return
  }
  print(table(PIPELINE_COLUMNS, pipelines.map(pipelineRow)))
}

/** `2 of at most 5 in a row, the next at 2026-11-22T10:00:00.000Z`; undefined when there is nothing to say. */
function restartsText({ restarts, restartPolicy }: Pipeline): string | undefined {
  if (restarts === undefined) return undefined
  const most = (restartPolicy?.always ?? restartPolicy?.onFailure)?.maxRestarts
  const next = restarts.nextAt === undefined ? '' : `, the next at ${restarts.nextAt}`
  return `${restarts.count}${most ? ` of at most ${most}` : ''} in a row${next}`
}

export function printPipeline(pipeline: Pipeline, output: Format, withConfig = false): void {
  if (output === 'json') {
    printJson(pipeline)
    return
  }
  const run = pipeline.currentRun
  const facts: [string, string | undefined][] = [
    ['id', pipeline.id],
    ['name', named(pipeline.name)],
    ['state', coloured(pipeline)],
    ['run', run?.id],
    ['started', run?.startedAt],
    ['ended', run?.endedAt],
    ['error', run?.error && named(run.error)],
    ['restarts', restartsText(pipeline)],
    ['cpu', run?.cpu === undefined ? undefined : String(run.cpu)],
    ['cpu pin', pipeline.cpuPin === undefined ? 'chosen by the node' : String(pipeline.cpuPin)],
    ['performance mode', pipeline.performanceMode ? 'on' : 'off'],
    ['restart policy', policyName(pipeline.restartPolicy)],
    ['startup policy', policyName(pipeline.startupPolicy)],
    ['log level', pipeline.defaultLoggingLevel],
    ['instructions timeout', `${pipeline.instructionsTimeout} s`],
    ['node reference', named(pipeline.nodeReferenceId ?? '')],
  ]
  const rows = facts.filter((fact): fact is [string, string] => Boolean(fact[1]))
  print(table([{ title: '' }, { title: '', wrap: true }], rows))
  if (withConfig) print(`\n${pipeline.jsonConfig}`)
}
