/** A subscriber for tests: keeps what a stream sends, and reads as slowly as the test says. */
import type { ServiceError } from '../../src/contract/errors.ts'
import type { Sink } from '../../src/contract/handlers.ts'
import { SharedMessage } from '../../src/contract/shared-message.ts'

/** Keeps what a stream sends. It finds room for all of it; `stuck`: for none after the first message, until it is drained. */
export class CollectingSink<M> implements Sink<M> {
  readonly messages: M[] = []
  /** Those of them that came encoded once for all subscribers. */
  readonly shared: SharedMessage<M>[] = []
  isReady = false
  closed = false
  error: ServiceError | undefined
  writable = true
  readonly #stuck: boolean
  #taken = 0
  #drain: (() => void) | undefined
  #closeListeners: (() => void)[] = []
  #waiting: (() => void)[] = []

  constructor({ stuck = false } = {}) {
    this.#stuck = stuck
  }

  ready(): void {
    this.isReady = true
  }

  send(message: M | SharedMessage<M>): boolean {
    if (this.closed) return false
    this.isReady = true
    if (message instanceof SharedMessage) this.shared.push(message)
    this.messages.push(message instanceof SharedMessage ? message.value : message)
    if (this.#stuck) this.writable = false
    this.#wake()
    return this.writable
  }

  end(error?: unknown): void {
    if (this.closed) return
    this.closed = true
    this.writable = false
    this.error = error as ServiceError | undefined
    for (const listener of this.#closeListeners) listener()
    this.#wake()
  }

  onDrain(listener: () => void): void {
    this.#drain = listener
  }

  /** Finds room again. */
  drain(): void {
    this.writable = true
    this.#drain?.()
  }

  onClose(listener: () => void): void {
    if (this.closed) listener()
    else this.#closeListeners.push(listener)
  }

  /** The next message that nobody has taken; throws what ended the stream. */
  async next(): Promise<M> {
    while (this.#taken >= this.messages.length) {
      if (this.closed) throw this.error ?? new Error('the stream ended')
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    return this.messages[this.#taken++] as M
  }

  #wake(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve()
  }
}
