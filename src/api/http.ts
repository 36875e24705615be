/** The HTTP listener: REST, event streams and WebSockets of every operation on one port. */

import * as uWS from 'uWebSockets.js'
import { isUtf8 } from 'node:buffer'
import { ServiceError } from '../services/errors.ts'
import { type Access, type AccessHeaders, addressText, isLoopbackAddress } from './access.ts'
import { Call, type Caller } from './call.ts'
import type { Operation } from './contract.ts'
import { readRequest } from './http-request.ts'
import { sendError, sendJson } from './http-response.ts'
import { jsonEncoder } from './json-encode.ts'
import { KeepAlive } from './keep-alive.ts'
import type { Router } from './router.ts'
import { type Route, Routes } from './routes.ts'
import { endStreamsOf } from './sink.ts'
import { SseSink } from './sse.ts'
import { listenExclusively, NO_COMPRESSION } from './uws.ts'
import { type SocketData, WebSocketSink } from './websocket.ts'

/** Longest request body, bytes. */
const BODY_BYTES = 4 * 1024 * 1024
const WEBSOCKET_MESSAGE_BYTES = 64 * 1024
const WEBSOCKET_BACKLOG_BYTES = 1024 * 1024

export interface HttpListenerOptions {
  readonly router: Router
  readonly access: Access
  /** IP address or name to listen on. */
  readonly address: string
  /** 0: any free port. */
  readonly port: number
  readonly tls?: { readonly keyFile: string; readonly certFile: string }
  /** Milliseconds of silence after which an event stream says that it is alive; default 15 s. */
  readonly keepAliveMs?: number
  /** Adds routes of others (the node link, pages) before the API's own. */
  readonly extend?: (app: uWS.TemplatedApp) => void
}

/** What a request carries apart from its body; uWebSockets.js lends it only while its handler runs. */
interface RequestHead {
  readonly verb: string
  readonly path: string
  readonly query: string
  /** Empty for GET and HEAD, whose body is not read. */
  readonly contentLength: string
  readonly remoteAddress: string
  readonly headers: AccessHeaders
}

export class HttpListener {
  readonly #options: HttpListenerOptions
  readonly #router: Router
  readonly #routes: Routes
  readonly #keepAlive: KeepAlive
  readonly #streams = new Set<SseSink | WebSocketSink>()
  /** The address of every peer, when only this machine can reach the port: asking for each one's costs a buffer. */
  readonly #peer: string | undefined
  #app: uWS.TemplatedApp | undefined

  constructor(options: HttpListenerOptions) {
    this.#options = options
    this.#router = options.router
    this.#routes = new Routes(options.router.operations)
    this.#keepAlive = new KeepAlive(options.keepAliveMs ?? 15_000)
    if (isLoopbackAddress(options.address)) this.#peer = options.address
  }

  /** Listens; rejects when the address cannot be had (taken, not of this machine, no permission). */
  async start(): Promise<{ address: string; port: number }> {
    const { address, port, tls, extend } = this.#options
    const app = tls === undefined ? uWS.App() : uWS.SSLApp({ key_file_name: tls.keyFile, cert_file_name: tls.certFile })
    extend?.(app)
    for (const operation of this.#router.operations) {
      for (const binding of operation.http) {
        if (binding.transport === 'websocket') this.#addWebSocket(app, operation, binding.path)
      }
    }
    app.any('/*', (response, request) => this.#request(response, request))
    const bound = await listenExclusively(app, address, port)
    if (bound === undefined) {
      app.close()
      throw new ServiceError(
        'UNAVAILABLE',
        `cannot listen on ${address}:${port} for HTTP: the port is taken, or the address is not of this machine`,
      )
    }
    this.#app = app
    return { address, port: bound }
  }

  /** Ends every stream with UNAVAILABLE and closes the port and all connections. */
  async stop(): Promise<void> {
    const app = this.#app
    if (app === undefined) return
    this.#app = undefined
    const error = new ServiceError('UNAVAILABLE', 'the node is shutting down')
    for (const stream of [...this.#streams]) stream.end(error)
    // One turn for the last events to leave before the connections are cut.
    await new Promise((resolve) => setImmediate(resolve))
    app.close()
  }

  /** Ends the streams of callers who proved the token `identity`, since it was revoked. */
  endStreamsOf(identity: string): void {
    endStreamsOf(this.#streams, identity)
  }

  #request(response: uWS.HttpResponse, request: uWS.HttpRequest): void {
    const head = this.#head(response, request)
    const isHead = head.verb === 'HEAD'
    const match = this.#routes.match(head.verb, head.path)
    let caller: Caller
    try {
      caller = this.#caller(head)
      if (match.kind === 'none') {
        throw new ServiceError('NOT_FOUND', `no such path: ${head.path.slice(0, 200)}`)
      }
      if (match.kind === 'malformed') {
        throw new ServiceError('INVALID_ARGUMENT', `the path segment ${match.segment} is not percent-encoded UTF-8`)
      }
    } catch (error) {
      sendError(response, error as ServiceError, { head: isHead })
      return
    }
    if (match.kind === 'method') {
      const allow = { allow: match.allow.join(', ') }
      if (head.verb === 'OPTIONS') {
        response.cork(() => response.writeStatus('204 No Content').writeHeader('allow', allow.allow).endWithoutBody())
        return
      }
      const error = new ServiceError('UNIMPLEMENTED', `${head.verb} is not possible here; use ${allow.allow}`)
      sendError(response, error, { status: '405 Method Not Allowed', headers: allow, head: isHead })
      return
    }
    this.#serve(response, head, caller, match.route, match.path)
  }

  #head(response: uWS.HttpResponse, request: uWS.HttpRequest): RequestHead {
    const verb = request.getCaseSensitiveMethod().toUpperCase()
    return {
      verb,
      path: request.getUrl(),
      query: request.getQuery() ?? '',
      contentLength: verb === 'GET' || verb === 'HEAD' ? '' : request.getHeader('content-length'),
      remoteAddress: this.#peer ?? addressText(new Uint8Array(response.getRemoteAddress())),
      headers: {
        host: request.getHeader('host'),
        origin: request.getHeader('origin'),
        authorization: request.getHeader('authorization'),
        fetchSite: request.getHeader('sec-fetch-site'),
      },
    }
  }

  /** Who sent it; throws UNAUTHENTICATED or PERMISSION_DENIED. */
  #caller({ remoteAddress, headers }: RequestHead): Caller {
    return this.#options.access.httpCaller(remoteAddress, headers)
  }

  #serve(
    response: uWS.HttpResponse,
    head: RequestHead,
    caller: Caller,
    route: Route,
    path: Readonly<Record<string, string>>,
  ): void {
    const { operation, binding } = route
    const isHead = head.verb === 'HEAD'
    if (binding.transport === 'websocket') {
      const error = new ServiceError('INVALID_ARGUMENT', 'this path is a WebSocket; open it as one')
      sendError(response, error, { status: '426 Upgrade Required', headers: { upgrade: 'websocket' }, head: isHead })
      return
    }
    const call = new Call(caller, binding.transport)
    const exchange = new Exchange(response, call)
    const begin = (body: string): void => {
      let request: Record<string, unknown>
      try {
        // A body may have taken its time: the token can be gone by now.
        if (body !== '') this.#caller(head)
        request = readRequest(route, path, head.query, body)
      } catch (error) {
        sendError(response, this.#router.failure(error, operation), { head: isHead })
        return
      }
      if (binding.transport === 'rest') void this.#unary(exchange, operation, request, isHead)
      else if (isHead) {
        response.cork(() => response.writeHeader('content-type', 'text/event-stream').endWithoutBody())
      } else void this.#stream(exchange, operation, request)
    }
    if (head.verb === 'GET' || isHead) begin('')
    else readBody(exchange, head.contentLength, begin)
  }

  async #unary(exchange: Exchange, operation: Operation, request: unknown, isHead: boolean): Promise<void> {
    const { response, call } = exchange
    try {
      const body = jsonEncoder(operation.response)(await this.#router.unary(operation, request, call))
      if (!exchange.isAborted) sendJson(response, body, isHead)
    } catch (error) {
      // Reported even when nobody is left to hear it.
      const failure = this.#router.failure(error, operation)
      if (!exchange.isAborted) sendError(response, failure, { head: isHead })
    }
  }

  async #stream(exchange: Exchange, operation: Operation, request: unknown): Promise<void> {
    const { response, call } = exchange
    const sink = new SseSink(response, operation, this.#router, this.#keepAlive, call)
    exchange.sink = sink
    this.#streams.add(sink)
    sink.onClose(() => this.#streams.delete(sink))
    try {
      await this.#router.stream(operation, request, call, sink)
      sink.ready()
    } catch (error) {
      if (sink.closed) this.#router.failure(error, operation)
      else sink.end(error)
    }
  }

  #addWebSocket(app: uWS.TemplatedApp, operation: Operation, path: string): void {
    app.ws<SocketData>(path, {
      maxPayloadLength: WEBSOCKET_MESSAGE_BYTES,
      maxBackpressure: WEBSOCKET_BACKLOG_BYTES,
      closeOnBackpressureLimit: true,
      idleTimeout: 60,
      sendPingsAutomatically: true,
      compression: NO_COMPRESSION,
      upgrade: (response, request, context) => {
        try {
          const call = new Call(this.#caller(this.#head(response, request)), 'websocket')
          const data: SocketData = { call, operation }
          response.upgrade(
            data,
            request.getHeader('sec-websocket-key'),
            request.getHeader('sec-websocket-protocol'),
            request.getHeader('sec-websocket-extensions'),
            context,
          )
        } catch (error) {
          sendError(response, this.#router.failure(error, operation))
        }
      },
      open: (socket) => void this.#openWebSocket(socket),
      message: (socket, frame, isBinary) => socket.getUserData().sink?.message(frame, isBinary),
      drain: (socket) => socket.getUserData().sink?.drained(),
      close: (socket) => socket.getUserData().sink?.lose(),
    })
  }

  async #openWebSocket(socket: uWS.WebSocket<SocketData>): Promise<void> {
    const data = socket.getUserData()
    const { call, operation } = data
    const sink = new WebSocketSink(socket, operation, this.#router, call)
    data.sink = sink
    this.#streams.add(sink)
    sink.onClose(() => this.#streams.delete(sink))
    try {
      const receiver = await this.#router.bidi(operation, call, sink)
      sink.ready()
      sink.receive(receiver)
    } catch (error) {
      if (sink.closed) this.#router.failure(error, operation)
      else sink.end(error)
    }
  }
}

/** One request under way: uWebSockets.js must hear at once who listens for its end. */
class Exchange {
  readonly response: uWS.HttpResponse
  readonly call: Call
  isAborted = false
  sink: SseSink | undefined

  constructor(response: uWS.HttpResponse, call: Call) {
    this.response = response
    this.call = call
    response.onAborted(() => {
      this.isAborted = true
      this.sink?.lose()
      call.abort()
    })
  }
}

/** Collects a body of at most BODY_BYTES, then calls `begin` with its text; answers 413 otherwise. */
function readBody(exchange: Exchange, contentLength: string, begin: (body: string) => void): void {
  const { response } = exchange
  const chunks: Buffer[] = []
  let length = 0
  let isRefused = false
  const refuse = (): void => {
    isRefused = true
    const error = new ServiceError('RESOURCE_EXHAUSTED', `the body is longer than ${BODY_BYTES} bytes`)
    sendError(response, error, { status: '413 Payload Too Large', close: true })
  }
  if (Number(contentLength) > BODY_BYTES) {
    refuse()
    return
  }
  response.onData((chunk, isLast) => {
    if (isRefused) return
    length += chunk.byteLength
    if (length > BODY_BYTES) {
      refuse()
      return
    }
    // Copied: the memory is only lent.
    chunks.push(Buffer.from(new Uint8Array(chunk)))
    if (!isLast) return
    const body = Buffer.concat(chunks, length)
    if (isUtf8(body)) begin(body.toString('utf8'))
    else sendError(response, new ServiceError('INVALID_ARGUMENT', 'the body is not UTF-8'))
  })
}
