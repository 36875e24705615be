/** One timer that keeps every quiet event stream alive. */

/** A stream that can say that it is still there. */
export interface Quiet {
  keepAlive(): void
  /** When it spoke last, by the keep-alive's own clock; set by `KeepAlive.spoke`. */
  lastWord: number
}

/**
 * Calls `keepAlive` of each stream that has been silent for `silenceMs`. Time is read once a tick (a second, or a third of `silenceMs` when that
 * is less), so that a word costs a stream nothing but a note; a stream may be reminded up to a tick early.
 */
export class KeepAlive {
  readonly #silenceMs: number
  readonly #streams = new Set<Quiet>()
  #now = 0
  #timer: NodeJS.Timeout | undefined

  /** `silenceMs`: milliseconds of silence after which a stream speaks. */
  constructor(silenceMs: number) {
    this.#silenceMs = silenceMs
  }

  /** The stream opened, which counts as a word. */
  watch(stream: Quiet): void {
    if (this.#timer === undefined) {
      this.#now = performance.now()
      this.#timer = setInterval(() => this.#tick(), Math.min(1000, this.#silenceMs / 3))
      this.#timer.unref()
    }
    stream.lastWord = this.#now
    this.#streams.add(stream)
  }

  /** The stream just sent something. */
  spoke(stream: Quiet): void {
    stream.lastWord = this.#now
  }

  /** The stream is over. */
  forget(stream: Quiet): void {
    if (!this.#streams.delete(stream) || this.#streams.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #tick(): void {
    this.#now = performance.now()
    const due = this.#now - this.#silenceMs
    // A stream that is lost by its own word leaves the set, which takes that.
    for (const stream of this.#streams) {
      if (stream.lastWord > due) continue
      stream.lastWord = this.#now
      stream.keepAlive()
    }
  }
}
