/** One source of events, many subscribers: every event is wrapped once, so each wire format encodes it once. */
import type { Sink } from './handlers.ts'
import { Outbox, type OutboxPolicy } from './outbox.ts'
import { SharedMessage } from './shared-message.ts'

export class Fanout<M> {
  readonly #policy: OutboxPolicy<M>
  readonly #outboxes = new Set<Outbox<M>>()
  #idle: (() => void) | undefined

  /** `policy` is what happens to a subscriber that reads slower than events come. */
  constructor(policy: OutboxPolicy<M>) {
    this.#policy = policy
  }

  get size(): number {
    return this.#outboxes.size
  }

  /** Sets the one function called when the last subscriber has left. */
  onIdle(listener: () => void): void {
    this.#idle = listener
  }

  /** Adds a subscriber for what is published from now on; `first` goes to it alone, before that. It leaves when its stream is over. */
  add(sink: Sink<M>, first?: M | SharedMessage<M>): void {
    if (sink.closed) return
    const outbox = new Outbox(sink, this.#policy)
    this.#outboxes.add(outbox)
    if (first !== undefined) outbox.push(first)
    sink.onClose(() => {
      if (this.#outboxes.delete(outbox) && this.#outboxes.size === 0) this.#idle?.()
    })
  }

  /** Sends `message` to every subscriber; it must not change afterwards. */
  publish(message: M | SharedMessage<M>): void {
    if (this.#outboxes.size === 0) return
    const shared = message instanceof SharedMessage ? message : new SharedMessage(message)
    for (const outbox of this.#outboxes) outbox.push(shared)
  }

  /** Ends every subscriber's stream once what waits for it was sent. */
  end(error?: unknown): void {
    for (const outbox of this.#outboxes) outbox.end(error)
  }
}
