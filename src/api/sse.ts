/** Server-sent events: a server-streaming operation as an event stream over one HTTP response. */
import type { HttpResponse } from 'uWebSockets.js'
import { SharedMessage } from '../services/shared-message.ts'
import type { Call } from './call.ts'
import type { Operation } from './contract.ts'
import { errorBody } from './errors.ts'
import { sendError } from './http-response.ts'
import { jsonEncoder } from './json-encode.ts'
import type { KeepAlive } from './keep-alive.ts'
import type { Router } from './router.ts'
import { StreamSink } from './sink.ts'

const KEEP_ALIVE = Buffer.from(': keep-alive\n\n')

/** Writes `: ready`, then each message as a `data:` line; a failure after that as an event of type error, then ends. */
export class SseSink extends StreamSink {
  readonly #response: HttpResponse
  readonly #operation: Operation
  readonly #router: Router
  readonly #keepAlive: KeepAlive
  #isDraining = false
  /** Kept by #keepAlive. */
  lastWord = 0

  constructor(response: HttpResponse, operation: Operation, router: Router, keepAlive: KeepAlive, call: Call) {
    super(call)
    this.#response = response
    this.#operation = operation
    this.#router = router
    this.#keepAlive = keepAlive
  }

  protected override open(): void {
    const response = this.#response
    response.cork(() => {
      response.writeStatus('200 OK')
      response.writeHeader('content-type', 'text/event-stream')
      response.writeHeader('cache-control', 'no-store')
      // Proxies such as nginx buffer otherwise.
      response.writeHeader('x-accel-buffering', 'no')
      response.write(': ready\n\n')
    })
    this.#keepAlive.watch(this)
  }

  protected override write(message: unknown): number {
    const encode = (value: unknown): Uint8Array => eventBytes(this.#operation, value)
    const bytes = message instanceof SharedMessage ? message.encoded('sse', encode) : encode(message)
    this.#write(bytes)
    return bytes.length
  }

  protected override finish(error: unknown, isReady: boolean): void {
    const response = this.#response
    if (error === undefined) {
      response.cork(() => response.end())
    } else {
      const failure = this.#router.failure(error, this.#operation)
      if (isReady) {
        response.cork(() => {
          response.write(`event: error\ndata: ${errorBody(failure)}\n\n`)
          response.end()
        })
      } else sendError(response, failure)
    }
    this.#keepAlive.forget(this)
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
    const response = this.#response
    let hasRoom = true
    response.cork(() => {
      hasRoom = response.write(bytes)
    })
    this.#keepAlive.spoke(this)
    if (hasRoom) return
    this.writable = false
    if (this.#isDraining) return
    this.#isDraining = true
    response.onWritable(() => {
      this.drained()
      return true
    })
  }
}

function eventBytes(operation: Operation, value: unknown): Uint8Array {
  return Buffer.from(`data: ${jsonEncoder(operation.response)(value)}\n\n`)
}
