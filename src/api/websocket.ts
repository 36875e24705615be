/** WebSockets: an operation that sends many messages as JSON text, `{"result": …}` or `{"error": {…}}` towards the client. */
import type { WebSocket } from 'uWebSockets.js'
import { ServiceError } from '../contract/errors.ts'
import type { RequestReceiver } from '../contract/handlers.ts'
import { decodeJson } from '../contract/json-decode.ts'
import type { Operation } from '../contract/operations.ts'
import type { Call } from './call.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { FullSocket, FullSockets } from './full-sockets.ts'
import type { KeepAlive } from './keep-alive.ts'
import { StreamSink } from './sink.ts'
import { closeCode, errorFrame, readFrame, resultFrame, STILL_HERE } from './websocket-frames.ts'

/** Messages kept for a receiver that is not there yet. */
const MAX_EARLY_MESSAGES = 256
/** What uWebSockets.js keeps with each socket. */
export interface WebSocketData {
  /** IP address of the client. */
  readonly address: string
  readonly call: Call
  readonly operation: Operation
  /** Of an operation that takes one request, which is that of the path. */
  readonly request: unknown
  sink?: WebSocketSink
}

/** One open WebSocket. A failure of the stream is an error frame and close code 4000 + the gRPC code. */
export class WebSocketSink extends StreamSink implements FullSocket {
  readonly #socket: WebSocket<WebSocketData>
  readonly #operation: Operation
  readonly #dispatcher: Dispatcher
  readonly #full: FullSockets
  #receiver: RequestReceiver<unknown> | undefined
  #early: unknown[] = []

  constructor(
    socket: WebSocket<WebSocketData>,
    operation: Operation,
    dispatcher: Dispatcher,
    call: Call,
    streams: Set<StreamSink>,
    full: FullSockets,
  ) {
    super(call, streams)
    this.#socket = socket
    this.#operation = operation
    this.#dispatcher = dispatcher
    this.#full = full
  }

  get address(): string {
    return this.#socket.getUserData().address
  }

  buffered(): number {
    return this.#socket.getBufferedAmount()
  }

  nudge(): void {
    this.#socket.ping()
  }

  cut(): void {
    this.#socket.close()
  }

  override drained(): void {
    this.#full.forget(this)
    super.drained()
  }

  override lose(): void {
    this.#full.forget(this)
    super.lose()
  }

  /** The handler is ready: hands it what came before. */
  receive(receiver: RequestReceiver<unknown>): void {
    this.#receiver = receiver
    const early = this.#early
    this.#early = []
    for (const request of early) this.#deliver(receiver, request)
  }

  /** One frame from the client; what is wrong with it is answered in a frame, and the socket stays open. */
  message(frame: ArrayBuffer, isBinary: boolean): void {
    if (this.closed) return
    try {
      const value = readFrame(this.#socket, frame, isBinary)
      if (value === undefined) return
      const request = decodeJson(this.#operation.request, value)
      if (this.#receiver !== undefined) this.#deliver(this.#receiver, request)
      else if (this.#early.length < MAX_EARLY_MESSAGES) this.#early.push(request)
      else throw new ServiceError('RESOURCE_EXHAUSTED', 'too many messages before the stream was established')
    } catch (error) {
      this.#reject(error)
    }
  }

  #deliver(receiver: RequestReceiver<unknown>, request: unknown): void {
    try {
      const result = receiver.message(request)
      if (result instanceof Promise) result.catch((error: unknown) => this.#reject(error))
    } catch (error) {
      this.#reject(error)
    }
  }

  #reject(error: unknown): void {
    if (this.closed) return
    const frame = errorFrame(this.#dispatcher.failure(error, this.#operation))
    if (this.#full.takes(this, frame.length)) this.frame(frame)
  }

  /** The open socket says it all. */
  protected override open(): void {}

  protected override write(message: unknown): number {
    const bytes = resultFrame(this.#operation, message)
    this.frame(bytes)
    return bytes.length
  }

  protected override finish(error: unknown): void {
    this.#full.forget(this)
    if (error === undefined) {
      this.#socket.end(1000)
      return
    }
    const failure = this.#dispatcher.failure(error, this.#operation)
    this.frame(errorFrame(failure))
    this.#socket.end(closeCode(failure.code))
  }

  protected frame(frame: string | Uint8Array): void {
    // 1: sent, 0: kept in a buffer that drains later.
    if (this.#socket.send(frame, false) === 1) return
    this.writable = false
    if (!this.closed) this.#full.watch(this)
  }
}

/** One open WebSocket of an operation that takes one request. It takes no messages, and says when it is silent that it is there. */
export class WebSocketStreamSink extends WebSocketSink {
  readonly #keepAlive: KeepAlive
  /** Kept by #keepAlive. */
  lastWord = 0

  constructor(
    socket: WebSocket<WebSocketData>,
    operation: Operation,
    dispatcher: Dispatcher,
    keepAlive: KeepAlive,
    call: Call,
    streams: Set<StreamSink>,
    full: FullSockets,
  ) {
    super(socket, operation, dispatcher, call, streams, full)
    this.#keepAlive = keepAlive
    this.receive({
      message: () => {
        throw new ServiceError('INVALID_ARGUMENT', 'this stream takes no messages')
      },
    })
  }

  /** Says that the stream is still there. */
  keepAlive(): void {
    // A full transport is not silent.
    if (!this.closed && this.writable) this.frame(STILL_HERE)
  }

  protected override open(): void {
    // The stream stands: an open socket alone does not say so.
    this.frame(STILL_HERE)
    this.#keepAlive.watch(this)
  }

  protected override write(message: unknown): number {
    this.#keepAlive.spoke(this)
    return super.write(message)
  }

  protected override finish(error: unknown): void {
    this.#keepAlive.forget(this)
    super.finish(error)
  }

  override lose(): void {
    super.lose()
    this.#keepAlive.forget(this)
  }
}
