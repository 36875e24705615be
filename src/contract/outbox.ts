/** What stands between a source of events and one subscriber: a bounded queue with a policy for the slow. */
import { ServiceError } from './errors.ts'
import type { Sink } from './handlers.ts'
import type { SharedMessage, SharedMessages } from './shared-message.ts'

/** What happens when a subscriber reads slower than events come. */
export type OutboxPolicy<M> =
  /** Keeps only the newest message (telemetry). */
  | { readonly kind: 'latest' }
  /** Keeps up to `limit`; one more ends the stream with RESOURCE_EXHAUSTED (node and pipeline events). */
  | { readonly kind: 'bounded'; readonly limit: number }
  /** Keeps up to `limit`, drops what comes beyond, then says how many were dropped before it goes on (logs). */
  | { readonly kind: 'counted'; readonly limit: number; readonly dropped: (count: number) => M }

/**
 * The only way a service sends events to a sink that may be slow: memory per subscriber is bounded by the policy. Costs
 * nothing but itself while the subscriber keeps up. Takes the sink's `onDrain`.
 */
export class Outbox<M> {
  readonly #sink: Sink<M>
  readonly #policy: OutboxPolicy<M>
  #queue: (M | SharedMessage<M>)[] | undefined
  #dropped = 0
  #draining = false
  #ending = false
  #finish: (() => void) | undefined

  constructor(sink: Sink<M>, policy: OutboxPolicy<M>) {
    this.#sink = sink
    this.#policy = policy
  }

  /** Messages waiting for the subscriber. */
  get waiting(): number {
    return this.#queue?.length ?? 0
  }

  /** Sends `message` now, or keeps it as the policy says. */
  push(message: M | SharedMessage<M>): void {
    const sink = this.#sink
    if (sink.closed || this.#ending) return
    if (this.#queue === undefined && sink.writable) {
      sink.send(message)
      return
    }
    const policy = this.#policy
    const queue = this.#wait()
    if (policy.kind === 'latest') {
      queue[0] = message
    } else if (queue.length < policy.limit && this.#dropped === 0) {
      queue.push(message)
    } else if (policy.kind === 'counted') {
      this.#dropped++
    } else {
      this.#queue = undefined
      this.#ending = true
      sink.end(
        new ServiceError(
          'RESOURCE_EXHAUSTED',
          `the subscriber reads too slowly: ${policy.limit} events are waiting; open the stream again and read faster`,
        ),
      )
    }
  }

  /** `push` for each of `messages`, in order. */
  pushTogether(messages: SharedMessages<M>): void {
    const sink = this.#sink
    if (
      sink.sendTogether !== undefined &&
      this.#queue === undefined &&
      sink.writable &&
      !sink.closed &&
      !this.#ending &&
      sink.sendTogether(messages)
    ) {
      return
    }
    for (const message of messages.each) this.push(message)
  }

  /** Ends the stream once what waits has been sent. */
  end(error?: unknown): void {
    if (this.#ending) return
    if (this.#queue === undefined) {
      this.#ending = true
      this.#sink.end(error)
      return
    }
    this.#ending = true
    this.#finish = () => this.#sink.end(error)
  }

  #wait(): (M | SharedMessage<M>)[] {
    if (this.#queue !== undefined) return this.#queue
    this.#queue = []
    if (!this.#draining) {
      this.#draining = true
      this.#sink.onDrain(() => this.#drain())
    }
    return this.#queue
  }

  #drain(): void {
    const queue = this.#queue
    if (queue === undefined) return
    let sent = 0
    while (sent < queue.length && this.#sink.writable && !this.#sink.closed) {
      this.#sink.send(queue[sent++] as M | SharedMessage<M>)
    }
    queue.splice(0, sent)
    if (queue.length > 0 || !this.#sink.writable) return
    if (this.#dropped > 0 && this.#policy.kind === 'counted') {
      const count = this.#dropped
      this.#dropped = 0
      this.#sink.send(this.#policy.dropped(count))
    }
    this.#queue = undefined
    this.#finish?.()
  }
}
