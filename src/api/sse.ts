/** Server-sent events: a server-streaming operation as an event stream over one HTTP response. */

import { jsonEncoder } from '../contract/json-encode.ts'
import type { Operation } from '../contract/operations.ts'
import { SharedMessage, type SharedMessages } from '../contract/shared-message.ts'
import type { Call } from './call.ts'
import type { Dispatcher } from './dispatcher.ts'
import { errorBody } from './errors.ts'
import type { Exchange } from './http-exchange.ts'
import { errorAnswer } from './http-response.ts'
import type { KeepAlive } from './keep-alive.ts'
import { StreamSink } from './sink.ts'

const KEEP_ALIVE = Buffer.from(': keep-alive\n\n')
const HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  // Proxies such as nginx buffer otherwise.
  'x-accel-buffering': 'no',
}

/** Events as they are sent, several of them. */
class EventText {
  readonly bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }
}

/** Writes `: ready`, then each message as a `data:` line; a failure after that as an event of type error, then ends. */
export class SseSink extends StreamSink {
  readonly #exchange: Exchange
  readonly #operation: Operation
  readonly #dispatcher: Dispatcher
  readonly #keepAlive: KeepAlive
  #isDraining = false
  /** Kept by #keepAlive. */
  lastWord = 0

  constructor(
    exchange: Exchange,
    operation: Operation,
    dispatcher: Dispatcher,
    keepAlive: KeepAlive,
    call: Call,
    streams: Set<StreamSink>,
  ) {
    super(call, streams)
    this.#exchange = exchange
    this.#operation = operation
    this.#dispatcher = dispatcher
    this.#keepAlive = keepAlive
  }

  protected override open(): void {
    this.#exchange.stream(HEADERS, ': ready\n\n')
    this.#keepAlive.watch(this)
  }

  protected override write(message: unknown): number {
    const encode = (value: unknown): Uint8Array => eventBytes(this.#operation, value)
    let bytes: Uint8Array
    if (message instanceof SharedMessage) bytes = message.encoded('sse', encode)
    else if (message instanceof EventText) ({ bytes } = message)
    else bytes = encode(message)
    this.#write(bytes)
    return bytes.length
  }

  sendTogether(messages: SharedMessages<unknown>): boolean {
    const bytes = messages.eventStream((value) => eventBytes(this.#operation, value))
    if (bytes === undefined) return false
    this.send(new EventText(bytes))
    return true
  }

  protected override finish(error: unknown, isReady: boolean): void {
    this.#keepAlive.forget(this)
    if (error === undefined) {
      this.#exchange.finish()
      return
    }
    const failure = this.#dispatcher.failure(error, this.#operation)
    if (isReady) this.#exchange.finish(`event: error\ndata: ${errorBody(failure)}\n\n`)
    else this.#exchange.answer(errorAnswer(failure))
  }

  override lose(): void {
    super.lose()
    this.#keepAlive.forget(this)
  }

  /** Says that the stream is still there. */
  keepAlive(): void {
    // A full transport is not silent; its timeout is the peer's to meet.
    if (!this.closed && this.writable) this.#write(KEEP_ALIVE)
  }

  #write(bytes: Uint8Array): void {
    const hasRoom = this.#exchange.write(bytes)
    this.#keepAlive.spoke(this)
    if (hasRoom) return
    this.writable = false
    if (this.#isDraining) return
    this.#isDraining = true
    this.#exchange.onWritable(() => this.drained())
  }
}

/** What HEAD asks of a stream: it is opened until it is known to stand, or not, and left at once. */
export class SseHeadSink extends StreamSink {
  readonly #exchange: Exchange
  readonly #operation: Operation
  readonly #dispatcher: Dispatcher

  constructor(exchange: Exchange, operation: Operation, dispatcher: Dispatcher, call: Call, streams: Set<StreamSink>) {
    super(call, streams)
    this.#exchange = exchange
    this.#operation = operation
    this.#dispatcher = dispatcher
  }

  protected override open(): void {
    this.#exchange.stream(HEADERS, '')
    this.lose()
  }

  /** The answer says nothing. */
  protected override write(): number {
    return 0
  }

  protected override finish(error: unknown, isReady: boolean): void {
    if (!isReady) this.#exchange.answer(errorAnswer(this.#dispatcher.failure(error, this.#operation)))
  }
}

function eventBytes(operation: Operation, value: unknown): Uint8Array {
  return Buffer.from(`data: ${jsonEncoder(operation.response)(value)}\n\n`)
}
