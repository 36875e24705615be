/** The probes of one carrier that wait for their answer. */

/** Probes that may still be answered. */
const TOKENS = 16

export class Probes {
  /** When the last one was sent, ns. */
  lastAt = Number.NEGATIVE_INFINITY
  /** How many have gone since anything was heard of what was sent. */
  unanswered = 0
  /** Of the probe that `answer` found: when it was sent, and the carrier sequence that came next then. */
  sentAt = 0
  bound = 0
  private readonly tokens = new Int32Array(TOKENS)
  private readonly times = new Float64Array(TOKENS).fill(Number.NEGATIVE_INFINITY)
  private readonly bounds = new Int32Array(TOKENS)
  private next = 0

  /** A probe with `token` goes at `now`; `bound` is the carrier sequence of the next packet. */
  add(token: number, bound: number, now: number): void {
    this.tokens[this.next] = token
    this.times[this.next] = now
    this.bounds[this.next] = bound
    this.next = (this.next + 1) % TOKENS
    this.lastAt = now
    this.unanswered++
  }

  /** Takes the answer with `token`; false: no probe had it, or it has had its answer. */
  answer(token: number): boolean {
    for (let i = 0; i < TOKENS; i++) {
      if (this.tokens[i] !== token || this.times[i] === Number.NEGATIVE_INFINITY) continue
      this.sentAt = this.times[i]
      this.bound = this.bounds[i]
      this.times[i] = Number.NEGATIVE_INFINITY
      return true
    }
    return false
  }
}
