/** The node's configuration: defaults, a YAML file, PENSTOCK_ variables and flags, each over the one before, every value with its origin. */
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { isMap, isScalar, LineCounter, parse, parseDocument, type YAMLMap } from 'yaml'
import type { NodeMetadataItem } from '../contract/types.ts'
import type { AeadBackendName } from '../dataplane/native/native.ts'
import { MAX_RUNS } from '../services/pipeline-runs.ts'
import type { Trusted } from '../services/trust.ts'
import { suggestion } from '../text/names.ts'
import {
  address,
  boolean,
  duration,
  type Form,
  hubUrl,
  type Kind,
  list,
  metadata,
  oneOf,
  origins,
  path,
  type Read,
  size,
  type TlsSetting,
  text,
  tls,
  whole,
} from './config-values.ts'
import { LOG_LEVELS, type NodeLogFormat, type NodeLogLevel } from './log-levels.ts'

/** Everything a node is started with; durations in milliseconds. */
export interface NodeConfig {
  /** Empty: the host's name. */
  'node.name': string
  'node.metadata': Record<string, NodeMetadataItem>
  dataDirectory: string
  /** `host:port`, or `none`. */
  'http.address': string
  'http.tls': TlsSetting
  'http.hostnames': string[]
  'http.allowedOrigins': string[]
  /** `host:port`, or `none`. */
  'grpc.address': string
  'access.open': boolean
  /** What a caller on this machine has to show: nothing, or a token like any other. */
  'access.loopback': 'open' | 'token'
  /** Whether this node hosts a hub server. */
  hubServer: boolean
  /** Whether nodes may ask to join it; they have no other way in. */
  'hubServer.authenticationByRequest': 'taken' | 'none'
  'hubServer.authenticationByRequest.timeout': number
  /** The file with the hub key; empty: the key of this node is the hub's. */
  'hubServer.keyFile': string
  /** Where nodes reach this server of the hub, http or https; empty: they are not told. */
  'hubServer.address': string
  /** Whose pipeline configurations may name files outside the directory `files` of the data directory. */
  'pipelines.trusted': Trusted
  /** Runs of a pipeline whose logs are kept. */
  'runLogs.runs': number
  /** Bytes kept of the log of a run. */
  'runLogs.size': number
  'telemetry.interval': number
  /** What does authenticated encryption: the fastest that can be used, or one that must be there. */
  'crypto.backend': AeadBackendName | 'auto'
  'log.level': NodeLogLevel
  'log.format': NodeLogFormat
}

type SettingKey = keyof NodeConfig

/** One key of the configuration. */
export interface Setting<K extends SettingKey = SettingKey> {
  readonly key: K
  /** The flag of `penstock up`, without dashes. */
  readonly flag: string
  readonly variable: string
  readonly help: string
  readonly form: Form
  readonly read: Read<NodeConfig[K]>
  readonly fallback: () => NodeConfig[K]
}

function setting<K extends SettingKey>(
  key: K,
  flag: string,
  help: string,
  { form, read }: Kind<NodeConfig[K]>,
  fallback: () => NodeConfig[K],
): Setting<K> {
  const variable = `PENSTOCK_${key
    .replaceAll('.', '_')
    .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
    .toUpperCase()}`
  return { key, flag, variable, help, form, read, fallback }
}

/** Where the node keeps its state unless told otherwise. */
export function defaultDataDirectory(): string {
  if (process.getuid?.() === 0) return '/var/lib/penstock'
  return join(process.env.XDG_STATE_HOME || join(homedir(), '.local/state'), 'penstock')
}

/** All keys, in the order of the documentation. */
export const settings: readonly Setting[] = [
  setting('node.name', 'node-name', 'name of the node (default: the name of the host)', text, () => ''),
  setting('node.metadata', 'node-metadata', 'metadata of the node, as in {region: eu, rack: 4}', metadata, () => ({})),
  setting('dataDirectory', 'data-dir', 'where the node keeps its state', path, defaultDataDirectory),
  setting('http.address', 'http', 'where HTTP listens, host:port, or none', address, () => '127.0.0.1:8769'),
  setting('http.tls', 'http-tls', 'none, auto, or {certificate: FILE, key: FILE}', tls, (): TlsSetting => 'none'),
  setting('http.hostnames', 'http-hostnames', 'names besides localhost that callers use for this node', list, () => []),
  setting(
    'http.allowedOrigins',
    'http-allowed-origins',
    'origins of web pages that may call with a token, as in https://a.example',
    origins,
    () => [],
  ),
  setting('grpc.address', 'grpc', 'where gRPC listens, host:port, or none', address, () => '127.0.0.1:8770'),
  setting('access.open', 'open', 'serve callers from other machines without a token', boolean, () => false),
  setting(
    'access.loopback',
    'loopback',
    'callers on this machine: open (anyone here), or token (they need one too)',
    oneOf('open', 'token'),
    (): NodeConfig['access.loopback'] => 'open',
  ),
  setting('hubServer', 'hub', 'host a hub server', boolean, () => false),
  setting(
    'hubServer.authenticationByRequest',
    'authentication-by-request',
    'requests of nodes to join the hub: taken, or none (no further nodes)',
    oneOf('taken', 'none'),
    (): NodeConfig['hubServer.authenticationByRequest'] => 'taken',
  ),
  setting(
    'hubServer.authenticationByRequest.timeout',
    'authentication-request-timeout',
    'how long a request to join waits for its answer',
    duration(1_000, 86_400_000),
    () => 300_000,
  ),
  setting(
    'hubServer.keyFile',
    'hub-key-file',
    "the hub key of a hub with several servers (default: this node's own)",
    path,
    () => '',
  ),
  setting(
    'hubServer.address',
    'hub-address',
    'where nodes reach this server, as in https://hub.example:8769; with a hub key they are told',
    hubUrl,
    () => '',
  ),
  setting(
    'pipelines.trusted',
    'trusted',
    "whose pipelines may name files outside the data directory's files: local (callers of this node), hub (those of the hub's too), or members (every node on the hub)",
    oneOf('local', 'hub', 'members'),
    (): Trusted => 'local',
  ),
  setting('runLogs.runs', 'run-logs', 'runs of a pipeline whose logs are kept', whole(1, MAX_RUNS), () => 20),
  setting(
    'runLogs.size',
    'run-log-size',
    'how much of the log of a run is kept, as in 512KiB or 4MiB; the oldest lines go',
    size(64 << 10, 1 << 30),
    () => 4 << 20,
  ),
  setting(
    'telemetry.interval',
    'telemetry-interval',
    'time between telemetry samples, 100ms at least',
    duration(100, 3_600_000),
    () => 1_000,
  ),
  setting(
    'crypto.backend',
    'crypto-backend',
    'what encrypts and signs packets: auto (the fastest there is), ipsec-mb, or openssl',
    oneOf('auto', 'ipsec-mb', 'openssl'),
    (): NodeConfig['crypto.backend'] => 'auto',
  ),
  setting('log.level', 'log-level', LOG_LEVELS.join(', '), oneOf(...LOG_LEVELS), (): NodeLogLevel => 'info'),
  setting('log.format', 'log-format', 'text or json', oneOf('text', 'json'), (): NodeLogFormat => 'text'),
] as readonly Setting[]

/** A value in force and where it came from: `default`, `penstock.yaml:3`, `PENSTOCK_HTTP_ADDRESS`, `--http`. */
interface Effective {
  readonly key: SettingKey
  readonly value: unknown
  readonly origin: string
}

export interface LoadedConfig {
  readonly config: NodeConfig
  /** One entry per key, in the order of `settings`. */
  readonly effective: readonly Effective[]
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
    if (typed !== undefined) given.set(key, { value: typedValue(entry, typed), origin: variable, base: '.' })
  }
  const byFlag = new Map(settings.map((entry) => [entry.flag, entry]))
  for (const [flag, typed] of Object.entries(flags)) {
    if (typed === undefined) continue
    const known = byFlag.get(flag)
    if (known === undefined) problems.push(`--${flag}: no such flag`)
    else given.set(known.key, { value: typedValue(known, typed), origin: `--${flag}`, base: '.' })
  }
  const config: Record<string, unknown> = {}
  const effective: Effective[] = []
  for (const { key, read, fallback } of settings) {
    const source = given.get(key)
    if (source === undefined) {
      config[key] = fallback()
      effective.push({ key, value: config[key], origin: 'default' })
      continue
    }
    const outcome = read(source.value, source.base)
    if ('problem' in outcome) problems.push(`${source.origin}: ${key}: ${outcome.problem}`)
    else {
      config[key] = outcome.value
      effective.push({ key, value: outcome.value, origin: source.origin })
    }
  }
  if (config['access.open'] === true && config['access.loopback'] === 'token') {
    const { origin } = given.get('access.open') as Given
    problems.push(`${origin}: access.open lets everyone in, and access.loopback: token does not: leave one of them out`)
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return {
    config: config as unknown as NodeConfig,
    effective,
    ...(file === undefined ? {} : { file: file.name === '-' ? 'standard input' : resolve(file.name) }),
  }
}

/** What a flag or variable says; a bare flag says true. */
function typedValue({ form }: Setting, typed: string | boolean): unknown {
  if (typeof typed === 'boolean' || form === 'text' || form === 'duration') return typed
  try {
    return parse(typed) ?? ''
  } catch {
    return typed
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
  const lines = new LineCounter()
  const document = parseDocument(file.text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true })
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
      if (sections.has(name) && isMap(value)) walk(value, `${name}.`)
      else if (sections.has(name) && isEmpty) continue
      else if (settingKeys.has(name)) {
        given.set(name as SettingKey, { value: document.createNode(value).toJS(document), origin, base })
      } else if (sections.has(name)) problems.push(`${origin}: ${name}: must be a map of keys`)
      else problems.push(`${origin}: unknown key "${name}".${suggestion(name, [...settingKeys, ...sections])}`)
    }
  }
  walk(document.contents as YAMLMap, '')
}
