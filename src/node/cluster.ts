/** This node as one server of a hub of several: their common state, in NATS JetStream. */
import { createHash } from 'node:crypto'
import { credsAuthenticator } from '@nats-io/transport-node'
import type { Clock } from '../contract/clock.ts'
import { ClusterRegistry } from '../hub/cluster/cluster-registry.ts'
import type { EngineAccess, EngineOptions } from '../hub/cluster/engine.ts'
import type { HubSigner } from '../link/hub-key.ts'
import type { Identity } from '../link/identity.ts'
import { rawKey } from '../link/keys.ts'
import type { NodeRecord } from '../link/link.ts'
import type { Store } from '../store/store.ts'
import { messageOf } from '../text/error-message.ts'
import { ClusterLog } from './cluster-log.ts'
import { doubtOf } from './current-certificate.ts'
import type { FactLog } from './facts.ts'
import type { SharedHub } from './hub-part.ts'
import { natsServersOf } from './nats-addresses.ts'
import { readSettingFile } from './setting-file.ts'
import type { NodeConfig } from './settings.ts'
import { readTls } from './tls.ts'

export interface ClusterNeeds {
  readonly config: NodeConfig
  readonly identity: Identity
  readonly signer: HubSigner
  /** What this server's node says of itself. */
  readonly self: NodeRecord
  readonly store: Store
  readonly log: FactLog
  readonly clock: Clock
  /** Ends a wait for NATS. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Connects to the state of the hub and takes a lease; the caller closes the registry. Throws an Error that names the setting where a file cannot be used,
 * EngineUnfit where NATS does not answer in time or is not what it should be, and the reason of the signal.
 */
export async function openCluster(needs: ClusterNeeds): Promise<SharedHub & { readonly registry: ClusterRegistry }> {
  const { config, identity, signer, self, store, log, clock, signal } = needs
  const facts = new ClusterLog(log, clock)
  const registry = await ClusterRegistry.open({
    selfId: identity.nodeId,
    selfKey: rawKey(identity.publicKey),
    self,
    engine: {
      ...engineSettings(config, hubIdOf(signer.key)),
      connectionName: `penstock ${self.name} ${identity.nodeId}`,
      ...(signal === undefined ? {} : { signal }),
    },
    clock,
    onFact: (fact) => facts.tell(fact),
    onError: (message, error) => facts.error(message, error),
  })
  const known = new Set(registry.nodes().map(({ id }) => id))
  const left = store.nodes.all().filter(({ id }) => !known.has(id)).length
  if (left > 0) {
    log.warn(
      { nodes: left },
      'nodes that were on the hub of this data directory are not on this one of several servers: penstock hub export and import take them over',
    )
  }
  return { registry, directory: registry.directory }
}

/** What tells the state of this hub from that of others: SHA-256 of the hub's raw public key. */
export function hubIdOf(hubKey: Uint8Array): Uint8Array {
  return createHash('sha256').update(hubKey).digest()
}

/** The connection to the NATS servers that the configuration describes. Throws an Error that names the setting whose file cannot be used. */
export function engineSettings(
  config: NodeConfig,
  hubId: Uint8Array,
): Omit<EngineOptions, 'timers' | 'onFact' | 'connectionName'> {
  const access = () => accessOf(config)
  // A file that cannot be used is told of before anything is tried.
  access()
  return {
    servers: natsServersOf(config['hubServer.cluster.natsServers']).servers,
    name: config['hubServer.cluster.name'],
    hubId,
    replicas: config['hubServer.cluster.replicas'],
    access,
  }
}

/** What the files hold now. Throws as engineSettings. */
function accessOf(config: NodeConfig): EngineAccess {
  const { login, isTls } = natsServersOf(config['hubServer.cluster.natsServers'])
  const credentials = config['hubServer.cluster.credentialsFile']
  return {
    ...(login === undefined ? {} : { login }),
    ...(isTls ? { tls: {} } : {}),
    ...tlsFiles(config),
    ...(credentials === '' ? {} : readCredentials(credentials)),
  }
}

function readCredentials(file: string): EngineAccess {
  const setting = 'hubServer.cluster.credentialsFile'
  const credentials = read(setting, file)
  let ends: number
  try {
    const { jwt } = credsAuthenticator(credentials)('') as { jwt: string }
    const { exp = 0 } = JSON.parse(Buffer.from(jwt.split('.')[1] as string, 'base64url').toString())
    ends = 1_000 * exp
  } catch {
    throw new Error(
      `${setting}: ${file} holds no credentials: the JWT of a user and the seed of its key, as nsc writes them`,
    )
  }
  // Without that, or with 0, they do not end.
  if (ends === 0 || ends > Date.now()) return { credentials }
  return { credentials, outOfTime: `the credentials in ${file} expired on ${new Date(ends).toISOString()}` }
}

function tlsFiles(config: NodeConfig): Pick<EngineAccess, 'tls' | 'outOfTime'> {
  const authority = config['hubServer.cluster.tls.caFile']
  const certificate = config['hubServer.cluster.tls.certificateFile']
  const key = config['hubServer.cluster.tls.keyFile']
  if (authority === '' && certificate === '') return {}
  const pair = certificate === '' ? undefined : readTls({ certificate, key }, 'hubServer.cluster.tls')
  const tls = {
    ...(authority === '' ? {} : { ca: `${read('hubServer.cluster.tls.caFile', authority)}` }),
    ...(pair === undefined ? {} : { cert: `${pair.cert}`, key: `${pair.key}` }),
  }
  const doubt = pair && doubtOf(pair, Date.now())
  return { tls, ...(doubt !== undefined && doubt.kind !== 'ENDING' && { outOfTime: doubt.message }) }
}

function read(setting: string, file: string): Buffer {
  try {
    return readSettingFile(file)
  } catch (error) {
    throw new Error(`${setting}: cannot read ${file}: ${messageOf(error)}`)
  }
}
