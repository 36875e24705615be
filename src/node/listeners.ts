/** The node's listeners, HTTP and gRPC, on the addresses of the configuration. */
import { isIP } from 'node:net'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Access } from '../api/access.ts'
import { readDashboard } from '../api/dashboard.ts'
import type { Dispatcher } from '../api/dispatcher.ts'
import { GrpcListener } from '../api/grpc.ts'
import { HttpListener } from '../api/http.ts'
import type { Page } from '../api/http-response.ts'
import { isLoopbackHost, socketAddressText } from '../contract/address.ts'
import type { LinkServer } from '../link/link.ts'
import { packageRoot } from '../package-root.ts'
import { hostAndPort } from './config-values.ts'
import type { CurrentCertificate } from './current-certificate.ts'
import type { NodeConfig } from './settings.ts'

interface Listeners {
  readonly dispatcher: Dispatcher
  readonly access: Access
  readonly certificate: CurrentCertificate | undefined
  /** The hub's end of links, served on the HTTP listener. */
  readonly links: LinkServer | undefined
  /** Texts served on the HTTP listener. */
  readonly pages: ReadonlyMap<string, Page>
  readonly log: Logger
  readonly opened: (() => void | Promise<void>)[]
}

/** Undefined: switched off. Rejects where the address cannot be had. */
export async function listenHttp(
  config: NodeConfig,
  { dispatcher, access, certificate, links, pages, log, opened }: Listeners,
) {
  if (config['http.address'] === 'none') return undefined
  const at = hostAndPort(config['http.address'])
  const listener = new HttpListener({
    dispatcher,
    access,
    pages,
    dashboard: readDashboard(join(packageRoot(), 'dist/web')),
    ...at,
    ...(certificate === undefined ? {} : { tls: certificate.tls }),
    warn: (message, fields) => log.warn(fields ?? {}, message),
    ...(links === undefined ? {} : { extend: (app) => links.attach(app) }),
  })
  const bound = await listener.start()
  certificate?.show(listener)
  const text = socketAddressText(bound.address, bound.port)
  opened.push(() => listener.stop())
  return { listener, text }
}

export async function listenGrpc(config: NodeConfig, { dispatcher, access, certificate, log, opened }: Listeners) {
  if (config['grpc.address'] === 'none') return undefined
  const at = hostAndPort(config['grpc.address'])
  const listener = new GrpcListener({
    dispatcher,
    access,
    ...at,
    ...(certificate === undefined ? {} : { tls: certificate.tls }),
    warn: (message, fields) => log.warn(fields ?? {}, message),
  })
  const bound = await listener.start()
  certificate?.show(listener)
  const text = socketAddressText(bound.address, bound.port)
  opened.push(() => listener.stop())
  return { listener, text }
}

/** Whether callers on this machine reach a listener as such. */
export function servesLoopback(config: NodeConfig): boolean {
  return (['http.address', 'grpc.address'] as const).some((key) => {
    if (config[key] === 'none') return false
    const { address } = hostAndPort(config[key])
    return isIP(address) === 0 || isLoopbackHost(address) || address === '0.0.0.0' || address === '::'
  })
}
