/** The WebSockets of the HTTP listener: one for a stream, or any number of streams over one. */
import type { WebSocket } from 'uWebSockets.js'
import { ServiceError } from '../contract/errors.ts'
import type { Operation } from '../contract/operations.ts'
import type { Upgrade, UpgradeRequest } from '../link/link.ts'
import { Call, type Caller } from './call.ts'
import type { Dispatcher } from './dispatcher.ts'
import { type FullSocket, FullSockets } from './full-sockets.ts'
import type { Warn } from './grpc-connections.ts'
import { readRequest } from './http-request.ts'
import { type HttpRoutes, malformedSegment, noSuchPath } from './http-routes.ts'
import type { HttpServer } from './http-server.ts'
import type { KeepAlive } from './keep-alive.ts'
import type { StreamSink } from './sink.ts'
import { STREAMS_PATH, type StreamAsked, StreamsSocket } from './streams-socket.ts'
import { type WebSocketData, WebSocketSink, WebSocketStreamSink } from './websocket.ts'
import { MAX_RECEIVE_BYTES } from './websocket-frames.ts'

const SOCKET_LIMITS = {
  maxPayloadLength: MAX_RECEIVE_BYTES,
  // None: see FullSockets.
  maxBackpressure: 0,
  idleTimeout: 60,
  sendPingsAutomatically: true,
} as const

/** Who wants to open a socket, and the subprotocol that is answered. */
export interface SocketProof {
  /** Throws once they are not let in any more. */
  readonly caller: () => Caller
  readonly protocol: string
}

export interface HttpSocketsOptions {
  readonly dispatcher: Dispatcher
  readonly routes: HttpRoutes
  readonly keepAlive: KeepAlive
  /** Of sockets with many streams: pages show by it that the node is not reached. */
  readonly manyKeepAlive: KeepAlive
  /** Gets every stream that is open. */
  readonly streams: Set<StreamSink>
  /** Throws UNAVAILABLE when none is to be opened any more. */
  readonly proof: (request: UpgradeRequest) => SocketProof
  /** Is told of sockets that are cut. */
  readonly warn?: Warn | undefined
}

/** What uWebSockets.js keeps with each socket of many streams. */
interface StreamsSocketData {
  readonly address: string
  /** Whoever opened it; throws once they are not let in any more. */
  readonly caller: () => Caller
  readonly identity: string | undefined
  socket?: StreamsSocket
}

export class HttpSockets {
  readonly #options: HttpSocketsOptions
  readonly #full: FullSockets
  readonly #streamsSockets = new Set<StreamsSocket>()

  constructor(options: HttpSocketsOptions) {
    this.#options = options
    this.#full = new FullSockets(options.warn)
  }

  /** Adds the paths of all to a server that does not listen yet. */
  add(server: HttpServer): void {
    this.#addStreamsSocket(server)
    for (const operation of this.#options.dispatcher.operations) {
      for (const binding of operation.http) {
        const isStream = binding.transport === 'sse' && binding.verb === 'GET'
        if (binding.transport === 'websocket' || isStream) this.#addWebSocket(server, operation, binding.path)
      }
    }
  }

  /** Ends the sockets of many streams, of the callers who proved the token `identity` where it is given. */
  end(error: ServiceError, identity?: string): void {
    for (const socket of [...this.#streamsSockets]) {
      if (identity === undefined || socket.identity === identity) socket.end(error)
    }
  }

  #addWebSocket(server: HttpServer, operation: Operation, path: string): void {
    const behavior = {
      ...SOCKET_LIMITS,
      open: (socket: WebSocket<WebSocketData>) => this.#openWebSocket(socket),
      message: (socket: WebSocket<WebSocketData>, frame: ArrayBuffer, isBinary: boolean) =>
        socket.getUserData().sink?.message(frame, isBinary),
      drain: (socket: WebSocket<WebSocketData>) => this.#wrote(socket.getUserData().sink),
      close: (socket: WebSocket<WebSocketData>, _code: number, reason: ArrayBuffer) =>
        this.#lost(socket.getUserData().sink, reason),
    }
    const pattern = path.replaceAll(/\{(\w+)\}/g, ':$1')
    server.webSocket<WebSocketData>(pattern, behavior, (request) => this.#upgrade(operation, request))
  }

  #addStreamsSocket(server: HttpServer): void {
    const behavior = {
      ...SOCKET_LIMITS,
      open: (socket: WebSocket<StreamsSocketData>) => this.#openStreamsSocket(socket),
      message: (socket: WebSocket<StreamsSocketData>, frame: ArrayBuffer, isBinary: boolean) =>
        socket.getUserData().socket?.message(frame, isBinary),
      drain: (socket: WebSocket<StreamsSocketData>) => this.#wrote(socket.getUserData().socket),
      close: (socket: WebSocket<StreamsSocketData>, _code: number, reason: ArrayBuffer) => {
        const data = socket.getUserData()
        if (data.socket !== undefined) this.#streamsSockets.delete(data.socket)
        this.#lost(data.socket, reason)
      },
    }
    server.webSocket<StreamsSocketData>(STREAMS_PATH, behavior, (request) => {
      const { caller, protocol } = this.#options.proof(request)
      return { data: { address: request.remoteAddress, caller, identity: caller().identity }, protocol }
    })
  }

  #openStreamsSocket(socket: WebSocket<StreamsSocketData>): void {
    const data = socket.getUserData()
    data.socket = new StreamsSocket(socket, {
      dispatcher: this.#options.dispatcher,
      keepAlive: this.#options.manyKeepAlive,
      full: this.#full,
      streams: this.#options.streams,
      find: (path, query) => this.#findStream(path, query),
      caller: data.caller,
      address: data.address,
      identity: data.identity,
    })
    this.#streamsSockets.add(data.socket)
  }

  #wrote(socket: FullSocket | undefined): void {
    if (socket !== undefined) this.#full.wrote(socket)
  }

  #lost(socket: (FullSocket & { lose(): void }) | undefined, reason: ArrayBuffer): void {
    if (socket === undefined) return
    this.#full.lost(socket, Buffer.from(reason).toString())
    socket.lose()
  }

  /** The stream that GET of a path would read. */
  #findStream(path: string, query: string): StreamAsked {
    const match = this.#options.routes.match('GET', path)
    if (match.kind === 'malformed') throw malformedSegment(match.segment)
    if (match.kind !== 'route') throw noSuchPath(path)
    const { operation, binding } = match.route
    if (binding.transport === 'sse') return { operation, request: readRequest(match.route, match.path, query, '') }
    const message =
      binding.transport === 'websocket'
        ? `${operation.name} takes messages: open a WebSocket of its own at this path`
        : `${operation.name} is no stream: read it with GET`
    throw new ServiceError('INVALID_ARGUMENT', message)
  }

  #upgrade(operation: Operation, request: UpgradeRequest): Upgrade<WebSocketData> {
    const { caller, protocol } = this.#options.proof(request)
    const call = new Call(caller(), 'websocket')
    const data = { address: request.remoteAddress, call, operation, request: this.#streamRequest(operation, request) }
    return { data, protocol }
  }

  /** What an operation is asked that takes one request and sends many messages; undefined for others. */
  #streamRequest(operation: Operation, { path, query }: UpgradeRequest): unknown {
    return operation.kind === 'server' ? this.#findStream(path, query).request : undefined
  }

  async #openWebSocket(socket: WebSocket<WebSocketData>): Promise<void> {
    const data = socket.getUserData()
    const { call, operation, request } = data
    if (request === undefined) {
      const sink = new WebSocketSink(
        socket,
        operation,
        this.#options.dispatcher,
        call,
        this.#options.streams,
        this.#full,
      )
      data.sink = sink
      await this.#options.dispatcher.open(operation, sink, async () =>
        sink.receive(await this.#options.dispatcher.bidi(operation, call, sink)),
      )
    } else {
      const sink = new WebSocketStreamSink(
        socket,
        operation,
        this.#options.dispatcher,
        this.#options.keepAlive,
        call,
        this.#options.streams,
        this.#full,
      )
      data.sink = sink
      await this.#options.dispatcher.open(operation, sink, () =>
        this.#options.dispatcher.stream(operation, request, call, sink),
      )
    }
  }
}
