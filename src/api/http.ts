/** The HTTP listener: REST, event streams and WebSockets of every operation on one port. */

import type { HttpRequest } from 'uWebSockets.js'
import { setImmediate } from 'node:timers/promises'
import { isLoopbackAddress } from '../contract/address.ts'
import { ServiceError } from '../contract/errors.ts'
import { jsonEncoder } from '../contract/json-encode.ts'
import type { Operation } from '../contract/operations.ts'
import { utf8Of } from '../contract/unchanging.ts'
import type { UpgradeRequest } from '../link/link.ts'
import type { Access, AccessHeaders } from './access.ts'
import { Call, type Caller } from './call.ts'
import { Cors, readSubprotocols } from './cors.ts'
import type { Dashboard } from './dashboard.ts'
import type { Dispatcher } from './dispatcher.ts'
import { encoded } from './encoded-header.ts'
import type { Warn } from './grpc-connections.ts'
import type { Exchange } from './http-exchange.ts'
import { readRequest } from './http-request.ts'
import {
  encodingAnswer,
  errorAnswer,
  type HttpAnswer,
  jsonAnswer,
  methodAnswer,
  type Page,
  pageAnswer,
  upgradeAnswer,
} from './http-response.ts'
import { type HttpRoute, HttpRoutes, malformedSegment, noSuchPath } from './http-routes.ts'
import { HttpServer, type HttpTls } from './http-server.ts'
import { HttpSockets, type SocketProof } from './http-sockets.ts'
import { KeepAlive } from './keep-alive.ts'
import { listenFailure } from './listen-failure.ts'
import { endStreamsOf, revoked, type StreamSink, shuttingDown } from './sink.ts'
import { SseHeadSink, SseSink } from './sse.ts'
import { STREAMS_PATH } from './streams-socket.ts'
import { type PendingCall, UnderWay } from './under-way.ts'

/** Longest request body, bytes. */
const MAX_BODY_BYTES = 4 * 1024 * 1024
const NO_DASHBOARD = 'this installation has no dashboard: build it with `npm run build`, and start the node again'

export interface HttpListenerOptions {
  readonly dispatcher: Dispatcher
  readonly access: Access
  /** IP address or name to listen on. */
  readonly address: string
  /** 0: any free port. */
  readonly port: number
  readonly tls?: HttpTls
  /** Milliseconds of silence after which an event stream says that it is alive; default 15 s, of many streams over one WebSocket 5 s. */
  readonly keepAliveMs?: number
  /** Texts that are no operations, by path: read with GET or HEAD by whoever may call the API. */
  readonly pages?: ReadonlyMap<string, Page>
  /** Read with GET or HEAD by everybody but pages of other origins; undefined: this installation has none. */
  readonly dashboard?: Dashboard | undefined
  /** Is told of what a client did that is worth a line in the log. */
  readonly warn?: Warn
  /** Adds routes of others (the node link) before the API's own. */
  readonly extend?: (server: HttpServer) => void
}

/** What a request carries apart from its body; uWebSockets.js lends it only while its handler runs. */
interface RequestHead {
  readonly verb: string
  readonly path: string
  readonly query: string
  /** Empty for GET and HEAD, whose body is not read. */
  readonly contentLength: string
  /** The same. */
  readonly contentEncoding: string
  readonly remoteAddress: string
  readonly headers: AccessHeaders
}

export class HttpListener {
  readonly #options: HttpListenerOptions
  readonly #dispatcher: Dispatcher
  readonly #routes: HttpRoutes
  readonly #keepAlive: KeepAlive
  readonly #cors: Cors
  readonly #streams = new Set<StreamSink>()
  readonly #sockets: HttpSockets
  readonly #underWay = new UnderWay()
  /** The address of every peer, when only this machine can reach the port: asking for each one's costs a buffer. */
  readonly #peer: string | undefined
  #server: HttpServer | undefined

  constructor(options: HttpListenerOptions) {
    this.#options = options
    this.#dispatcher = options.dispatcher
    this.#routes = new HttpRoutes(options.dispatcher.operations)
    this.#keepAlive = new KeepAlive(options.keepAliveMs ?? 15_000)
    this.#cors = new Cors(options.access.allowedOrigins)
    this.#sockets = new HttpSockets({
      dispatcher: options.dispatcher,
      routes: this.#routes,
      keepAlive: this.#keepAlive,
      manyKeepAlive: new KeepAlive(options.keepAliveMs ?? 5_000),
      streams: this.#streams,
      proof: (request) => this.#proof(request),
      warn: options.warn,
    })
    if (isLoopbackAddress(options.address)) this.#peer = options.address
  }

  /** Listens; rejects when the address cannot be had (taken, not of this machine, no permission). */
  async start(): Promise<{ address: string; port: number }> {
    const { address, port, tls, extend, warn } = this.#options
    const server = new HttpServer({ tls, warn, report: (error, what) => this.#dispatcher.report(error, what) })
    extend?.(server)
    this.#sockets.add(server)
    server.handle((exchange, request) => this.#request(exchange, request))
    const bound = await server.listen(address, port)
    if (bound === undefined) {
      server.close()
      throw await listenFailure('HTTP', address, port, 'http.address')
    }
    this.#server = server
    return { address, port: bound }
  }

  /**
   * Ends every stream with UNAVAILABLE and closes the port, lets other calls finish for STOP_MS, and their answers be read, answers those that have
   * not with UNAVAILABLE, as all that come now, and closes all connections.
   */
  async stop(): Promise<void> {
    const server = this.#server
    if (server === undefined) return
    this.#server = undefined
    server.stopListening()
    const error = shuttingDown()
    this.#sockets.end(error)
    for (const stream of [...this.#streams]) stream.end(error)
    await this.#underWay.finish()
    this.#underWay.cut(error)
    // One turn for the last events to leave before the connections are cut. A second for those that were accepted when the port was closed: where
    // the certificate was renewed, they reach the app that has it a turn later.
    await setImmediate()
    await setImmediate()
    server.close()
  }

  /** Reads another certificate; what it returns has it shown to new connections. Throws Error when it cannot be used. */
  renew(tls: HttpTls): () => void {
    return this.#server?.renew(tls) ?? (() => {})
  }

  /** Ends the streams of callers who proved the token `identity`, and their calls that wait for an answer, since it was revoked. */
  endCallsOf(identity: string): void {
    endStreamsOf(this.#streams, identity)
    this.#sockets.end(revoked(), identity)
    this.#underWay.cut(revoked(), identity)
  }

  /** What it throws, the exchange answers. */
  #request(exchange: Exchange, request: HttpRequest): void | Promise<void> {
    const { verb } = exchange
    const origin = request.getHeader(ORIGIN)
    exchange.headers = this.#cors.headers(origin)
    exchange.unread = this.#underWay.unread
    if (verb === 'OPTIONS') {
      const preflight = this.#cors.preflight(origin, (name) => request.getHeader(name))
      if (preflight !== undefined) {
        exchange.answer({ status: '204 No Content', headers: preflight })
        return
      }
    }
    if (this.#server === undefined) {
      exchange.answer(errorAnswer(shuttingDown(), { close: true }))
      return
    }
    const head = this.#head(exchange, request, origin)
    // Only what is neither a page nor of the dashboard has come to be remembered.
    const recent = this.#routes.recent(verb, head.path)
    if (recent !== undefined) return this.#serve(exchange, head, this.#caller(head), recent.route, recent.path)
    const file = verb === 'GET' || verb === 'HEAD' ? this.#options.dashboard?.find(head.path) : undefined
    if (file !== undefined) {
      const header = (name: string): string => request.getHeader(name)
      exchange.answer(file.answer(header, !this.#needsToken(head, header('sec-fetch-mode') === 'navigate')))
      return
    }
    const caller = this.#caller(head)
    const page = this.#options.pages?.get(head.path)
    if (page !== undefined) {
      exchange.answer(pageAnswer(page, verb, request.getHeader('if-none-match')))
      return
    }
    if (this.#options.dashboard?.find(head.path) !== undefined) {
      exchange.answer(methodAnswer(verb, ['GET', 'HEAD', 'OPTIONS']))
      return
    }
    const match = this.#routes.match(verb, head.path)
    if (match.kind === 'none') {
      if (head.path === '/') throw new ServiceError('NOT_FOUND', NO_DASHBOARD)
      if (head.path === STREAMS_PATH) {
        const isRead = verb === 'GET' || verb === 'HEAD'
        exchange.answer(isRead ? upgradeAnswer() : methodAnswer(verb, ['GET', 'HEAD', 'OPTIONS']))
        return
      }
      throw noSuchPath(head.path)
    }
    if (match.kind === 'malformed') throw malformedSegment(match.segment)
    if (match.kind === 'method') {
      exchange.answer(methodAnswer(verb, match.allow))
      return
    }
    return this.#serve(exchange, head, caller, match.route, match.path)
  }

  #head(exchange: Exchange, request: HttpRequest, origin: string): RequestHead {
    const { verb } = exchange
    const isBodyRead = verb !== 'GET' && verb !== 'HEAD'
    return {
      verb,
      path: request.getUrl(),
      query: request.getQuery() ?? '',
      contentLength: isBodyRead ? request.getHeader('content-length') : '',
      contentEncoding: isBodyRead ? request.getHeader('content-encoding') : '',
      remoteAddress: this.#peer ?? exchange.remoteAddress,
      headers: accessHeaders(request, origin),
    }
  }

  /** Who sent it; throws UNAUTHENTICATED or PERMISSION_DENIED. */
  #caller({ remoteAddress, headers }: Pick<RequestHead, 'remoteAddress' | 'headers'>): Caller {
    return this.#options.access.httpCaller(remoteAddress, headers)
  }

  /**
   * Whether the caller would be let in with a token, and has not shown one that is known; throws PERMISSION_DENIED. A person who follows a link of
   * another site to a page (`isNavigation`) has nothing done on their behalf.
   */
  #needsToken({ remoteAddress, headers }: RequestHead, isNavigation: boolean): boolean {
    try {
      this.#caller({ remoteAddress, headers: isNavigation ? { ...headers, fetchSite: 'none' } : headers })
      return false
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'UNAUTHENTICATED') return true
      throw error
    }
  }

  #serve(
    exchange: Exchange,
    head: RequestHead,
    caller: Caller,
    route: HttpRoute,
    path: Readonly<Record<string, string>>,
  ): void | Promise<void> {
    const { transport } = route.binding
    if (transport === 'websocket') {
      exchange.answer(upgradeAnswer())
      return
    }
    const call = new Call(caller, transport)
    exchange.caller = call
    if (head.verb === 'GET' || head.verb === 'HEAD') return this.#run(exchange, head, call, route, path, '')
    if (head.contentEncoding !== '' && head.contentEncoding.toLowerCase() !== 'identity') {
      exchange.answer(encodingAnswer(head.contentEncoding))
      return
    }
    return this.#runWithBody(exchange, head, call, route, path)
  }

  async #runWithBody(
    exchange: Exchange,
    head: RequestHead,
    call: Call,
    route: HttpRoute,
    path: Readonly<Record<string, string>>,
  ): Promise<void> {
    const pending = pendingCall(exchange, call)
    this.#underWay.add(pending)
    const body = await exchange.body(head.contentLength, MAX_BODY_BYTES).finally(() => this.#underWay.delete(pending))
    if (body === undefined) return
    if (this.#server === undefined) throw shuttingDown()
    // A body may have taken its time, one of no bytes too: the token can be gone by now.
    this.#caller(head)
    await this.#run(exchange, head, call, route, path, body)
  }

  /** Answers before it returns where the operation does. */
  #run(
    exchange: Exchange,
    head: RequestHead,
    call: Call,
    route: HttpRoute,
    path: Readonly<Record<string, string>>,
    body: string,
  ): void | Promise<void> {
    const { operation, binding } = route
    try {
      const request = readRequest(route, path, head.query, body)
      if (binding.transport === 'sse') return this.#stream(exchange, operation, request, call)
      const response = this.#dispatcher.unary(operation, request, call)
      if (response instanceof Promise) return this.#answerLater(exchange, operation, call, response)
      exchange.answer(this.#responseAnswer(operation, response))
    } catch (error) {
      exchange.fail(this.#dispatcher.failure(error, operation))
    }
  }

  async #answerLater(exchange: Exchange, operation: Operation, call: Call, response: Promise<unknown>): Promise<void> {
    const pending = pendingCall(exchange, call)
    this.#underWay.add(pending)
    try {
      const answer = this.#responseAnswer(operation, await response)
      if (!exchange.isOver) exchange.answer(answer)
    } catch (error) {
      // Reported, with the operation's name, even when nobody is left to hear it.
      exchange.fail(this.#dispatcher.failure(error, operation))
    } finally {
      this.#underWay.delete(pending)
    }
  }

  /** Throws RESOURCE_EXHAUSTED where answers that nobody reads leave no room for it. */
  #responseAnswer(operation: Operation, response: unknown): HttpAnswer {
    const body = utf8Of(response as object, jsonEncoder(operation.response))
    if (typeof body === 'string') this.#underWay.answers.admit(operation, body.length)
    return jsonAnswer(body)
  }

  async #stream(exchange: Exchange, operation: Operation, request: unknown, call: Call): Promise<void> {
    const sink =
      exchange.verb === 'HEAD'
        ? new SseHeadSink(exchange, operation, this.#dispatcher, call, this.#streams)
        : new SseSink(exchange, operation, this.#dispatcher, this.#keepAlive, call, this.#streams)
    exchange.caller = sink
    await this.#dispatcher.open(operation, sink, () => this.#dispatcher.stream(operation, request, call, sink))
  }

  /** Who wants to open a socket, to be asked again as long as it is open. */
  #proof({ remoteAddress, header, eachHeader }: UpgradeRequest): SocketProof {
    if (this.#server === undefined) throw shuttingDown()
    // May be there several times, as one list (RFC 6455, section 11.3.4).
    const offered: string[] = []
    eachHeader((name, value) => {
      if (name === 'sec-websocket-protocol') offered.push(value)
    })
    const { protocol, authorization } = readSubprotocols(offered.join(','))
    const headers = accessHeaders({ getHeader: header, forEach: eachHeader }, header(ORIGIN))
    const proof = headers.authorization === '' ? { ...headers, authorization } : headers
    return { caller: () => this.#caller({ remoteAddress, headers: proof }), protocol }
  }
}

/** A call that waits for its body, or for its answer. */
const pendingCall = (exchange: Exchange, call: Call): PendingCall => ({
  identity: call.identity,
  cut: (error) => {
    exchange.fail(error)
    call.abort(error)
  },
})

const HOST = encoded('host')
const ORIGIN = encoded('origin')
const AUTHORIZATION = encoded('authorization')
const FETCH_SITE = encoded('sec-fetch-site')

/** Throws INVALID_ARGUMENT where there are several hosts (RFC 9112, section 3.2): the one that is checked is not to be another than a proxy goes by. */
function accessHeaders(request: Pick<HttpRequest, 'getHeader' | 'forEach'>, origin: string): AccessHeaders {
  let hosts = 0
  let forwarded = false
  // `getHeader` does not give one behind another of its name; of what a proxy adds the caller may have sent the first, or an empty one.
  request.forEach((name) => {
    if (name === 'host') hosts++
    forwarded ||= name === 'x-forwarded-for' || name === 'forwarded'
  })
  if (hosts > 1) throw new ServiceError('INVALID_ARGUMENT', 'the request has several Host fields, where one is to be')
  return {
    host: request.getHeader(HOST),
    origin,
    authorization: request.getHeader(AUTHORIZATION),
    fetchSite: request.getHeader(FETCH_SITE),
    forwarded,
  }
}
