/** One timer that keeps every quiet event stream alive. */

/** A stream that can say that it is still there. */
export interface Quiet {
  keepAlive(): void
  /** The tick at which it spoke last; set by `KeepAlive.spoke`. */
  lastWord: number
}

/**
 * Calls `keepAlive` of each stream that has been silent for `silenceMs`. Time is counted in ticks (of a second, or a third of `silenceMs` when that
 * is less), so that a word costs a stream nothing but a note: a small integer lies in the stream itself, where a time would be an object in memory of
 * its own. A stream may be reminded up to a tick early.
 */
export class KeepAlive {
  readonly #tickMs: number
  /** Ticks of silence after which a stream speaks. */
  readonly #silence: number
  readonly #streams = new Set<Quiet>()
  #ticks = 0
  #timer: NodeJS.Timeout | undefined

  /** `silenceMs`: milliseconds of silence after which a stream speaks. */
  constructor(silenceMs: number) {
    this.#tickMs = Math.min(1000, silenceMs / 3)
    this.#silence = Math.round(silenceMs / this.#tickMs)
  }

  /** The stream opened, which counts as a word. */
  watch(stream: Quiet): void {
    if (this.#timer === undefined) {
      this.#timer = setInterval(() => this.#tick(), this.#tickMs)
      this.#timer.unref()
    }
    stream.lastWord = this.#ticks
    this.#streams.add(stream)
  }

  /** The stream just sent something. */
  spoke(stream: Quiet): void {
    stream.lastWord = this.#ticks
  }

  /** The stream is over. */
  forget(stream: Quiet): void {
    if (!this.#streams.delete(stream) || this.#streams.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #tick(): void {
    this.#ticks++
    const due = this.#ticks - this.#silence
    // A stream that is lost by its own word leaves the set, which takes that.
    for (const stream of this.#streams) {
      if (stream.lastWord > due) continue
      stream.lastWord = this.#ticks
      stream.keepAlive()
    }
  }
}
