/** The settings of a node: what each is called, what it takes, and what holds where nothing is said. */
import { homedir, hostname } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import type { NodeMetadataItem } from '../contract/types.ts'
import type { AeadBackendName } from '../dataplane/native/cipher-calls.ts'
import { MAX_RUNS } from '../services/pipeline-runs.ts'
import type { Trusted } from '../services/trust.ts'
import {
  address,
  boolean,
  clusterName,
  duration,
  type Form,
  hostnames,
  hubUrl,
  type Kind,
  metadata,
  oneOf,
  oneOfNumbers,
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
import { natsAddresses } from './nats-addresses.ts'

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
  /** What the state of a hub of several servers is called in NATS; empty: the hub has this server only. */
  'hubServer.cluster.name': string
  /** `nats://` or `tls://`, all of them perhaps with the same user and password. */
  'hubServer.cluster.natsServers': string[]
  /** Empty: none. */
  'hubServer.cluster.credentialsFile': string
  /** The authorities that vouch for the NATS servers; empty: those that Node.js knows. */
  'hubServer.cluster.tls.caFile': string
  /** What this server shows them, both or neither. */
  'hubServer.cluster.tls.certificateFile': string
  'hubServer.cluster.tls.keyFile': string
  /** NATS servers that keep each part of the hub's state. */
  'hubServer.cluster.replicas': number
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

export type SettingKey = keyof NodeConfig

/** One key of the configuration. */
export interface Setting<K extends SettingKey = SettingKey> {
  readonly key: K
  /** The flag of `penstock up`, without dashes. */
  readonly flag: string
  readonly variable: string
  readonly help: string
  readonly form: Form
  readonly read: Read<NodeConfig[K]>
  /** The value as others may see it: without its secrets. */
  readonly shown: (value: unknown) => unknown
  readonly fallback: () => NodeConfig[K]
}

function setting<K extends SettingKey>(
  key: K,
  flag: string,
  help: string,
  { form, read, shown = (value) => value }: Kind<NodeConfig[K]>,
  fallback: () => NodeConfig[K],
): Setting<K> {
  const variable = `PENSTOCK_${key
    .replaceAll('.', '_')
    .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
    .toUpperCase()}`
  return { key, flag, variable, help, form, read, shown, fallback }
}

/** Empty stands for the host's. */
const nodeName: Kind<string> = { ...text, shown: (name) => name || hostname() }

/** Where the node keeps its state unless told otherwise; undefined for a user without a home. */
export function defaultDataDirectory(): string | undefined {
  if (process.getuid?.() === 0) return '/var/lib/penstock'
  const { XDG_STATE_HOME } = process.env
  if (XDG_STATE_HOME) return resolve(XDG_STATE_HOME, 'penstock')
  const home = homeDirectory()
  return home === undefined ? undefined : join(home, '.local/state/penstock')
}

/** HOME, or what the system has of this user: of a number without a name, as in a container, it has nothing. */
function homeDirectory(): string | undefined {
  try {
    const home = homedir()
    return isAbsolute(home) ? home : undefined
  } catch {
    return undefined
  }
}

/** All keys, in the order of the documentation. */
export const settings: readonly Setting[] = [
  setting(
    'node.name',
    'node-name',
    'name of the node until "nodes set" gives it another (default: the name of the host)',
    nodeName,
    () => '',
  ),
  setting(
    'node.metadata',
    'node-metadata',
    'metadata of the node until "nodes set" gives it other, as in {region: eu, rack: 4}',
    metadata,
    () => ({}),
  ),
  setting('dataDirectory', 'data-dir', 'where the node keeps its state', path, () => defaultDataDirectory() ?? ''),
  setting('http.address', 'http', 'where HTTP listens, host:port, or none', address, () => '127.0.0.1:8769'),
  setting('http.tls', 'http-tls', 'none, auto, or {certificate: FILE, key: FILE}', tls, (): TlsSetting => 'none'),
  setting(
    'http.hostnames',
    'http-hostnames',
    'names besides localhost that callers use for this node',
    hostnames,
    () => [],
  ),
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
    'hubServer.cluster.name',
    'hub-cluster-name',
    'what the state of a hub of several servers is called in NATS: letters, digits, - and _',
    clusterName,
    () => '',
  ),
  setting(
    'hubServer.cluster.natsServers',
    'hub-cluster-nats-servers',
    'the NATS servers that keep it, as in tls://n1:4222,tls://n2:4222',
    natsAddresses,
    () => [],
  ),
  setting(
    'hubServer.cluster.credentialsFile',
    'hub-cluster-credentials-file',
    'what this server proves to them: a credentials file of NATS (.creds)',
    path,
    () => '',
  ),
  setting(
    'hubServer.cluster.tls.caFile',
    'hub-cluster-tls-ca-file',
    'the authority of their certificates, PEM (default: those that Node.js knows)',
    path,
    () => '',
  ),
  setting(
    'hubServer.cluster.tls.certificateFile',
    'hub-cluster-tls-certificate-file',
    'the certificate that this server shows them, PEM',
    path,
    () => '',
  ),
  setting('hubServer.cluster.tls.keyFile', 'hub-cluster-tls-key-file', 'its key, PEM, unencrypted', path, () => ''),
  setting(
    'hubServer.cluster.replicas',
    'hub-cluster-replicas',
    'how many of them keep each part of the state: 1, 3 or 5',
    oneOfNumbers(1, 3, 5),
    () => 3,
  ),
  setting(
    'pipelines.trusted',
    'trusted',
    "whose pipelines may run commands (lifecycle_handler) and name files outside the data directory's files: local (callers of this node), hub (those of the hub's too), or members (every node on the hub)",
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
    'what encrypts and signs packets: auto (the fastest there is), avx512, ipsec-mb, or openssl',
    oneOf('auto', 'avx512', 'ipsec-mb', 'openssl'),
    (): NodeConfig['crypto.backend'] => 'auto',
  ),
  setting('log.level', 'log-level', LOG_LEVELS.join(', '), oneOf(...LOG_LEVELS), (): NodeLogLevel => 'info'),
  setting('log.format', 'log-format', 'text or json', oneOf('text', 'json'), (): NodeLogFormat => 'text'),
] as readonly Setting[]
