/** Settings of a pipeline: from a request to checked settings or every problem in it. */
import type { PipelinePolicy } from '../actors/pipeline.ts'
import { answerable, ServiceError } from '../contract/errors.ts'
import type { CreatePipelineRequest, RestartPolicy, StartupPolicy, UpdatePipelineRequest } from '../contract/types.ts'
import { checkGivenConfig, checkPipelineConfig } from '../dataplane/engine/check.ts'
import type { Registry } from '../dataplane/engine/component.ts'
import type { PipelineConfig, Warning } from '../dataplane/engine/config.ts'
import { pathFaults, withFilesIn } from '../dataplane/engine/files.ts'
import { cpuProblem } from '../dataplane/engine/run.ts'
import type { PipelineRecord, PipelineSettings } from '../store/pipelines.ts'
import { isLonger } from '../text/characters.ts'
import type { Problem } from '../text/pointer.ts'
import type { Author, Authorship, Trust } from './trust.ts'

/** Seconds a pipeline gets for an instruction when its creator names none. */
export const DEFAULT_INSTRUCTIONS_TIMEOUT = 30

/** Most characters of a pipeline's name. */
const MAX_NAME_LENGTH = 256

/** The longest a timer of Node.js can be set to. */
export const MAX_TIMEOUT_MS = 2 ** 31 - 1

/** What settings are checked against. */
export interface SettingsRules {
  /** CPU threads that runs may be pinned to, as the kernel numbers them. */
  readonly cpus: readonly number[]
  /** The components there are; absent: the product's own. */
  readonly registry: Registry
  /** Who may name which files. */
  readonly trust: Trust
}

/** Settings that can run: the settings, who has set them, and what their jsonConfig says, its files as absolute paths. */
export interface CheckedSettings {
  settings: PipelineSettings
  authorship: Authorship
  config: PipelineConfig
}

/**
 * What a stored jsonConfig says, its files as absolute paths, or why it cannot run here: another version of the node may have written it,
 * or its author may be trusted no longer.
 */
export type StoredConfig = { config: PipelineConfig } | { config: null; problem: string }

/** Reads the jsonConfig of stored settings. */
export function storedConfig(record: PipelineRecord, { registry, trust }: SettingsRules): StoredConfig {
  const { settings } = record
  const { config, problems } = checkPipelineConfig(settings.jsonConfig, registry)
  if (config === null) return { config, problem: describeProblems(problems) }
  const refusals = trust.refusals(config, registry, record)
  if (refusals.length > 0) return { config: null, problem: describeProblems(refusals) }
  const placed = withFilesIn(config, registry, trust.files)
  const faults = pathFaults(placed, registry)
  return faults.length > 0 ? { config: null, problem: describeProblems(faults) } : { config: placed }
}

/** Throws FAILED_PRECONDITION when the stored configuration cannot run here. */
export function requireRunnable(stored: StoredConfig): void {
  if (stored.config !== null) return
  throw new ServiceError('FAILED_PRECONDITION', `the stored configuration cannot run here: ${stored.problem}`)
}

/** What a pipeline's machine needs of its settings. */
export function policyOf({ restartPolicy, startupPolicy, instructionsTimeout }: PipelineSettings): PipelinePolicy {
  return { restartPolicy, startupPolicy, instructionsTimeout: Math.min(instructionsTimeout * 1000, MAX_TIMEOUT_MS) }
}

/**
 * Checks a create request of `author`. Throws INVALID_ARGUMENT with every problem, PERMISSION_DENIED with everything that the author is not
 * trusted with.
 */
export function settingsOfCreate(
  request: CreatePipelineRequest,
  rules: SettingsRules,
  author: Author,
): CheckedSettings {
  return checked(createSettings(request), rules, author)
}

function createSettings(request: CreatePipelineRequest): PipelineSettings {
  return {
    ...common(request),
    defaultLoggingLevel: request.defaultLoggingLevel ?? 'INFO',
    instructionsTimeout: request.instructionsTimeout ?? DEFAULT_INSTRUCTIONS_TIMEOUT,
  }
}

/** The same for an update, which replaces the settings: what it leaves out goes back to its default. */
export function settingsOfUpdate(
  request: UpdatePipelineRequest,
  rules: SettingsRules,
  author: Author,
): CheckedSettings {
  return checked(
    {
      ...common(request),
      defaultLoggingLevel: request.defaultLoggingLevel,
      instructionsTimeout: request.instructionsTimeout,
    },
    rules,
    author,
  )
}

function common(request: CreatePipelineRequest | UpdatePipelineRequest) {
  const { name, jsonConfig, nodeReferenceId, cpuPin } = request
  return {
    name,
    jsonConfig,
    restartPolicy: restartPolicyOf(request.restartPolicy),
    startupPolicy: startupPolicyOf(request.startupPolicy),
    performanceMode: request.performanceMode ?? false,
    ...(nodeReferenceId === undefined ? {} : { nodeReferenceId }),
    ...(cpuPin === undefined ? {} : { cpuPin }),
  }
}

function restartPolicyOf(policy: CreatePipelineRequest['restartPolicy']): RestartPolicy {
  if (policy?.always) return { always: { maxRestarts: policy.always.maxRestarts } }
  if (policy?.onFailure) return { onFailure: { maxRestarts: policy.onFailure.maxRestarts } }
  return { never: {} }
}

function startupPolicyOf(policy: CreatePipelineRequest['startupPolicy']): StartupPolicy {
  return policy?.auto ? { auto: {} } : { manual: {} }
}

/** What is wrong with settings, and what in them is doubtful. */
export interface Verdict {
  /** What the settings say; null exactly when there are problems. */
  readonly config: PipelineConfig | null
  readonly problems: Problem[]
  /** What their author is not trusted with; known only where nothing is wrong. */
  readonly refusals: Problem[]
  readonly warnings: Warning[]
}

/** Everything that is wrong with a create request of `author`. */
export function verdictOnCreate(request: CreatePipelineRequest, rules: SettingsRules, author: Author): Verdict {
  return verdictOn(createSettings(request), rules, author)
}

function verdictOn(settings: PipelineSettings, { cpus, registry, trust }: SettingsRules, author: Author): Verdict {
  const problems: Problem[] = []
  if (settings.name.trim() === '') problems.push({ pointer: '/name', message: 'a pipeline needs a name' })
  // Paths hold names, and clients resolve both before they send them (https://url.spec.whatwg.org).
  if (settings.name === '.' || settings.name === '..') {
    problems.push({ pointer: '/name', message: `must not be ${settings.name}, which the path of a URL cannot hold` })
  }
  if (isLonger(settings.name, MAX_NAME_LENGTH)) {
    problems.push({ pointer: '/name', message: `must have at most ${MAX_NAME_LENGTH} characters` })
  }
  if (settings.instructionsTimeout <= 0) {
    problems.push({ pointer: '/instructionsTimeout', message: 'must be greater than 0 (seconds)' })
  }
  if (settings.cpuPin !== undefined && !cpus.includes(settings.cpuPin)) {
    problems.push({ pointer: '/cpuPin', message: cpuProblem(settings.cpuPin, cpus) })
  }
  const { config, problems: inConfig, warnings } = checkGivenConfig(settings.jsonConfig, registry)
  if (settings.jsonConfig === '') {
    problems.push({ pointer: '/jsonConfig', message: 'a pipeline needs a configuration, its JSON as text' })
  } else {
    // The pointers of a configuration's problems lead into the configuration itself.
    problems.push(
      ...inConfig.map(({ pointer, message }) => ({ pointer: pointer === '' ? '/jsonConfig' : pointer, message })),
    )
  }
  if (config === null || problems.length > 0) return { config: null, problems, refusals: [], warnings }
  const refusals = trust.refusals(config, registry, trust.authorship(author))
  const faults = refusals.length > 0 ? [] : pathFaults(withFilesIn(config, registry, trust.files), registry)
  if (faults.length > 0) return { config: null, problems: faults, refusals, warnings }
  return { config, problems, refusals, warnings }
}

function checked(settings: PipelineSettings, rules: SettingsRules, author: Author): CheckedSettings {
  const { config, problems, refusals } = verdictOn(settings, rules, author)
  if (config === null) {
    const told = answerable(problems)
    throw new ServiceError('INVALID_ARGUMENT', describeProblems(told), { problems: told })
  }
  if (refusals.length > 0) {
    const told = answerable(refusals)
    throw new ServiceError('PERMISSION_DENIED', describeProblems(told), { problems: told })
  }
  const { registry, trust } = rules
  return { settings, authorship: trust.authorship(author), config: withFilesIn(config, registry, trust.files) }
}

/** All problems in one line. */
function describeProblems(problems: readonly Problem[]): string {
  const list = problems.map(({ pointer, message }) => `${pointer}: ${message}`).join('; ')
  return problems.length === 1 ? list : `${problems.length} problems: ${list}`
}
