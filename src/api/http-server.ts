/** A port that speaks HTTP (uWebSockets.js): its handlers see exchanges and sockets, never the library's app or responses. */
import type { TemplatedApp, us_listen_socket, WebSocket, WebSocketBehavior } from 'uWebSockets.js'
import type { ShownCertificate, SocketHost, Upgrade, UpgradeRequest } from '../link/link.ts'
import type { Report } from './errors.ts'
import type { Warn } from './grpc-connections.ts'
import { HttpConnections } from './http-connections.ts'
import { Exchange, type RequestHandler } from './http-exchange.ts'
import { uWS } from './http-library.ts'

/** What the type declarations of uWebSockets.js leave out. */
const { DISABLED, LIBUS_LISTEN_EXCLUSIVE_PORT } = uWS as unknown as {
  DISABLED: number
  LIBUS_LISTEN_EXCLUSIVE_PORT: number
}

/** The same. A descriptor is of use in this process alone. */
interface ParentApp extends TemplatedApp {
  getDescriptor(): number
  addChildAppDescriptor(descriptor: number): unknown
  removeChildAppDescriptor(descriptor: number): unknown
}

type Listen = (
  host: string,
  port: number,
  options: number,
  callback: (socket: us_listen_socket | false) => void,
) => void

/** The certificate of a listener: files in PEM form, and what links with it go by. */
export interface HttpTls {
  readonly keyFile: string
  readonly certFile: string
  /** Undefined: no links are served. */
  readonly certificate?: ShownCertificate | undefined
}

export interface HttpServerOptions {
  readonly tls?: HttpTls | undefined
  /** Takes what a handler threw that is not meant for callers. */
  readonly report: Report
  /** Told, rarely, that connections are refused. */
  readonly warn?: Warn | undefined
}

/** One app of the library for each certificate: what it does for connections that were made with that. */
type Part = (app: TemplatedApp, certificate: ShownCertificate | undefined) => void

/**
 * The library sets the certificate of an app once and for all. Another one is that of another app, which does the same; the first keeps the port open
 * and hands over what it accepts, before anything of TLS was said (`addChildAppDescriptor`, made for apps of several threads). So no
 * connection is lost, and those that are open go on in the app that has them. An app is never freed: it takes 50 KB,
 * and as the library asks each app for messages to publish, a thousand of them take 0.1 ms of each turn of the event loop.
 */
export class HttpServer implements SocketHost {
  readonly #report: Report
  readonly #connections: HttpConnections
  readonly #parts: Part[] = []
  readonly #certificate: ShownCertificate | undefined
  /** What listens, and has the first certificate. */
  readonly #app: ParentApp
  /** Those with later ones, the last one last: it gets what is accepted. */
  readonly #successors: ParentApp[] = []
  #listening: us_listen_socket | undefined

  constructor({ tls, report, warn }: HttpServerOptions) {
    this.#report = report
    this.#connections = new HttpConnections(warn)
    this.#certificate = tls?.certificate
    this.#app = tls === undefined ? (uWS.App() as ParentApp) : secureApp(tls)
    const changed: Parameters<TemplatedApp['filter']>[0] = (response, change) => {
      if (!this.#connections.changed(change)) response.close()
    }
    this.#add((app) => void app.filter(changed))
  }

  #add(part: Part): void {
    this.#parts.push(part)
    part(this.#app, this.#certificate)
  }

  /** Reads another certificate; what it returns has it shown to new connections. Throws Error when the library cannot use it. */
  renew(tls: HttpTls): () => void {
    const app = secureApp(tls)
    for (const part of this.#parts) part(app, tls.certificate)
    return () => {
      const former = this.#successors.at(-1)
      this.#app.addChildAppDescriptor(app.getDescriptor())
      if (former !== undefined) this.#app.removeChildAppDescriptor(former.getDescriptor())
      this.#successors.push(app)
    }
  }

  /** Gives every request, whatever its method and path, to `handler`, unless it goes to a WebSocket added before. */
  handle(handler: RequestHandler): void {
    const [get, any] = [Exchange.handler(handler, this.#report, 'GET'), Exchange.handler(handler, this.#report)]
    // Most are GET: the library tells them apart for nothing, where asking it for the method costs.
    this.#add((app) => void app.get('/*', get).any('/*', any))
  }

  webSocket<Data extends object>(
    path: string,
    behavior: WebSocketBehavior<Data>,
    accept: (request: UpgradeRequest) => Upgrade<Data>,
  ): void {
    const { close, ...rest } = guarded(behavior, this.#report)
    this.#add((app, certificate) => {
      app.ws<Data>(path, {
        compression: DISABLED,
        ...rest,
        close: (...ended) => {
          // The filter is told of no end of a connection that has become a WebSocket.
          this.#connections.changed(-1)
          close?.(...ended)
        },
        upgrade: Exchange.upgrader(accept, this.#report, certificate),
      })
    })
  }

  /**
   * Listens on `host:port` (0: any free port) and returns the port; undefined when it cannot be had. Exclusive: otherwise a second
   * process would share a taken port in silence (SO_REUSEPORT).
   */
  listen(host: string, port: number): Promise<number | undefined> {
    return new Promise((resolve) => {
      const listen = this.#app.listen.bind(this.#app) as unknown as Listen
      listen(host, port, LIBUS_LISTEN_EXCLUSIVE_PORT, (socket) => {
        if (socket === false || socket === null) {
          resolve(undefined)
          return
        }
        this.#listening = socket
        this.#connections.watch()
        resolve(uWS.us_socket_local_port(socket))
      })
    })
  }

  /** Closes the port; connections go on. */
  stopListening(): void {
    if (this.#listening !== undefined) uWS.us_listen_socket_close(this.#listening)
    this.#listening = undefined
    this.#connections.unwatch()
  }

  /** Closes the port and all connections. */
  close(): void {
    for (const app of [this.#app, ...this.#successors]) app.close()
    this.#connections.unwatch()
  }
}

/** Throws Error when the files cannot be used. */
function secureApp({ keyFile, certFile }: HttpTls): ParentApp {
  try {
    return uWS.SSLApp({ key_file_name: keyFile, cert_file_name: certFile }) as ParentApp
  } catch {
    throw new Error(
      `http.tls: uWebSockets.js, which serves HTTP, cannot use the certificate in ${certFile} and the key in ${keyFile}: it takes RSA, ECDSA with P-256, P-384 or P-521, and Ed25519`,
    )
  }
}

type SocketCallback = (socket: WebSocket<unknown>, ...others: unknown[]) => unknown

/** The same behavior, whose callbacks never throw: what one throws, or rejects with, is reported and closes its socket with 1011. */
function guarded<Data>(behavior: WebSocketBehavior<Data>, report: Report): WebSocketBehavior<Data> {
  const safe: Record<string, unknown> = { ...behavior }
  for (const [name, value] of Object.entries(behavior)) {
    if (typeof value !== 'function') continue
    const callback = value as SocketCallback
    safe[name] = ((socket, ...others) => {
      const fail = (error: unknown): void => {
        report(error, `WebSocket ${name}`)
        try {
          if (name !== 'close') socket.end(1011, 'internal error')
        } catch {
          // It is gone already.
        }
      }
      try {
        const outcome = callback(socket, ...others)
        if (outcome instanceof Promise) outcome.catch(fail)
      } catch (error) {
        fail(error)
      }
    }) satisfies SocketCallback
  }
  return safe as WebSocketBehavior<Data>
}
