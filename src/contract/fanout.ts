/** One source of events, many subscribers: every event is wrapped once, so each wire format encodes it once. */
import type { Sink } from './handlers.ts'
import { Outbox, type OutboxPolicy } from './outbox.ts'
import { SharedMessage, SharedMessages } from './shared-message.ts'

/** Messages that are sent at once, at most: what a subscriber that turns out to be slow has taken beyond its policy; shared-message.ts bounds their bytes. */
const MAX_TOGETHER = 256

export class Fanout<M> {
  readonly #policy: OutboxPolicy<M>
  readonly #outboxes = new Set<Outbox<M>>()
  #idle: (() => void) | undefined
  /** Why the streams have ended, once they have. */
  #end: { readonly error: unknown } | undefined

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

  /** Adds a subscriber for what is published from now on; `first` goes to it alone, before that. It leaves when its stream is over, which it is at once where all have ended. */
  add(sink: Sink<M>, first?: M | SharedMessage<M>): void {
    if (sink.closed) return
    const outbox = new Outbox(sink, this.#policy)
    this.#outboxes.add(outbox)
    if (first !== undefined) outbox.push(first)
    sink.onClose(() => {
      if (this.#outboxes.delete(outbox) && this.#outboxes.size === 0) this.#idle?.()
    })
    if (this.#end !== undefined) outbox.end(this.#end.error)
  }

  /** Sends `message` to every subscriber; it must not change afterwards. */
  publish(message: M | SharedMessage<M>): void {
    if (this.#outboxes.size === 0) return
    const shared = message instanceof SharedMessage ? message : new SharedMessage(message)
    for (const outbox of this.#outboxes) outbox.push(shared)
  }

  /** `publish` for each of `messages`, in order; subscribers that keep up get them at once. */
  publishTogether(messages: readonly M[]): void {
    if (this.#outboxes.size === 0 || messages.length === 0) return
    if (messages.length === 1) {
      this.publish(messages[0] as M)
      return
    }
    for (let from = 0; from < messages.length; from += MAX_TOGETHER) {
      const shared = new SharedMessages(messages.slice(from, from + MAX_TOGETHER))
      for (const outbox of this.#outboxes) outbox.pushTogether(shared)
    }
  }

  /** Ends every subscriber's stream once what waits for it was sent, also of those that are still to come. */
  end(error?: unknown): void {
    this.#end ??= { error }
    for (const outbox of this.#outboxes) outbox.end(error)
  }
}
