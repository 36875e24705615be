/** Checks the text of a jsonConfig against the components' schemas and the graph; lists every problem. */
import { isLonger } from '../../text/characters.ts'
import { isObject, setOwn } from '../../text/json-object.ts'
import { loneSurrogates, readJson } from '../../text/json-text.ts'
import { camelCase, hasWords, suggestion } from '../../text/names.ts'
import { below, type Problem } from '../../text/pointer.ts'
import { asWritten, checkAgainst, typeName, under } from './check-value.ts'
import type { Registry } from './component.ts'
import { COMPONENT_KEYS } from './component-keys.ts'
import type { ComponentConfig, PipelineConfig, Warning } from './config.ts'
import { Shell } from './config-shell.ts'
import { checkKpis, type KpisConfig } from './kpis.ts'
import { metricNamesOf } from './layout.ts'
import { hasCommands, type LifecycleHandler, lifecycleFaults } from './lifecycle.ts'
import { faultsOfLogFilters, type LogFilter } from './log-filters.ts'
import { OWN_PATHS } from './own-metrics.ts'
import { connect, type Onward } from './ports.ts'
import { add, MAX_FOUND } from './problems.ts'
import { roomOf } from './room.ts'
import type { ShmConfig } from './shm-config.ts'
import { shmProblems } from './shm-size.ts'
import { namingVariables, variableWarnings } from './variables.ts'
import { warningsOf } from './warnings.ts'

/** Longest jsonConfig taken, bytes of UTF-8. */
export const MAX_CONFIG_BYTES = 1 << 20
/** Most components in one pipeline. */
export const MAX_COMPONENTS = 1000
/** Longest name of a component, characters. */
export const MAX_COMPONENT_NAME_LENGTH = 256

const componentNames = new Map<string, string>()
for (const key of COMPONENT_KEYS) componentNames.set(key, key).set(camelCase(key), key)

/** Of a word that is no key, as `delay` or `encrypt`: the components that have it in theirs. */
function kindOf(word: string): string {
  const keys = COMPONENT_KEYS.filter((key) => hasWords(key, word)).sort()
  return keys.length > 0 ? ` Of that kind there are ${keys.join(', ')}.` : ''
}

function checkComponent(value: unknown, at: string, available: Registry, problems: Problem[]): ComponentConfig | null {
  if (!isObject(value)) {
    problems.push({ pointer: at, message: `must be an object with one component in it, not ${typeName(value)}` })
    return null
  }
  const members = Object.keys(value).filter((key) => value[key] !== null)
  if (members.length !== 1) {
    const found = members.length === 0 ? 'none' : members.map((member) => `"${member}"`).join(', ')
    problems.push({ pointer: at, message: `exactly one component must be set here, found ${found}` })
    if (members.length === 0) return null
  }
  let result: ComponentConfig | null = null
  for (const member of members) {
    if (problems.length >= MAX_FOUND) break
    const pointer = below(at, member)
    const key = componentNames.get(member) ?? (available.has(member) ? member : undefined)
    const definition = key === undefined ? undefined : available.get(key)
    if (key === undefined || definition === undefined) {
      const guess = suggestion(member, COMPONENT_KEYS, problems.length) || kindOf(member)
      problems.push({ pointer, message: `unknown component "${member}".${guess}` })
      continue
    }
    const before = problems.length
    const config = checkAgainst(definition.config, value[member], pointer, problems) as Record<string, unknown>
    if (problems.length === before) {
      add(problems, under(pointer, definition.check?.(config) ?? []))
    }
    if (problems.length === before) result = { key, config }
  }
  // Of several nobody knows which is meant: its connections neither.
  return members.length === 1 ? result : null
}

/** The key that an object has a field under, in either casing; one that is null counts as absent. */
const keyOf = (object: Record<string, unknown>, name: string): string =>
  (object[name] ?? null) === null ? camelCase(name) : name

/** Whether there is no problem at a place or below it. */
const isSound = (problems: readonly Problem[], at: string): boolean =>
  problems.every(({ pointer }) => pointer !== at && !pointer.startsWith(`${at}/`))

/** Adds what is wrong with how the components hang together; undefined when something is. */
function checkGraph(
  components: Record<string, ComponentConfig>,
  available: Registry,
  problems: Problem[],
): Onward | undefined {
  const { onward, problems: inGraph } = connect(components, available)
  add(problems, inGraph)
  if (inGraph.length > 0) return undefined
  const { refused } = roomOf(components, available, onward)
  problems.push(...refused)
  return refused.length > 0 ? undefined : onward
}

/**
 * Reads a jsonConfig. `config` is null exactly when there are problems. Keys are taken in snake_case and lowerCamelCase,
 * enums by name and number. `available` holds the components that can be used. `warnings` are about a configuration that is taken.
 */
export function checkPipelineConfig(json: string, available: Registry): CheckedConfig {
  const checked = check(json, available)
  if (checked.problems.length === 0) return checked
  return { ...checked, problems: namingVariables(checked.problems, readJson(json).value) }
}

/**
 * As `checkPipelineConfig`, of a configuration that is given: its shared-memory file has room for its metrics too. One that a node has stored
 * runs without that: in the version of the node that took it the metrics may have been fewer.
 */
export function checkGivenConfig(json: string, available: Registry): CheckedConfig {
  const checked = checkPipelineConfig(json, available)
  if (checked.config === null) return checked
  const problems = shmProblems(checked.config, available)
  if (problems.length === 0) return checked
  return { config: null, problems: asWritten(problems, readConfig(json).value), warnings: [] }
}

export interface CheckedConfig {
  readonly config: PipelineConfig | null
  readonly problems: Problem[]
  readonly warnings: Warning[]
}

/** Reads the text of a configuration of any kind: an object, which may have problems all the same, or undefined and why it is none. */
export function readConfig(json: string): { value: Record<string, unknown> | undefined; problems: Problem[] } {
  const refuse = (message: string) => ({ value: undefined, problems: [{ pointer: '', message }] })
  const bytes = Buffer.byteLength(json)
  if (bytes > MAX_CONFIG_BYTES) {
    return refuse(`the configuration has ${bytes} bytes, more than the ${MAX_CONFIG_BYTES} that are taken`)
  }
  const { value, problems: faults } = readJson(json)
  if (faults.length > 0) return { value: undefined, problems: [...faults] }
  if (!isObject(value)) return refuse(`the configuration must be a JSON object, not ${typeName(value)}`)
  const problems = loneSurrogates(json, value).map((pointer) => {
    return { pointer, message: 'must be Unicode text without lone surrogates' }
  })
  return { value, problems }
}

function check(json: string, available: Registry): CheckedConfig {
  const { value, problems } = readConfig(json)
  if (value === undefined) return { config: null, problems, warnings: [] }
  const shell = checkAgainst(Shell, value, '', problems) as {
    version?: number
    engine_config?: Record<string, unknown>
    kpis?: KpisConfig
    meta?: PipelineConfig['meta']
    variables?: PipelineConfig['variables']
  }
  // What is wrong elsewhere in it may not be among them: nothing else is sound then.
  if (problems.length >= MAX_FOUND) return { config: null, problems: asWritten(problems, value), warnings: [] }
  if (typeof shell.version === 'number' && shell.version > 1 && Number.isFinite(shell.version)) {
    problems.push({ pointer: '/version', message: `version ${shell.version} is newer than 1, the one this node reads` })
  }
  const engine = isObject(shell.engine_config) ? shell.engine_config : {}
  const engineAt = below('', keyOf(value, 'engine_config'))
  const engineGiven = (value[engineAt.slice(1)] ?? {}) as Record<string, unknown>
  /** Where a member is, which may be written either way; undefined: it is not there, or is not what its schema says. */
  const soundPlace = (name: string): string | undefined => {
    if (engine[name] === undefined) return undefined
    const at = below(engineAt, keyOf(engineGiven, name))
    return isSound(problems, at) ? at : undefined
  }
  const logFilters = (engine.log_filters ?? []) as LogFilter[]
  const filtersAt = soundPlace('log_filters')
  const metricsFile = soundPlace('shm_config') && (engine.shm_config as ShmConfig).file_path
  if (filtersAt !== undefined) add(problems, under(filtersAt, faultsOfLogFilters(logFilters, metricsFile)))
  const lifecycle = engine.lifecycle_handler as LifecycleHandler | undefined
  const lifecycleAt = soundPlace('lifecycle_handler')
  if (lifecycle !== undefined && lifecycleAt !== undefined) {
    add(problems, under(lifecycleAt, lifecycleFaults(lifecycle)))
  }
  const pipeline = isObject(engine.pipeline) ? engine.pipeline : {}
  const names = Object.keys(pipeline)
  if (isObject(engine.pipeline) && names.length === 0) {
    problems.push({ pointer: `${engineAt}/pipeline`, message: 'the pipeline has no components' })
  }
  if (names.length > MAX_COMPONENTS) {
    const message = `${names.length} components are more than the ${MAX_COMPONENTS} that are taken`
    return { config: null, problems: [{ pointer: `${engineAt}/pipeline`, message }], warnings: [] }
  }
  const components: Record<string, ComponentConfig> = {}
  for (const name of names) {
    if (problems.length >= MAX_FOUND) break
    const at = below(`${engineAt}/pipeline`, name)
    if (name === '' || isLonger(name, MAX_COMPONENT_NAME_LENGTH)) {
      problems.push({
        pointer: at,
        message: `a component needs a name of 1 to ${MAX_COMPONENT_NAME_LENGTH} characters`,
      })
      continue
    }
    if (OWN_PATHS.includes(name)) {
      problems.push({
        pointer: at,
        message: `a component cannot be called "${name}": metrics of the node itself are there`,
      })
    }
    const component = checkComponent(pipeline[name], at, available, problems)
    if (component) setOwn(components, name, component)
  }
  const { kpis, meta, variables = [] } = shell
  // Half a graph, or one of components that are not known, would only report what the problems above have caused.
  const isWhole =
    names.length > 0 && names.every((name) => Object.hasOwn(components, name) && !OWN_PATHS.includes(name))
  const onward = isWhole ? checkGraph(components, available, problems) : undefined
  if (isWhole && kpis !== undefined) {
    const faults = problems
      .filter(({ pointer }) => pointer.startsWith('/kpis/'))
      .map(({ pointer, message }) => ({ pointer: pointer.slice('/kpis'.length), message }))
    add(problems, under('/kpis', checkKpis(kpis, metricNamesOf({ components }, available), faults)))
  }
  if (problems.length > 0 || onward === undefined) {
    return { config: null, problems: asWritten(problems, value), warnings: [] }
  }
  const warnings = asWritten(
    [...warningsOf(components, available, onward), ...variableWarnings(variables, value, available)],
    value,
  )
  const shmConfig = engine.shm_config as ShmConfig | undefined
  const config: PipelineConfig = {
    version: 1,
    components,
    logFilters,
    ...(shmConfig === undefined ? {} : { shmConfig }),
    variables,
    ...(kpis === undefined ? {} : { kpis }),
    ...(meta && { meta }),
    ...(hasCommands(lifecycle) && { lifecycle }),
  }
  return { config, problems, warnings }
}
