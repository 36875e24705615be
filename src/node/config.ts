/** The node's configuration: defaults, a YAML file, PENSTOCK_ variables and flags, each over the one before, every value with its origin. */
import { resolve } from 'node:path'
import type { Document, YAMLMap } from 'yaml'
import { messageOf } from '../text/error-message.ts'
import { loneSurrogatesOf } from '../text/json-text.ts'
import { suggestion } from '../text/names.ts'
import { yaml } from '../text/yaml.ts'
import { clusterProblems } from './cluster-settings.ts'
import { isSameListener } from './config-values.ts'
import { type NodeConfig, type Setting, type SettingKey, settings } from './settings.ts'

/** A value in force and where it came from: `default`, `penstock.yaml:3`, `PENSTOCK_HTTP_ADDRESS`, `--http`. */
interface Effective {
  readonly key: SettingKey
  /** Without its secrets. */
  readonly value: unknown
  readonly origin: string
}

/** Where each setting was given that is no default. */
export type Chosen = ReadonlyMap<SettingKey, string>

export interface LoadedConfig {
  readonly config: NodeConfig
  /** One entry per key, in the order of `settings`. */
  readonly effective: readonly Effective[]
  readonly chosen: Chosen
  /** The file, when there is one: setNode is refused then, whatever the file holds. */
  readonly file?: string
}

/** Everything wrong with a configuration, each fault with its place. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}

export interface ConfigSources {
  /** The YAML file's name, for messages and to resolve paths in it, and its text. */
  file?: { name: string; text: string }
  /** Environment variables; those that are no setting are left alone. */
  environment?: Readonly<Record<string, string | undefined>>
  /** Values of flags by the settings' flag name, as typed. */
  flags?: Readonly<Record<string, string | boolean | undefined>>
}

interface Given {
  value: unknown
  /** Why the text that was to be YAML has no value. */
  fault?: string
  origin: string
  /** Relative paths start here. */
  base: string
}

/** Reads and checks a configuration. Throws ConfigError with every problem. */
export function loadConfig({ file, environment = {}, flags = {} }: ConfigSources = {}): LoadedConfig {
  const problems: string[] = []
  const given = new Map<SettingKey, Given>()
  if (file !== undefined) readFile(file, given, problems)
  for (const entry of settings) {
    const { key, variable } = entry
    const typed = environment[variable]
    if (typed !== undefined) given.set(key, { ...typedValue(entry, typed), origin: variable, base: '.' })
  }
  const byFlag = new Map(settings.map((entry) => [entry.flag, entry]))
  for (const [flag, typed] of Object.entries(flags)) {
    if (typed === undefined) continue
    const known = byFlag.get(flag)
    if (known === undefined) problems.push(`--${flag}: no such flag`)
    else given.set(known.key, { ...typedValue(known, typed), origin: `--${flag}`, base: '.' })
  }
  // A flag or variable below hubServer does what its key in the file does.
  const below = [...given].find(([key]) => key.startsWith('hubServer.'))
  if (below !== undefined && !given.has('hubServer')) {
    const { origin, base } = below[1]
    given.set('hubServer', { value: true, origin, base })
  }
  const config: Record<string, unknown> = {}
  const effective: Effective[] = []
  for (const entry of settings) {
    const { key, shown, fallback } = entry
    const source = given.get(key)
    if (source === undefined) {
      config[key] = fallback()
      effective.push({ key, value: shown(config[key]), origin: 'default' })
      continue
    }
    const outcome = source.fault === undefined ? readUnicode(entry, source) : { problem: source.fault }
    if ('problem' in outcome) problems.push(`${source.origin}: ${key}: ${outcome.problem}`)
    else {
      config[key] = outcome.value
      effective.push({ key, value: shown(outcome.value), origin: source.origin })
    }
  }
  if (config['access.open'] === true && config['access.loopback'] === 'token') {
    const { origin } = given.get('access.open') as Given
    problems.push(`${origin}: access.open lets everyone in, and access.loopback: token does not: leave one of them out`)
  }
  if (config.dataDirectory === '') {
    problems.push(
      `dataDirectory: this user (uid ${process.getuid?.()}) has no home directory to keep the node's state in: set it (--data-dir), or HOME`,
    )
  }
  if (problems.length === 0) {
    problems.push(...listenerProblems(config as unknown as NodeConfig, (key) => given.get(key)?.origin))
    problems.push(...clusterProblems(config as unknown as NodeConfig, (key) => given.get(key)?.origin))
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return {
    config: config as unknown as NodeConfig,
    effective,
    chosen: new Map([...given].map(([key, { origin }]) => [key, origin])),
    ...(file === undefined ? {} : { file: file.name === '-' ? 'standard input' : resolve(file.name) }),
  }
}

/** Both listeners where only one can be. */
function listenerProblems(config: NodeConfig, originOf: (key: SettingKey) => string | undefined): string[] {
  const { 'http.address': http, 'grpc.address': grpc } = config
  if (!isSameListener(http, grpc)) return []
  const origin = originOf('grpc.address') ?? originOf('http.address')
  return [
    `${origin}: http.address ${http} and grpc.address ${grpc} are the same port: give each a port of its own, or set one of them to none`,
  ]
}

/** Half of a surrogate pair, which YAML's escapes can write and UTF-8 cannot, would come back as another string. */
function readUnicode({ read }: Setting, { value, base }: Given): ReturnType<Setting['read']> {
  const [pointer] = loneSurrogatesOf(value)
  return pointer === undefined
    ? read(value, base)
    : { problem: `${pointer === '' ? 'the text' : pointer} must be Unicode text without lone surrogates` }
}

/** As config-values.ts wants them. */
const YAML_OPTIONS = { prettyErrors: false, uniqueKeys: true, intAsBigInt: true } as const

/** What a flag or variable says; a bare flag says true. What is no YAML is text, unless it begins as a map or a list does. */
function typedValue({ form }: Setting, typed: string | boolean): Pick<Given, 'value' | 'fault'> {
  if (typeof typed === 'boolean' || form === 'text' || form === 'duration') return { value: typed }
  const { parse, YAMLError } = yaml()
  try {
    return { value: parse(typed, YAML_OPTIONS) ?? '' }
  } catch (error) {
    if (!/^\s*[{[]/.test(typed)) return { value: typed }
    const place = error instanceof YAMLError ? `, at character ${error.pos[0] + 1}` : ''
    return { value: typed, fault: messageOf(error) + place }
  }
}

const settingKeys: ReadonlySet<string> = new Set(settings.map(({ key }) => key))
/** Keys that only hold others. */
const sections: ReadonlySet<string> = new Set(
  settings.flatMap(({ key }) => {
    const parts = key.split('.')
    return parts.slice(1).map((_, i) => parts.slice(0, i + 1).join('.'))
  }),
)

function readFile(file: { name: string; text: string }, given: Map<SettingKey, Given>, problems: string[]): void {
  const { isMap, isScalar, LineCounter, parseDocument } = yaml()
  const lines = new LineCounter()
  const document = parseDocument(file.text, { ...YAML_OPTIONS, lineCounter: lines })
  for (const error of document.errors) {
    problems.push(`${file.name}:${lines.linePos(error.pos[0]).line}: ${error.message}`)
  }
  if (document.errors.length > 0 || document.contents === null) return
  if (!isMap(document.contents)) {
    problems.push(`${file.name}: the configuration must be a map of keys`)
    return
  }
  const base = resolve(file.name, '..')
  const walk = (map: YAMLMap, prefix: string): void => {
    for (const { key: node, value } of map.items) {
      const name = `${prefix}${isScalar(node) ? node.value : node}`
      const range = isScalar(node) ? node.range : undefined
      // For editors.
      if (name === '$schema') continue
      const origin = `${file.name}:${lines.linePos(range?.[0] ?? 0).line}`
      const isEmpty = value === null || (isScalar(value) && value.value === null)
      // The presence of hubServer, empty or with keys below, makes the node a hub server; `false` says it is none.
      if (name === 'hubServer' && (isEmpty || isMap(value))) given.set('hubServer', { value: true, origin, base })
      const isClusterEmpty = name === 'hubServer.cluster' && (isEmpty || (isMap(value) && value.items.length === 0))
      if (isClusterEmpty) problems.push(`${origin}: ${name}: has nothing below it: give it name and natsServers`)
      else if (sections.has(name) && isMap(value)) walk(value, `${name}.`)
      else if (sections.has(name) && isEmpty) continue
      else if (settingKeys.has(name)) {
        given.set(name as SettingKey, { ...plainValue(document, value), origin, base })
      } else if (sections.has(name)) problems.push(`${origin}: ${name}: must be a map of keys`)
      else problems.push(`${origin}: unknown key "${name}".${suggestion(name, [...settingKeys, ...sections])}`)
    }
  }
  walk(document.contents as YAMLMap, '')
}

/** The value of a key; aliases in it may have nothing behind them, or multiply without end. */
function plainValue(document: Document, node: unknown): Pick<Given, 'value' | 'fault'> {
  try {
    return { value: document.createNode(node).toJS(document) }
  } catch (error) {
    return { value: undefined, fault: `${messageOf(error)}; text that begins with * must be in quotes` }
  }
}
