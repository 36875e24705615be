/** Changes told to many subscribers, each of which starts with the state as it is: no change before that, none missed, none twice. */
import { Fanout } from './fanout.ts'
import type { Sink } from './handlers.ts'
import type { OutboxPolicy } from './outbox.ts'

export class Announcements<M> {
  readonly #fanout: Fanout<M>
  #waiting: M[] = []
  #told: Promise<void> = Promise.resolve()

  constructor(policy: OutboxPolicy<M>) {
    this.#fanout = new Fanout(policy)
  }

  /**
   * Tells a change of the state that has just been made. It goes out after this turn, in order, so that it does not overtake the answer to
   * the call that made the change.
   */
  announce(message: M): void {
    if (this.#waiting.push(message) > 1) return
    this.#told = new Promise((resolve) => {
      setImmediate(() => {
        const messages = this.#waiting
        this.#waiting = []
        this.#fanout.publishTogether(messages)
        resolve()
      })
    })
  }

  /** Adds a subscriber: `first` describes the state at this moment and goes to it alone, if there is one; every later change follows. */
  async add(sink: Sink<M>, first?: () => M): Promise<void> {
    // What the state shows already must not be told after it.
    while (this.#waiting.length > 0) await this.#told
    this.#fanout.add(sink, first?.())
  }

  /** Ends every subscriber's stream once what waits for it was sent. */
  end(error?: unknown): void {
    this.#fanout.end(error)
  }
}
