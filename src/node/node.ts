/** A node: everything composed from a configuration, from the store to the listeners, and taken down in reverse. */
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { Access } from '../api/access.ts'
import { GrpcListener } from '../api/grpc.ts'
import { HttpListener } from '../api/http.ts'
import { Router } from '../api/router.ts'
import type { AnyComponent } from '../dataplane/engine/component.ts'
import { createRunPool } from '../dataplane/engine/pool.ts'
import type { RunPool } from '../dataplane/engine/run.ts'
import { loadIdentity } from '../hub/identity.ts'
import { HubClientService } from '../services/hub-client.ts'
import { PipelinesService } from '../services/pipelines.ts'
import { Store } from '../store/store.ts'
import type { NodeConfig } from './config.ts'
import { createLog } from './log.ts'

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
    const router = new Router({
      handlers: { ...pipelines.handlers, ...hubClient.handlers },
      report: (error, operation) => log.error({ err: error, operation }, 'operation failed'),
    })
    const access = new Access({ open: config['access.open'], hostnames: config['http.hostnames'] })
    if (config['access.open']) {
      log.warn('access.open is set: everyone who reaches this node can control it')
    }
    const http = await listenHttp(config, router, access, opened)
    const grpc = await listenGrpc(config, router, access, opened)
    pipelines.startWithNode()
    log.info({ node: node.id, http, grpc, dataDirectory: config.dataDirectory }, 'node is up')
    return {
      id: node.id,
      http,
      grpc,
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

async function listenHttp(
  config: NodeConfig,
  router: Router,
  access: Access,
  opened: (() => void | Promise<void>)[],
): Promise<string | undefined> {
  if (config['http.address'] === 'none') return undefined
  const tls = config['http.tls']
  const listener = new HttpListener({
    router,
    access,
    ...hostAndPort(config['http.address']),
    ...(typeof tls === 'object' ? { tls: { certFile: tls.certificate, keyFile: tls.key } } : {}),
  })
  const bound = await listener.start()
  opened.push(() => listener.stop())
  return addressText(bound)
}

async function listenGrpc(
  config: NodeConfig,
  router: Router,
  access: Access,
  opened: (() => void | Promise<void>)[],
): Promise<string | undefined> {
  if (config['grpc.address'] === 'none') return undefined
  const listener = new GrpcListener({ router, access, ...hostAndPort(config['grpc.address']) })
  const bound = await listener.start()
  opened.push(() => listener.stop())
  return addressText(bound)
}

function hostAndPort(text: string): { address: string; port: number } {
  const colon = text.lastIndexOf(':')
  return { address: text.slice(0, colon).replace(/^\[(.*)\]$/, '$1'), port: Number(text.slice(colon + 1)) }
}

function addressText({ address, port }: { address: string; port: number }): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}
