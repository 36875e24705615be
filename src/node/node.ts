/** A node: everything composed from a configuration, from the store to the listeners, and taken down in reverse. */
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { Access } from '../api/access.ts'
import { Dispatcher } from '../api/dispatcher.ts'
import type { Page } from '../api/http-response.ts'
import { type Clock, systemClock } from '../contract/clock.ts'
import { components } from '../dataplane/components/registry.ts'
import { prepareChecks } from '../dataplane/engine/check-value.ts'
import type { Registry } from '../dataplane/engine/component.ts'
import type { RunPool } from '../dataplane/engine/run.ts'
import { useAeadBackend } from '../dataplane/native/aead-backends.ts'
import { openRunPool } from '../dataplane/product.ts'
import type { LocalDetails } from '../hub/local-details.ts'
import type { HubSigner } from '../link/hub-key.ts'
import { type Identity, loadIdentity } from '../link/identity.ts'
import type { NodeRecord } from '../link/link.ts'
import { AccessService } from '../services/access.ts'
import { PipelinesService } from '../services/pipelines.ts'
import { Trust } from '../services/trust.ts'
import { isServerOf } from '../store/sign-in.ts'
import { Store } from '../store/store.ts'
import { PROMETHEUS_TYPE } from '../telemetry/prometheus.ts'
import { RunLogs } from '../telemetry/run-logs.ts'
import { messageOf } from '../text/error-message.ts'
import { certificateOf } from './certificate.ts'
import { isInCluster } from './cluster-settings.ts'
import type { Chosen } from './config.ts'
import { claimDataDirectory, ofDirectory, reserve } from './data-directory.ts'
import { documentPages } from './documents.ts'
import { logLostLines, logPipeline, spareThreadLog } from './facts.ts'
import { createHubPart } from './hub.ts'
import { hubSigner } from './hub-key.ts'
import { dialWith, linkServer } from './hub-links.ts'
import { detailsOf, type HubPart, type SharedHub } from './hub-part.ts'
import { listenGrpc, listenHttp, servesLoopback } from './listeners.ts'
import { createLog } from './log.ts'
import { tellWithout } from './not-in-effect.ts'
import type { NodeConfig } from './settings.ts'
import { keepTokenFile } from './token-file.ts'

/** A node that is up. */
export interface StartedNode {
  readonly id: string
  /** Where HTTP and gRPC listen, `host:port` with the port that was had; undefined when switched off. */
  readonly http: string | undefined
  readonly grpc: string | undefined
  readonly log: Logger
  /** Takes a certificate that was renewed (`http.tls`) at once, and not at the next looks. */
  reload(): void
  /** Stops the runs, ends every stream, closes listeners, threads and store. Safe to call twice. */
  close(): Promise<void>
}

/** What a test or an embedding program replaces. */
export interface NodeOptions {
  log?: Logger
  /** Closed with the node. */
  pool?: RunPool
  registry?: Registry
  /** The configuration's file, if it has one: nobody may change the node's name and metadata through the API then. */
  file?: string | undefined
  /** What somebody chose, and where; default: nothing. */
  chosen?: Chosen
  /** What the servers of a hub share, as the one with this node id has it; absent: as `hubServer.cluster` says. Needs `hubServer.keyFile`. */
  shared?: (nodeId: string, self: NodeRecord) => SharedHub | Promise<SharedHub>
  /** Ends a start that waits for the state of a hub of several servers, with its reason. */
  signal?: AbortSignal
  /** Drives heartbeats, reconnects and deadlines of links and of requests to join; default: the system's. */
  clock?: Clock
}

/**
 * Starts a node. Rejects, with everything taken down again, when the data directory is in use (DirectoryInUse) or cannot be used
 * (DirectoryUnusable), an address cannot be listened on, the state of a hub of several servers is not to be had (EngineUnfit), or the configuration asks
 * for what this version or machine does not have.
 */
export async function startNode(config: NodeConfig, options: NodeOptions = {}): Promise<StartedNode> {
  refuseUnavailable(config)
  useAeadBackend(config['crypto.backend'], 'crypto.backend')
  prepareChecks()
  const { clock = systemClock } = options
  const log = options.log ?? createLog({ level: config['log.level'], format: config['log.format'] })
  /** What to close, last first. */
  const opened: (() => void | Promise<void>)[] = []
  let closed: Promise<void> | undefined
  const close = async () => {
    for (const step of opened.splice(0).reverse()) await step()
  }
  try {
    opened.push(claimDataDirectory(config.dataDirectory))
    const store = ofDirectory(config.dataDirectory, () => new Store(config.dataDirectory, { reserve }))
    opened.push(() => store.close())
    const identity = ofDirectory(config.dataDirectory, () => loadIdentity(config.dataDirectory))
    const node = { id: identity.nodeId }
    const certificate = ofDirectory(config.dataDirectory, () => certificateOf(config, log, clock))
    const signer = hubSigner(config, identity)
    const details = detailsOf({
      store,
      name: config['node.name'] || hostname(),
      metadata: config['node.metadata'],
      file: options.file,
      isHubServer: config.hubServer,
    })
    const certificateKey = () => certificate?.tls.certificate.key
    const common = { identity, signer, details, store, log, clock, certificateKey }
    let shared: SharedHub | undefined
    const pool = options.pool ?? openRunPool({ onError: spareThreadLog(log) })
    opened.push(() => pool.close())
    const pipelines = new PipelinesService({
      node,
      store,
      pool,
      telemetryInterval: config['telemetry.interval'],
      onError: (message, error) => log.error({ err: error }, message),
      onFact: (fact) => logPipeline(log, fact),
      onLeftovers: (processes) =>
        log.warn({ processes }, 'ended what commands of runs had left that the last end of the node cut off'),
      registry: options.registry ?? components,
      trust: new Trust({
        files: join(config.dataDirectory, 'files'),
        trusted: config['pipelines.trusted'],
        isHubServer: (id) => {
          // A sign-in to a hub is not in effect on a node that serves one itself.
          if (config.hubServer) return shared?.directory.servers().some((server) => server.id === id) === true
          const signIn = store.signIn.get()
          return signIn !== undefined && isServerOf(signIn, id)
        },
        hubId: () => (config.hubServer ? (signer?.hubId ?? node.id) : store.signIn.get()?.hubId),
      }),
      runLogs: new RunLogs({
        directory: join(config.dataDirectory, 'logs'),
        runs: config['runLogs.runs'],
        bytes: config['runLogs.size'],
        onLost: (run, lost) => logLostLines(log, { run, ...lost, error: messageOf(lost.error) }),
      }),
    })
    await pipelines.open()
    opened.push(() => pipelines.close())
    // The state of the hub may be long in coming, and these need nothing of it.
    if (isInCluster(config)) pipelines.startWithNode()
    shared = await openShared(config, options, common)
    opened.push(() => shared?.registry.close())
    const hub = hubPart(config, { ...common, shared, dispatcher: () => dispatcher })
    const tokens = new AccessService({
      tokens: store.tokens,
      onError: (error) => log.error({ err: error }, 'the use of a token could not be noted'),
    })
    const dispatcher: Dispatcher = new Dispatcher({
      handlers: { ...pipelines.handlers, ...hub.handlers, ...tokens.handlers },
      forward: hub.forward,
      report: (error, operation) => log.error({ err: error, operation }, 'operation failed'),
    })
    const access = new Access({
      open: config['access.open'],
      loopback: config['access.loopback'],
      hostnames: config['http.hostnames'],
      allowedOrigins: config['http.allowedOrigins'],
      verifyToken: tokens.verify,
    })
    await guardLoopback(config, tokens, log, options.chosen?.has('access.loopback'))
    tellWithout({ node, signer, config, chosen: options.chosen ?? new Map(), details, store, log })
    const links = linkServer(hub, common)
    const pages = new Map<string, Page>([
      ['/metrics', { type: PROMETHEUS_TYPE, text: () => pipelines.prometheus() }],
      ...documentPages(),
    ])
    const listeners = { dispatcher, access, certificate, links, pages, log, opened }
    const http = await listenHttp(config, listeners)
    const grpc = await listenGrpc(config, listeners)
    tokens.onRevoked((name) => {
      for (const listener of [http?.listener, grpc?.listener]) listener?.endCallsOf(name)
    })
    certificate?.watch()
    opened.push(() => certificate?.unwatch())
    opened.push(() => links?.close())
    opened.push(() => hub.close())
    hub.start()
    if (!isInCluster(config)) pipelines.startWithNode()
    log.info({ node: node.id, http: http?.text, grpc: grpc?.text, dataDirectory: config.dataDirectory }, 'node is up')
    return {
      id: node.id,
      http: http?.text,
      grpc: grpc?.text,
      log,
      reload: () => {
        if (certificate?.isRenewable) certificate.look({ isAsked: true })
        else log.info('nothing is read anew while the node runs: http.tls names no files')
      },
      close: () => {
        closed ??= close().then(() => log.info('node is down'))
        return closed
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Makes the token file where callers on this machine need a token, and says who may call where that is more than is good. */
async function guardLoopback(config: NodeConfig, tokens: AccessService, log: Logger, isChosen = false): Promise<void> {
  if (config['access.open']) {
    log.warn('access.open is set: everyone who reaches this node can control it')
  } else if (config['access.loopback'] === 'token') {
    const { path, made } = await keepTokenFile(config.dataDirectory, tokens)
    if (made !== undefined) log.info({ file: path }, `made a token for callers on this machine: ${made}`)
  } else if (process.geteuid?.() === 0 && !isChosen && servesLoopback(config)) {
    log.warn(
      'run by root, this node obeys every user of this machine: set access.loopback to token (--loopback token) to ask them for a ' +
        'token, or to open if that is meant',
    )
  }
}

function refuseUnavailable(config: NodeConfig): void {
  if (config.hubServer && config['http.address'] === 'none') {
    throw new Error('hubServer: nodes reach a hub over HTTP, so http.address cannot be none')
  }
}

interface SharedNeeds {
  readonly identity: Identity
  readonly signer: HubSigner | undefined
  readonly details: LocalDetails
  readonly store: Store
  readonly log: Logger
  readonly clock: Clock
}

/** What this node shares with the other servers of its hub; undefined: there are none. */
async function openShared(
  config: NodeConfig,
  { shared, signal }: NodeOptions,
  { signer, details, ...needs }: SharedNeeds,
): Promise<SharedHub | undefined> {
  if (shared === undefined && !isInCluster(config)) return undefined
  if (signer === undefined) {
    throw new Error('hubServer.keyFile: a hub of several servers needs a hub key (penstock hub key create)')
  }
  if (shared !== undefined) return await shared(needs.identity.nodeId, details.record)
  const { openCluster } = await import('./cluster.ts')
  return await openCluster({ ...needs, config, signer, self: details.record, signal })
}

interface HubPartNeeds {
  readonly identity: Identity
  readonly signer: HubSigner | undefined
  readonly details: LocalDetails
  readonly shared: SharedHub | undefined
  readonly store: Store
  readonly log: Logger
  readonly clock: Clock
  readonly certificateKey: () => Uint8Array | undefined
  readonly dispatcher: () => Dispatcher
}

/** This node as the host or a member of a hub. */
function hubPart(config: NodeConfig, { shared, ...needs }: HubPartNeeds): HubPart {
  const { identity, signer } = needs
  const requestTimeout =
    config['hubServer.authenticationByRequest'] === 'taken'
      ? config['hubServer.authenticationByRequest.timeout']
      : undefined
  return createHubPart({
    ...needs,
    nodeId: identity.nodeId,
    hubServer: config.hubServer ? { requestTimeout, signer, address: config['hubServer.address'], shared } : undefined,
    dial: dialWith(needs),
  })
}
