/** The gRPC listener: every operation, health and reflection on one port. */
import type { Http2SecureServer, Http2Server, ServerOptions } from 'node:http2'
import type { Socket } from 'node:net'
import * as grpc from '@grpc/grpc-js'
import { decodeBinary } from '../contract/binary-decode.ts'
import { binaryOf, encodeBinary } from '../contract/binary-encode.ts'
import { ServiceError } from '../contract/errors.ts'
import type { RequestReceiver } from '../contract/handlers.ts'
import type { Operation } from '../contract/operations.ts'
import { SharedMessage } from '../contract/shared-message.ts'
import type { Access } from './access.ts'
import { Call, type Caller } from './call.ts'
import type { Dispatcher } from './dispatcher.ts'
import { grpcFailure } from './errors.ts'
import {
  type GrpcConnectionLimits,
  GrpcConnections,
  MAX_INVALID_FRAMES,
  MAX_OPEN_CALLS,
  MAX_REJECTED_CALLS,
  type Warn,
} from './grpc-connections.ts'
import { limitDeadline } from './grpc-deadline.ts'
import { addKnownServices, REFLECTION } from './grpc-known-services.ts'
import { decodeInOnePiece } from './grpc-messages.ts'
import { listenFailure } from './listen-failure.ts'
import { endStreamsOf, type OpenStream, revoked, StreamSink, shuttingDown } from './sink.ts'
import { STOP_MS, UnderWay } from './under-way.ts'

/** PEM. */
export interface GrpcTls {
  readonly key: Buffer
  readonly cert: Buffer
}

export interface GrpcListenerOptions {
  readonly dispatcher: Dispatcher
  readonly access: Access
  /** IP address or name to listen on. */
  readonly address: string
  /** 0: any free port. */
  readonly port: number
  readonly tls?: GrpcTls
  readonly limits?: GrpcConnectionLimits & {
    /** Milliseconds; default IDLE_MS. */
    readonly idleMs?: number
  }
  /** Gets what goes wrong without a caller to be told. */
  readonly warn?: Warn
}

type GrpcStream = grpc.ServerWritableStream<Buffer, Buffer> | grpc.ServerDuplexStream<Buffer, Buffer>

/** Longest request message, bytes; the same as over HTTP. */
const MAX_REQUEST_BYTES = 4 * 1024 * 1024
/** How long a connection may be without an open call before it is closed, milliseconds: its client comes back by itself. */
const IDLE_MS = 300_000
/** After so much silence of a connection the client is asked whether it is there, milliseconds, */
const PING_MS = 30_000
/** and has this long to answer, milliseconds. */
const PONG_MS = 20_000
/** Metadata of a call, bytes, as clients are told (SETTINGS_MAX_HEADER_LIST_SIZE, RFC 9113, section 6.5.2): the HTTP/2 library takes no longer value. */
const MAX_METADATA_BYTES = 64 * 1024
/** Under this the guard leaves the caller's IP address in a call's metadata, for its handler. */
const ADDRESS = 'penstock.address'

export class GrpcListener {
  readonly #options: GrpcListenerOptions
  readonly #dispatcher: Dispatcher
  /** Those of operations, and those of health and reflection, which end themselves but for this. */
  readonly #streams = new Set<OpenStream>()
  readonly #underWay = new UnderWay()
  readonly #connections: GrpcConnections
  /** Those with TLS. */
  readonly #http2Servers: Http2SecureServer[] = []
  #server: grpc.Server | undefined
  #inject: ((socket: Socket) => void) | undefined
  /** Loads what a call of a path needs; whether it is of health or reflection. */
  #prepare: (path: string) => boolean = () => false

  constructor(options: GrpcListenerOptions) {
    this.#options = options
    this.#dispatcher = options.dispatcher
    this.#connections = new GrpcConnections({
      inject: (socket) => this.#inject?.(socket),
      warn: options.warn ?? (() => undefined),
      ...(options.limits === undefined ? {} : { limits: options.limits }),
    })
  }

  /** Listens; rejects when the address cannot be had. */
  async start(): Promise<{ address: string; port: number }> {
    const { address, port, tls, limits } = this.#options
    // What grpc-js would print is in the errors it gives.
    grpc.setLogVerbosity(grpc.logVerbosity.NONE)
    const server = new grpc.Server({
      interceptors: [(method, call) => this.#guard(method, call)],
      'grpc.keepalive_time_ms': PING_MS,
      'grpc.keepalive_timeout_ms': PONG_MS,
      'grpc.max_connection_idle_ms': limits?.idleMs ?? IDLE_MS,
      'grpc.max_receive_message_length': MAX_REQUEST_BYTES,
      'grpc.max_concurrent_streams': MAX_OPEN_CALLS,
      // Nobody can ask for what it counts of every call.
      'grpc.enable_channelz': 0,
    })
    const inside = insideOf(server)
    inside.commonServerOptions.maxSessionInvalidFrames = MAX_INVALID_FRAMES
    inside.commonServerOptions.maxSessionRejectedStreams = MAX_REJECTED_CALLS
    inside.commonServerOptions.settings = {
      ...inside.commonServerOptions.settings,
      maxHeaderListSize: MAX_METADATA_BYTES,
    }
    this.#addOperations(server)
    const services = [...new Set(this.#dispatcher.operations.map(({ service }) => service))]
    this.#prepare = addKnownServices(server, services, this.#options.warn ?? (() => undefined))
    const credentials =
      tls === undefined
        ? grpc.ServerCredentials.createInsecure()
        : grpc.ServerCredentials.createSsl(null, [{ private_key: tls.key, cert_chain: tls.cert }])
    const injector = server.createConnectionInjector(credentials)
    this.#inject = (socket) => injector.injectConnection(socket)
    const bidi = new Set([
      ...this.#dispatcher.operations.filter(({ kind }) => kind === 'bidi').map(({ grpcPath }) => grpcPath),
      ...REFLECTION.flatMap(({ name, methods }) => Object.keys(methods).map((method) => `/${name}/${method}`)),
    ])
    for (const http2 of inside.http2Servers.keys()) {
      if (tls !== undefined) this.#http2Servers.push(http2 as Http2SecureServer)
      http2.prependListener('stream', limitDeadline)
      this.#connections.watch(http2, (path) => bidi.has(path))
    }
    try {
      const bound = await this.#connections.listen(address, port)
      this.#server = server
      return { address, port: bound }
    } catch {
      this.#connections.close()
      throw await listenFailure('gRPC', address, port, 'grpc.address')
    }
  }

  /** Ends every stream with UNAVAILABLE, lets other calls finish for STOP_MS, then answers those that have not with UNAVAILABLE. */
  async stop(): Promise<void> {
    const server = this.#server
    if (server === undefined) return
    this.#server = undefined
    this.#connections.stopListening()
    const error = shuttingDown()
    for (const stream of [...this.#streams]) stream.end(error)
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        this.#underWay.cut(error)
        // One turn for the answers to leave.
        setImmediate(() => {
          server.forceShutdown()
          resolve()
        })
      }, STOP_MS)
      server.tryShutdown(() => {
        clearTimeout(timer)
        resolve()
      })
    })
    this.#connections.close()
  }

  /** What it returns has another certificate shown to new connections, which Node.js can use. */
  renew({ key, cert }: GrpcTls): () => void {
    return () => {
      // Of ciphers Node.js keeps none for the next context: these are what grpc-js sets.
      const context = { key, cert, ciphers: process.env.GRPC_SSL_CIPHER_SUITES }
      for (const http2 of this.#http2Servers) http2.setSecureContext(context)
    }
  }

  /** Ends the streams of callers who proved the token `identity`, and their calls that wait for an answer, since it was revoked. */
  endCallsOf(identity: string): void {
    endStreamsOf(this.#streams, identity)
    this.#underWay.cut(revoked(), identity)
  }

  /**
   * Refuses callers without access, and those that do not read their answers, before any handler hears of them, health and reflection
   * included. Streams bound what waits in them by themselves.
   */
  #guard(
    { path, responseStream }: { path: string; responseStream: boolean },
    call: grpc.ServerInterceptingCallInterface,
  ): grpc.ServerInterceptingCall {
    // Not getPeer, which asks the session for its socket each time.
    const connection = this.#connections.from(call.getConnectionInfo())
    let unread = 0
    let isOver = false
    let known: OpenStream | undefined
    decodeInOnePiece(call, MAX_REQUEST_BYTES)
    return new grpc.ServerInterceptingCall(call, {
      start: (next) => {
        next({
          onReceiveMetadata: (metadata, proceed) => {
            try {
              metadata.setOpaque(ADDRESS, connection?.address)
              const caller = this.#caller(metadata)
              if (connection !== undefined) this.#connections.admitted(connection)
              if (this.#prepare(path) && responseStream) {
                known = { identity: caller.identity, end: (error) => call.sendStatus(grpcFailure(error)) }
                this.#streams.add(known)
              }
              proceed(metadata)
            } catch (error) {
              call.sendStatus(grpcFailure(error as ServiceError))
            }
          },
          // Called when the call is over, however it ended: its answer has left or never will.
          onCancel: () => {
            isOver = true
            if (known !== undefined) this.#streams.delete(known)
            if (connection !== undefined) this.#connections.hold(connection, -unread)
          },
        })
      },
      sendMessage: (message, next) => {
        if (!responseStream && !isOver && connection !== undefined && message instanceof Uint8Array) {
          unread = message.length
          this.#connections.hold(connection, unread)
        }
        next(message)
      },
    })
  }

  #addOperations(server: grpc.Server): void {
    const definitions = new Map<string, Record<string, grpc.MethodDefinition<Buffer, Buffer>>>()
    const implementations = new Map<string, grpc.UntypedServiceImplementation>()
    for (const operation of this.#dispatcher.operations) {
      const { service, name, kind } = operation
      const methods = definitions.get(service) ?? {}
      const handlers = implementations.get(service) ?? {}
      definitions.set(service, methods)
      implementations.set(service, handlers)
      methods[name] = {
        path: operation.grpcPath,
        requestStream: kind === 'bidi',
        responseStream: kind !== 'unary',
        // Bytes pass through: they are decoded where a bad request can be answered as INVALID_ARGUMENT.
        requestSerialize: (bytes) => bytes,
        requestDeserialize: (bytes) => bytes,
        responseSerialize: (bytes) => bytes,
        responseDeserialize: (bytes) => bytes,
      }
      handlers[name] = this.#implementation(operation)
    }
    for (const [service, methods] of definitions) {
      server.addService(methods, implementations.get(service) as grpc.UntypedServiceImplementation)
    }
  }

  #implementation(operation: Operation): grpc.UntypedHandleCall {
    switch (operation.kind) {
      case 'unary':
        return (call: grpc.ServerUnaryCall<Buffer, Buffer>, callback: grpc.sendUnaryData<Buffer>) =>
          this.#unary(operation, call, callback)
      case 'server':
        return (stream: grpc.ServerWritableStream<Buffer, Buffer>) => void this.#serverStream(operation, stream)
      case 'bidi':
        return (stream: grpc.ServerDuplexStream<Buffer, Buffer>) => void this.#bidiStream(operation, stream)
    }
  }

  #context(call: { metadata: grpc.Metadata }): Call {
    return new Call(this.#caller(call.metadata), 'grpc')
  }

  /** Throws UNAUTHENTICATED. */
  #caller(metadata: grpc.Metadata): Caller {
    const address = (metadata.getOpaque(ADDRESS) as string | undefined) ?? 'unknown'
    const isForwarded = metadata.get('x-forwarded-for').length > 0 || metadata.get('forwarded').length > 0
    return this.#options.access.caller(address, header(metadata, 'authorization'), isForwarded)
  }

  /** Answers before it returns where the operation does. */
  #unary(operation: Operation, call: grpc.ServerUnaryCall<Buffer, Buffer>, callback: grpc.sendUnaryData<Buffer>): void {
    try {
      if (call.cancelled || Number(call.getDeadline()) <= Date.now()) {
        throw new ServiceError('DEADLINE_EXCEEDED', `the time of the call was over before ${operation.name} began`)
      }
      const context = this.#context(call)
      const request = decodeBinary(operation.request, call.request)
      const response = this.#dispatcher.unary(operation, request, context)
      if (response instanceof Promise) {
        call.on('cancelled', () => context.abort())
        void this.#answerLater(operation, context, response, callback)
      } else callback(null, this.#responseBytes(operation, response))
    } catch (error) {
      callback(grpcFailure(this.#dispatcher.failure(error, operation)))
    }
  }

  async #answerLater(
    operation: Operation,
    context: Call,
    response: Promise<unknown>,
    callback: grpc.sendUnaryData<Buffer>,
  ): Promise<void> {
    let isCut = false
    const pending = {
      identity: context.identity,
      cut: (error: ServiceError) => {
        isCut = true
        callback(grpcFailure(error))
        context.abort(error)
      },
    }
    this.#underWay.add(pending)
    try {
      const bytes = this.#responseBytes(operation, await response)
      if (!isCut) callback(null, bytes)
    } catch (error) {
      // Reported, with the operation's name, even when it has been answered.
      const failed = this.#dispatcher.failure(error, operation)
      if (!isCut) callback(grpcFailure(failed))
    } finally {
      this.#underWay.delete(pending)
    }
  }

  /** Throws RESOURCE_EXHAUSTED where answers that nobody reads leave no room for it. */
  #responseBytes(operation: Operation, response: unknown): Buffer {
    const bytes = binaryOf(operation.response, response as object) as Buffer
    this.#connections.answers.admit(operation, bytes.length)
    return bytes
  }

  async #serverStream(operation: Operation, stream: grpc.ServerWritableStream<Buffer, Buffer>): Promise<void> {
    const call = this.#admit(stream)
    if (call === undefined) return
    const sink = this.#open(operation, stream, call)
    await this.#dispatcher.open(operation, sink, async () => {
      const request = decodeBinary(operation.request, stream.request)
      await this.#dispatcher.stream(operation, request, call, sink)
    })
  }

  async #bidiStream(operation: Operation, stream: grpc.ServerDuplexStream<Buffer, Buffer>): Promise<void> {
    const call = this.#admit(stream)
    if (call === undefined) return
    const sink = this.#open(operation, stream, call)
    await this.#dispatcher.open(operation, sink, async () => {
      // Nothing is read before the receiver is there: flow control holds the client back.
      const receiver = await this.#dispatcher.bidi(operation, call, sink)
      sink.ready()
      stream.on('data', (bytes: Buffer) => this.#deliver(operation, receiver, sink, bytes))
      stream.on('end', () => receiver.end?.())
    })
  }

  /**
   * gRPC has no frame for the failure of one message. What is no message of the operation ends the stream, as every gRPC server does; a
   * message that was refused does not, for the others on the stream are good.
   */
  async #deliver(
    operation: Operation,
    receiver: RequestReceiver<unknown>,
    sink: GrpcSink,
    bytes: Buffer,
  ): Promise<void> {
    if (sink.closed) return
    let request: unknown
    try {
      request = decodeBinary(operation.request, bytes)
    } catch (error) {
      sink.end(error)
      return
    }
    try {
      await receiver.message(request)
    } catch (error) {
      const { message } = this.#dispatcher.failure(error, operation)
      if (sink.closed) return
      this.#options.warn?.(
        `${operation.name}: a message was refused, which its caller over gRPC is not told: ${message}`,
      )
    }
  }

  /** The context of a stream; undefined, with the stream ended, when access was lost since the guard looked. */
  #admit(stream: GrpcStream): Call | undefined {
    try {
      return this.#context(stream)
    } catch (error) {
      stream.emit('error', grpcFailure(error as ServiceError))
      return undefined
    }
  }

  #open(operation: Operation, stream: GrpcStream, call: Call): GrpcSink {
    const sink = new GrpcSink(stream, operation, this.#dispatcher, call, this.#streams)
    stream.on('cancelled', () => sink.lose())
    stream.on('drain', () => sink.drained())
    // A broken connection shows as a cancellation too; without a listener the error would end the process.
    stream.on('error', () => sink.lose())
    return sink
  }
}

/** One open server stream or bidirectional stream. */
class GrpcSink extends StreamSink {
  readonly #stream: GrpcStream
  readonly #operation: Operation
  readonly #dispatcher: Dispatcher

  constructor(stream: GrpcStream, operation: Operation, dispatcher: Dispatcher, call: Call, streams: Set<OpenStream>) {
    super(call, streams)
    this.#stream = stream
    this.#operation = operation
    this.#dispatcher = dispatcher
  }

  protected override open(): void {
    this.#stream.sendMetadata(new grpc.Metadata())
  }

  protected override write(message: unknown): number {
    const encode = (value: unknown): Uint8Array => encodeBinary(this.#operation.response, value)
    const bytes = (message instanceof SharedMessage ? message.encoded('proto', encode) : encode(message)) as Buffer
    if (!this.#stream.write(bytes)) this.writable = false
    return bytes.length
  }

  protected override finish(error: unknown): void {
    if (error === undefined) {
      this.#stream.end()
      return
    }
    this.#stream.emit('error', grpcFailure(this.#dispatcher.failure(error, this.#operation)))
  }
}

/** What grpc-js does not declare of its server: the options that its HTTP/2 servers are made with, and these servers. */
interface Inside {
  readonly commonServerOptions: ServerOptions
  readonly http2Servers: ReadonlyMap<Http2Server, unknown>
}

/** Throws when grpc-js keeps them elsewhere. */
function insideOf(server: grpc.Server): Inside {
  const inside = server as unknown as Partial<Inside>
  if (typeof inside.commonServerOptions !== 'object' || !(inside.http2Servers instanceof Map)) {
    throw new Error(
      '@grpc/grpc-js has no HTTP/2 servers where they are looked for: install the version of package-lock.json',
    )
  }
  return inside as Inside
}

function header(metadata: grpc.Metadata, name: string): string {
  return metadata.get(name)[0]?.toString() ?? ''
}
