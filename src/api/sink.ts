/** The transport-free half of every stream a listener serves: its states, its listeners, its last line against growth. */
import { ServiceError } from '../contract/errors.ts'
import type { Sink } from '../contract/handlers.ts'
import type { Call } from './call.ts'

/** Bytes that may be sent to a full transport before the stream ends; Outbox never comes near. */
const MAX_OVERRUN_BYTES = 4 * 1024 * 1024

/** A stream as its listener ends it, for its own reasons. */
export interface OpenStream {
  /** Name of the token its caller proved. */
  readonly identity: string | undefined
  end(error: ServiceError): void
}

/**
 * Who closes whom: `end` (service or listener) writes the ending and then counts as closed; `lose` (the peer is gone) writes nothing.
 * Either way the close listeners run once and the call's signal aborts.
 */
export abstract class StreamSink implements Sink<unknown>, OpenStream {
  readonly #call: Call
  #isReady = false
  #closed = false
  #overrun = 0
  #drain: (() => void) | undefined
  #whenClosed: (() => void) | undefined
  readonly #streams: Set<OpenStream> | undefined
  writable = true

  /** `streams`: those of its listener that are open, of which it is one until it is closed. */
  constructor(call: Call, streams?: Set<OpenStream>) {
    this.#call = call
    this.#streams = streams
    streams?.add(this)
  }

  /** Tells the peer that the stream stands. */
  protected abstract open(): void
  /** Sends one message, sets `writable` to false when the transport is full; returns the bytes sent. */
  protected abstract write(message: unknown): number
  /** Ends the stream towards the peer; `isReady` is false when the peer was told nothing yet. */
  protected abstract finish(error: unknown, isReady: boolean): void

  get closed(): boolean {
    return this.#closed
  }

  get identity(): string | undefined {
    return this.#call.identity
  }

  ready(): void {
    if (this.#closed || this.#isReady) return
    this.#isReady = true
    this.open()
  }

  send(message: unknown): boolean {
    if (this.#closed) return false
    this.ready()
    const wasFull = !this.writable
    const bytes = this.write(message)
    this.#overrun = wasFull ? this.#overrun + bytes : 0
    if (this.#overrun > MAX_OVERRUN_BYTES) {
      this.end(
        new ServiceError(
          'RESOURCE_EXHAUSTED',
          'the subscriber reads too slowly; open the stream again and read faster',
        ),
      )
    }
    return this.writable
  }

  end(error?: unknown): void {
    if (this.#closed) return
    if (error === undefined) this.ready()
    this.#closed = true
    this.finish(error, this.#isReady)
    this.#close()
  }

  onDrain(listener: () => void): void {
    this.#drain = listener
  }

  onClose(listener: () => void): void {
    if (this.#closed) {
      listener()
      return
    }
    // Few streams have a second listener: a list would cost each of them more.
    const first = this.#whenClosed
    this.#whenClosed =
      first === undefined
        ? listener
        : () => {
            first()
            listener()
          }
  }

  /** The transport has room again. */
  drained(): void {
    if (this.#closed) return
    this.writable = true
    this.#drain?.()
  }

  /** The peer is gone. */
  lose(): void {
    if (this.#closed) return
    this.#closed = true
    this.#close()
  }

  #close(): void {
    this.writable = false
    this.#drain = undefined
    this.#streams?.delete(this)
    const whenClosed = this.#whenClosed
    this.#whenClosed = undefined
    whenClosed?.()
    this.#call.abort()
  }
}

/** Ends those of `streams` whose callers proved the token `identity`, since it was revoked. */
export function endStreamsOf(streams: Iterable<OpenStream>, identity: string): void {
  for (const stream of [...streams]) {
    if (stream.identity === identity) stream.end(revoked())
  }
}

export const revoked = (): ServiceError => new ServiceError('UNAUTHENTICATED', 'the token was revoked')

export const shuttingDown = (): ServiceError => new ServiceError('UNAVAILABLE', 'the node is shutting down')
