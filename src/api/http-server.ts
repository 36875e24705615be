/** A port that speaks HTTP (uWebSockets.js): its handlers see exchanges and sockets, never the library's app or responses. */
import type { TemplatedApp, us_listen_socket, WebSocket, WebSocketBehavior } from 'uWebSockets.js'
import type { SocketHost, Upgrade, UpgradeRequest } from '../link/link.ts'
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

type Listen = (
  host: string,
  port: number,
  options: number,
  callback: (socket: us_listen_socket | false) => void,
) => void

export interface HttpServerOptions {
  readonly tls?: { readonly keyFile: string; readonly certFile: string } | undefined
  /** Takes what a handler threw that is not meant for callers. */
  readonly report: Report
  /** Told, rarely, that connections are refused. */
  readonly warn?: Warn | undefined
}

export class HttpServer implements SocketHost {
  readonly #app: TemplatedApp
  readonly #report: Report
  readonly #connections: HttpConnections
  #listening: us_listen_socket | undefined

  constructor({ tls, report, warn }: HttpServerOptions) {
    this.#app = tls === undefined ? uWS.App() : uWS.SSLApp({ key_file_name: tls.keyFile, cert_file_name: tls.certFile })
    this.#report = report
    this.#connections = new HttpConnections(warn)
    const changed: Parameters<TemplatedApp['filter']>[0] = (response, change) => {
      if (!this.#connections.changed(change)) response.close()
    }
    this.#app.filter(changed)
  }

  /** Gives every request, whatever its method and path, to `handler`, unless it goes to a WebSocket added before. */
  handle(handler: RequestHandler): void {
    // Most are GET: the library tells them apart for nothing, where asking it for the method costs.
    this.#app.get('/*', Exchange.handler(handler, this.#report, 'GET'))
    this.#app.any('/*', Exchange.handler(handler, this.#report))
  }

  webSocket<Data extends object>(
    path: string,
    behavior: WebSocketBehavior<Data>,
    accept: (request: UpgradeRequest) => Upgrade<Data>,
  ): void {
    const { close, ...rest } = guarded(behavior, this.#report)
    this.#app.ws<Data>(path, {
      compression: DISABLED,
      ...rest,
      close: (...ended) => {
        // The filter is told of no end of a connection that has become a WebSocket.
        this.#connections.changed(-1)
        close?.(...ended)
      },
      upgrade: Exchange.upgrader(accept, this.#report),
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
    this.#app.close()
    this.#connections.unwatch()
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
