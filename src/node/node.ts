/** A node: everything composed from a configuration, from the store to the listeners, and taken down in reverse. */
import { isIP } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { Access } from '../api/access.ts'
import { readDashboard } from '../api/dashboard.ts'
import { Dispatcher } from '../api/dispatcher.ts'
import { GrpcListener } from '../api/grpc.ts'
import { HttpListener } from '../api/http.ts'
import type { Page } from '../api/http-response.ts'
import { isLoopbackHost, socketAddressText } from '../contract/address.ts'
import { type Clock, systemClock } from '../contract/clock.ts'
import { components } from '../dataplane/components/registry.ts'
import type { Registry } from '../dataplane/engine/component.ts'
import type { RunPool } from '../dataplane/engine/run.ts'
import { useAeadBackend } from '../dataplane/native/aead-backends.ts'
import { openRunPool } from '../dataplane/product.ts'
import { autoCertificate } from '../link/certificate.ts'
import { dialHub } from '../link/dial.ts'
import type { HubSigner } from '../link/hub-key.ts'
import { type Identity, loadIdentity } from '../link/identity.ts'
import type { LinkEvent, LinkServer } from '../link/link.ts'
import { createLinkServer } from '../link/link-server.ts'
import { packageRoot } from '../package-root.ts'
import { AccessService } from '../services/access.ts'
import { PipelinesService } from '../services/pipelines.ts'
import { Trust } from '../services/trust.ts'
import { isServerOf } from '../store/sign-in.ts'
import { Store } from '../store/store.ts'
import { PROMETHEUS_TYPE } from '../telemetry/prometheus.ts'
import { RunLogs } from '../telemetry/run-logs.ts'
import { ipv6Bytes } from '../text/ipv6-bytes.ts'
import type { NodeConfig } from './config.ts'
import { claimDataDirectory, reserve } from './data-directory.ts'
import { documentPages } from './documents.ts'
import { logPipeline } from './facts.ts'
import { createHubPart } from './hub.ts'
import { hubSigner } from './hub-key.ts'
import type { HubPart, SharedHub } from './hub-part.ts'
import { createLog } from './log.ts'
import { readTls, type Tls } from './tls.ts'
import { keepTokenFile } from './token-file.ts'

/** A node that is up. */
export interface StartedNode {
  readonly id: string
  /** Where HTTP and gRPC listen, `host:port` with the port that was had; undefined when switched off. */
  readonly http: string | undefined
  readonly grpc: string | undefined
  readonly log: Logger
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
  /** Somebody chose `access.loopback`: that it is open needs no warning. */
  isLoopbackChosen?: boolean
  /** What the servers of a hub share, as the one with this node id has it; absent: a hub has this server only. Needs `hubServer.keyFile`. */
  shared?: (nodeId: string) => SharedHub
  /** Drives heartbeats, reconnects and deadlines of links and of requests to join; default: the system's. */
  clock?: Clock
}

/**
 * Starts a node. Rejects, with everything taken down again, when the data directory is in use (DirectoryInUse) or cannot be used
 * (DirectoryUnusable), an address cannot be listened on, or the configuration asks for what this version or machine does not have.
 */
export async function startNode(config: NodeConfig, options: NodeOptions = {}): Promise<StartedNode> {
  refuseUnavailable(config)
  useAeadBackend(config['crypto.backend'], 'crypto.backend')
  const log = options.log ?? createLog({ level: config['log.level'], format: config['log.format'] })
  /** What to close, last first. */
  const opened: (() => void | Promise<void>)[] = []
  let closed: Promise<void> | undefined
  const close = async () => {
    for (const step of opened.splice(0).reverse()) await step()
  }
  try {
    opened.push(claimDataDirectory(config.dataDirectory))
    const store = new Store(config.dataDirectory, { reserve })
    opened.push(() => store.close())
    const identity = loadIdentity(config.dataDirectory)
    const node = { id: identity.nodeId }
    const tls = tlsOf(config, log)
    const signer = hubSigner(config, identity, tls)
    const pool =
      options.pool ??
      openRunPool({ onError: (error) => log.error({ err: error }, 'a thread kept ready for the next runs died') })
    opened.push(() => pool.close())
    const pipelines = new PipelinesService({
      node,
      store,
      pool,
      telemetryInterval: config['telemetry.interval'],
      onError: (error) => log.error({ err: error }, 'a change could not be stored'),
      onFact: (fact) => logPipeline(log, fact),
      onLeftovers: (processes) =>
        log.warn({ processes }, 'ended what commands of runs had left that the last end of the node cut off'),
      registry: options.registry ?? components,
      trust: new Trust({
        files: join(config.dataDirectory, 'files'),
        trusted: config['pipelines.trusted'],
        isHubServer: (id) => {
          const signIn = store.signIn.get()
          return signIn !== undefined && isServerOf(signIn, id)
        },
      }),
      runLogs: new RunLogs({
        directory: join(config.dataDirectory, 'logs'),
        runs: config['runLogs.runs'],
        bytes: config['runLogs.size'],
        onLost: (runId, lines, error) =>
          log.error({ err: error, runId, lines }, 'lines of a run log could not be written'),
      }),
    })
    await pipelines.open()
    opened.push(() => pipelines.close())
    const hub = hubPart(config, options, { identity, signer, store, log, dispatcher: () => dispatcher })
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
    await guardLoopback(config, tokens, log, options.isLoopbackChosen)
    const links = linkServer(hub, { identity, signer, tls, log, clock: options.clock ?? systemClock })
    const pages = new Map<string, Page>([
      ['/metrics', { type: PROMETHEUS_TYPE, text: () => pipelines.prometheus() }],
      ...documentPages(),
    ])
    const listeners = { dispatcher, access, tls, links, pages, log, opened }
    const http = await listenHttp(config, listeners)
    const grpc = await listenGrpc(config, listeners)
    tokens.onRevoked((name) => {
      for (const listener of [http?.listener, grpc?.listener]) listener?.endStreamsOf(name)
    })
    opened.push(() => links?.close())
    opened.push(() => hub.close())
    hub.start()
    pipelines.startWithNode()
    log.info({ node: node.id, http: http?.text, grpc: grpc?.text, dataDirectory: config.dataDirectory }, 'node is up')
    return {
      id: node.id,
      http: http?.text,
      grpc: grpc?.text,
      log,
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

/** Whether callers on this machine reach a listener as such. */
function servesLoopback(config: NodeConfig): boolean {
  return (['http.address', 'grpc.address'] as const).some((key) => {
    if (config[key] === 'none') return false
    const { address } = hostAndPort(config[key])
    return isIP(address) === 0 || isLoopbackHost(address) || address === '0.0.0.0' || address === '::'
  })
}

function refuseUnavailable(config: NodeConfig): void {
  if (config.hubServer && config['http.address'] === 'none') {
    throw new Error('hubServer: nodes reach a hub over HTTP, so http.address cannot be none')
  }
}

interface HubPartNeeds {
  readonly identity: Identity
  readonly signer: HubSigner | undefined
  readonly store: Store
  readonly log: Logger
  readonly dispatcher: () => Dispatcher
}

/** This node as the host or a member of a hub. */
function hubPart(config: NodeConfig, options: NodeOptions, needs: HubPartNeeds): HubPart {
  const { file, clock = systemClock } = options
  const { identity, signer, store, log, dispatcher } = needs
  const requestTimeout =
    config['hubServer.authenticationByRequest'] === 'taken'
      ? config['hubServer.authenticationByRequest.timeout']
      : undefined
  return createHubPart({
    nodeId: identity.nodeId,
    store,
    name: config['node.name'] || hostname(),
    metadata: config['node.metadata'],
    file,
    hubServer: config.hubServer
      ? { requestTimeout, signer, address: config['hubServer.address'], shared: options.shared?.(identity.nodeId) }
      : undefined,
    dial: ({ hubKey, certificate, certificateKey, ...request }) => {
      const { address, intent } = request
      if (intent === 'JOIN' && address.protocol === 'http:' && !isLoopbackHost(address.hostname)) {
        log.warn(
          `${address.href} is joined without TLS: for trusted networks only; https keeps what is said from others`,
        )
      }
      return dialHub({
        ...request,
        identity,
        ...(intent === 'SERVER' ? { statement: signer?.statement() } : {}),
        clock,
        pinnedHubKey: hubKey,
        pinnedCertificate: certificate,
        pinnedCertificateKey: certificateKey,
        report: (event) => reportLink(log, event),
      })
    },
    dispatcher,
    log,
    clock,
  })
}

/** The hub's end of the links to its nodes. */
function linkServer(
  { policy, servers }: HubPart,
  needs: { identity: Identity; signer: HubSigner | undefined; tls: Tls | undefined; log: Logger; clock: Clock },
): LinkServer | undefined {
  const { identity, signer, tls, log, clock } = needs
  if (policy === undefined) return undefined
  const certificates = tls === undefined ? [] : [Buffer.from(tls.fingerprint.replaceAll(':', ''), 'hex')]
  return createLinkServer({
    identity,
    signer,
    servers,
    policy,
    clock,
    certificates: () => certificates,
    report: (event) => reportLink(log, event),
  })
}

function reportLink(log: Logger, { kind, message, remoteAddress, peerId, reason, error }: LinkEvent): void {
  const fields = { address: remoteAddress, node: peerId, ...(error === undefined ? {} : { err: error }) }
  if (kind === 'failed') log.error(fields, `link: ${message}`)
  else if (kind === 'violation') log.warn(fields, `link: ${message}`)
  // The end of the session, or of the request to join, tells the same.
  else if (kind === 'dead' || reason === 'REJECTED' || reason === 'TIMED_OUT') log.debug(fields, `link: ${message}`)
  else log.info(fields, `link: ${message}`)
}

/** The certificate for all listeners; undefined: none. Says what is dangerous about the addresses chosen. */
function tlsOf(config: NodeConfig, log: Logger): Tls | undefined {
  if (config['http.tls'] !== 'none') {
    const tls = readTls(certificateFiles(config, log))
    if (tls.warning !== undefined) log.warn(tls.warning)
    log.info({ fingerprint: tls.fingerprint, certificate: tls.certFile }, 'TLS certificate')
    return tls
  }
  for (const key of ['http.address', 'grpc.address'] as const) {
    if (config[key] === 'none' || isLoopbackHost(hostAndPort(config[key]).address)) continue
    log.warn(`${key} ${config[key]} is served without TLS: for trusted networks only; see http.tls`)
  }
  return undefined
}

/** The files of `http.tls`; `auto` makes them, for every name that callers are told to use and every address listened on. */
function certificateFiles(config: NodeConfig, log: Logger): { certificate: string; key: string } {
  const setting = config['http.tls']
  if (typeof setting === 'object') return setting
  const listening = [config['http.address'], config['grpc.address']]
    .filter((address) => address !== 'none')
    .map((address) => hostAndPort(address).address)
  const hostnames = [hostname(), ...config['http.hostnames'], ...listening.flatMap(addressesOf)]
  const { certFile, keyFile, renewed } = autoCertificate({
    directory: config.dataDirectory,
    hostnames: [...new Set(hostnames)],
    isAnyAddress: listening.some(isEveryAddress),
  })
  if (renewed !== undefined) {
    log.warn(
      `http.tls: auto has renewed the certificate, for ${renewed}. Its key is the same: nodes that have joined stay. Commands that were given the last one with --ca or --fingerprint take the new one, ${certFile}`,
    )
  }
  return { certificate: certFile, key: keyFile }
}

function isEveryAddress(host: string): boolean {
  return host === '0.0.0.0' || (isIP(host) === 6 && !ipv6Bytes(host).some((byte) => byte !== 0))
}

/** What a listener on `host` can be reached by: of a wildcard, the machine's addresses as they are now. */
function addressesOf(host: string): string[] {
  if (!isEveryAddress(host)) return [host]
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ family, scopeid = 0 }) => scopeid === 0 && (family === 'IPv4' || host !== '0.0.0.0'))
    .map(({ address }) => address)
}

interface Listeners {
  readonly dispatcher: Dispatcher
  readonly access: Access
  readonly tls: Tls | undefined
  /** The hub's end of links, served on the HTTP listener. */
  readonly links: LinkServer | undefined
  /** Texts served on the HTTP listener. */
  readonly pages: ReadonlyMap<string, Page>
  readonly log: Logger
  readonly opened: (() => void | Promise<void>)[]
}

async function listenHttp(config: NodeConfig, { dispatcher, access, tls, links, pages, opened }: Listeners) {
  if (config['http.address'] === 'none') return undefined
  const at = hostAndPort(config['http.address'])
  const listener = new HttpListener({
    dispatcher,
    access,
    pages,
    dashboard: readDashboard(join(packageRoot(), 'dist/web')),
    ...at,
    ...(tls === undefined ? {} : { tls }),
    ...(links === undefined ? {} : { extend: (app) => links.attach(app) }),
  })
  const bound = await listener.start()
  const text = socketAddressText(bound.address, bound.port)
  opened.push(() => listener.stop())
  return { listener, text }
}

async function listenGrpc(config: NodeConfig, { dispatcher, access, tls, log, opened }: Listeners) {
  if (config['grpc.address'] === 'none') return undefined
  const at = hostAndPort(config['grpc.address'])
  const listener = new GrpcListener({
    dispatcher,
    access,
    ...at,
    ...(tls === undefined ? {} : { tls }),
    warn: (message, fields) => log.warn(fields ?? {}, message),
  })
  const bound = await listener.start()
  const text = socketAddressText(bound.address, bound.port)
  opened.push(() => listener.stop())
  return { listener, text }
}

function hostAndPort(text: string): { address: string; port: number } {
  const colon = text.lastIndexOf(':')
  return { address: text.slice(0, colon).replace(/^\[(.*)\]$/, '$1'), port: Number(text.slice(colon + 1)) }
}
