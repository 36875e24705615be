/** A subscriber that takes as many messages as the test says before it asks to wait. */
import type { Sink } from '../../src/contract/handlers.ts'
import { SharedMessage, type SharedMessages } from '../../src/contract/shared-message.ts'

export class NarrowSink implements Sink<string> {
  readonly sent: string[] = []
  /** How many messages each call brought. */
  readonly calls: number[] = []
  /** So many more find room. */
  room: number
  closed = false
  error: unknown
  #drain: () => void = () => undefined

  constructor(room = 0) {
    this.room = room
  }

  get writable(): boolean {
    return this.room > 0
  }

  ready(): void {}

  send(message: string | SharedMessage<string>): boolean {
    this.calls.push(1)
    this.take(message)
    return this.writable
  }

  end(error?: unknown): void {
    this.closed = true
    this.error = error
  }

  onDrain(listener: () => void): void {
    this.#drain = listener
  }

  onClose(): void {}

  drain(room: number): void {
    this.room = room
    this.#drain()
  }

  protected take(message: string | SharedMessage<string>): void {
    this.sent.push(message instanceof SharedMessage ? message.value : message)
    this.room--
  }
}

/** One that can be sent several at once. */
export class TogetherSink extends NarrowSink {
  sendTogether(messages: SharedMessages<string>): boolean {
    this.calls.push(messages.each.length)
    for (const message of messages.each) this.take(message)
    return true
  }
}

/** One that cannot be sent several at once, since they are too long. */
export class RefusingSink extends NarrowSink {
  sendTogether(): boolean {
    return false
  }
}
