/** What the commands on pipelines share: the node meant, the argument that names a pipeline, the options of its settings. */
import type {
  Client,
  Level,
  Pipeline,
  RestartPolicy,
  RestartPolicyInput,
  StartupPolicy,
  StartupPolicyInput,
  UpdatePipelineRequest,
} from '@penstock/client'
import { type Command, InvalidArgumentError } from 'commander'
import { hasCode } from './client.ts'
import { Failure } from './failure.ts'
import { ID_OR_NAME } from './ids.ts'
import { duration, type Format, logLevel, whole } from './options.ts'
import type { TargetOptions } from './target.ts'
import { named } from './terminal.ts'

export interface Common extends TargetOptions {
  output: Format
}

/** What an update sends of a pipeline. */
export type UpdateSettings = Omit<UpdatePipelineRequest, 'nodeId' | 'id'>

/** Adds a verb to `penstock pipelines`. */
export type AddVerb = (usage: string, summary: string) => Command

/** Help of an argument that names a pipeline. */
export const PIPELINE = `the pipeline: ${ID_OR_NAME}`

export interface SettingOptions {
  cpuPin?: number | 'none'
  performanceMode?: boolean
  restartPolicy?: RestartPolicyInput
  startupPolicy?: StartupPolicyInput
  logLevel?: Level
  instructionsTimeout?: number
  nodeReference?: string
}

const MAX_RESTARTS = 4294967295

/** `never`, `always`, `always:5`, `on-failure`, `on-failure:5`. */
export function restartPolicy(given: string): RestartPolicyInput {
  const [, policy, count = '0'] = /^(never|always|on-failure)(?::(\d+))?$/.exec(given) ?? []
  const maxRestarts = Number(count)
  if (policy === undefined || maxRestarts > MAX_RESTARTS || (policy === 'never' && given !== 'never')) {
    throw new InvalidArgumentError('Expected never, always, on-failure, or with a limit always:5, on-failure:5.')
  }
  if (policy === 'never') return { never: {} }
  return policy === 'always' ? { always: { maxRestarts } } : { onFailure: { maxRestarts } }
}

/** A restart or startup policy as `restartPolicy` and `startupPolicy` read it. */
export function policyText(policy: RestartPolicy | StartupPolicy | undefined): string {
  const [[name, value] = ['', {}]] = Object.entries(policy ?? {})
  const limit = (value as { maxRestarts?: number }).maxRestarts
  const written = name === 'onFailure' ? 'on-failure' : name
  return limit ? `${written}:${limit}` : written
}

/** `manual`, `auto`. */
export function startupPolicy(given: string): StartupPolicyInput {
  if (given === 'manual') return { manual: {} }
  if (given === 'auto') return { auto: {} }
  throw new InvalidArgumentError('Expected manual or auto.')
}

/** `none` gives the choice back to the node. */
export function cpuPin(given: string): number | 'none' {
  return given === 'none' ? given : whole(0, 4294967295)(given)
}

/** A whole number of seconds, or a duration. */
export function seconds(given: string): number {
  const value = /^\d+$/.test(given) ? Number(given) : Math.ceil(duration(given) / 1000)
  if (value < 1) throw new InvalidArgumentError('Expected at least one second.')
  if (value > 2147483647) throw new InvalidArgumentError('Expected at most 2147483647 seconds.')
  return value
}

/** Adds an option for each setting of a pipeline. */
export function withSettings(command: Command): Command {
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

/** The settings of a pipeline as it is: what an update that changes nothing would send. */
export function settingsOf({ id, started, currentRun, restarts, ...settings }: Pipeline): UpdateSettings {
  return { ...settings, forceRestart: false }
}

/** The settings that options name, and no others. */
export function given(options: SettingOptions): Partial<UpdateSettings> {
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

/** Refuses a name that a pipeline other than `self` has: whatever takes names would find both. */
export async function refuseTaken(client: Client, node: string, name: string, self?: string): Promise<void> {
  const { pipelines } = await client.getPipelines({ nodeId: node }).catch((error: unknown) => {
    if (!hasCode(error, 'RESOURCE_EXHAUSTED')) throw error
    throw new Failure(
      `whether a pipeline has the name "${named(name)}" already cannot be told: ${error.message}\n` +
        '  to give it the name in any case: --force',
    )
  })
  const others = pipelines.filter((other) => other.name === name && other.id !== self)
  if (others.length === 0) return
  throw new Failure(
    `"${named(name)}" is the name of a pipeline on node ${node} already: ${others.map(({ id }) => id).join(', ')}; ` +
      'choose another name, or give it to both with --force',
  )
}
