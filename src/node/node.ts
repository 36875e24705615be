/** A node: everything composed from a configuration, from the store to the listeners, and taken down in reverse. */
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { Access, isLoopbackAddress } from '../api/access.ts'
import { GrpcListener } from '../api/grpc.ts'
import { HttpListener } from '../api/http.ts'
import { Router } from '../api/router.ts'
import type { AnyComponent } from '../dataplane/engine/component.ts'
import { createRunPool } from '../dataplane/engine/pool.ts'
import type { RunPool } from '../dataplane/engine/run.ts'
import { loadIdentity } from '../hub/identity.ts'
import { AccessService } from '../services/access.ts'
import { HubClientService } from '../services/hub-client.ts'
import { PipelinesService } from '../services/pipelines.ts'
import { Store } from '../store/store.ts'
import type { NodeConfig } from './config.ts'
import { createLog } from './log.ts'
import { readTls, type Tls } from './tls.ts'

/** A node that is up. */
export interface Node {
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
  registry?: ReadonlyMap<string, AnyComponent>
}

/**
 * Starts a node. Rejects, with everything taken down again, when the data directory is in use (DirectoryInUse), an address cannot
 * be listened on, or the configuration asks for what this version does not have.
 */
export async function startNode(config: NodeConfig, options: NodeOptions = {}): Promise<Node> {
  refuseUnavailable(config)
  const log = options.log ?? createLog({ level: config['log.level'], format: config['log.format'] })
  /** What to close, last first. */
  const opened: (() => void | Promise<void>)[] = []
  let closed: Promise<void> | undefined
  const close = async () => {
    for (const step of opened.splice(0).reverse()) await step()
  }
  try {
    const store = new Store(config.dataDirectory)
    opened.push(() => store.close())
    const node = { id: loadIdentity(config.dataDirectory).nodeId }
    const pool = options.pool ?? createRunPool()
    opened.push(() => pool.close())
    const pipelines = new PipelinesService({
      node,
      store,
      pool,
      telemetryInterval: config['telemetry.interval'],
      onError: (error) => log.error({ err: error }, 'a change could not be stored'),
      ...(options.registry === undefined ? {} : { registry: options.registry }),
    })
    await pipelines.open()
    opened.push(() => pipelines.close())
    const hubClient = new HubClientService({
      node,
      name: config['node.name'] || hostname(),
      metadata: config['node.metadata'],
    })
    const tokens = new AccessService({
      tokens: store.tokens,
      onError: (error) => log.error({ err: error }, 'the use of a token could not be noted'),
    })
    const router = new Router({
      handlers: { ...pipelines.handlers, ...hubClient.handlers, ...tokens.handlers },
      report: (error, operation) => log.error({ err: error, operation }, 'operation failed'),
    })
    const access = new Access({
      open: config['access.open'],
      hostnames: config['http.hostnames'],
      verifyToken: tokens.verify,
    })
    if (config['access.open']) {
      log.warn('access.open is set: everyone who reaches this node can control it')
    }
    const tls = tlsOf(config, log)
    const listeners = { router, access, tls, opened }
    const http = await listenHttp(config, listeners)
    const grpc = await listenGrpc(config, listeners)
    tokens.onRevoked((name) => {
      for (const listener of [http?.listener, grpc?.listener]) listener?.endStreamsOf(name)
    })
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

function refuseUnavailable(config: NodeConfig): void {
  const asked = config.hubServer ? 'hubServer' : config['http.tls'] === 'auto' ? 'http.tls: auto' : undefined
  if (asked !== undefined) throw new Error(`${asked} is not available yet in this version of penstock`)
}

/** The certificate for all listeners; undefined: none. Says what is dangerous about the addresses chosen. */
function tlsOf(config: NodeConfig, log: Logger): Tls | undefined {
  const setting = config['http.tls']
  if (typeof setting === 'object') {
    const tls = readTls(setting)
    if (tls.warning !== undefined) log.warn(tls.warning)
    log.info({ fingerprint: tls.fingerprint }, 'TLS certificate')
    return tls
  }
  for (const key of ['http.address', 'grpc.address'] as const) {
    if (config[key] === 'none' || isLoopback(hostAndPort(config[key]).address)) continue
    log.warn(`${key} ${config[key]} is served without TLS: for trusted networks only; see http.tls`)
  }
  return undefined
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || isLoopbackAddress(host)
}

interface Listeners {
  readonly router: Router
  readonly access: Access
  readonly tls: Tls | undefined
  readonly opened: (() => void | Promise<void>)[]
}

async function listenHttp(config: NodeConfig, { router, access, tls, opened }: Listeners) {
  if (config['http.address'] === 'none') return undefined
  const at = hostAndPort(config['http.address'])
  const listener = new HttpListener({ router, access, ...at, ...(tls === undefined ? {} : { tls }) })
  const text = addressText(await listener.start())
  opened.push(() => listener.stop())
  return { listener, text }
}

async function listenGrpc(config: NodeConfig, { router, access, tls, opened }: Listeners) {
  if (config['grpc.address'] === 'none') return undefined
  const at = hostAndPort(config['grpc.address'])
  const listener = new GrpcListener({ router, access, ...at, ...(tls === undefined ? {} : { tls }) })
  const text = addressText(await listener.start())
  opened.push(() => listener.stop())
  return { listener, text }
}

function hostAndPort(text: string): { address: string; port: number } {
  const colon = text.lastIndexOf(':')
  return { address: text.slice(0, colon).replace(/^\[(.*)\]$/, '$1'), port: Number(text.slice(colon + 1)) }
}

function addressText({ address, port }: { address: string; port: number }): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}
