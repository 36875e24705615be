/** One timer that keeps every quiet event stream alive. */

/** A stream that can say that it is still there. */
export interface Quiet {
  keepAlive(): void
}

/**
 * Calls `keepAlive` of each stream that has been silent for `silenceMs`, rechecking all with one timer. The streams are kept in the order
 * of their last word, so a tick looks only at those that are due.
 */
export class KeepAlive {
  readonly #silenceMs: number
  /** Time of the last word by stream, oldest first. */
  readonly #lastWords = new Map<Quiet, number>()
  #timer: NodeJS.Timeout | undefined

  /** `silenceMs`: milliseconds of silence after which a stream speaks. */
  constructor(silenceMs: number) {
    this.#silenceMs = silenceMs
  }

  /** The stream opened or just sent something. */
  spoke(stream: Quiet): void {
    this.#lastWords.delete(stream)
    this.#lastWords.set(stream, performance.now())
    if (this.#timer !== undefined) return
    this.#timer = setInterval(() => this.#tick(), Math.min(1000, this.#silenceMs / 3))
    this.#timer.unref()
  }

  /** The stream is over. */
  forget(stream: Quiet): void {
    this.#lastWords.delete(stream)
    if (this.#lastWords.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
  }

  #tick(): void {
    const due = performance.now() - this.#silenceMs
    const quiet: Quiet[] = []
    for (const [stream, last] of this.#lastWords) {
      if (last > due) break
      quiet.push(stream)
    }
    for (const stream of quiet) {
      this.spoke(stream)
      stream.keepAlive()
    }
  }
}
