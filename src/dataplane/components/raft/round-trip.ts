/** How long the way there and back is, in ns: smoothed as in RFC 6298, and the least of the last seconds. */

/** What is taken for the round trip while nothing is known, ns. */
const FIRST_RTT_NS = 200e6
/** The least one counts for this long at least, and twice that at most (BBR's draft: 10 s). */
const LEAST_NS = 10e9
/** A way there and back that is this much longer than the least has met a queue, ns. */
const MIN_QUEUE_NS = 12e6

export class RoundTrip {
  /** Mean with a weight of 1/8 for each newest; 0 while nothing is known. */
  smoothed = 0
  /** The newest one. */
  latest = 0
  private current = Number.POSITIVE_INFINITY
  private before = Number.POSITIVE_INFINITY
  private since = 0

  get known(): boolean {
    return this.smoothed > 0
  }

  /** What to reckon with when deciding that something is overdue: smoothed, or the newest where it is more. */
  get cautious(): number {
    return this.known ? Math.max(this.smoothed, this.latest) : FIRST_RTT_NS
  }

  /** The least of the last seconds; as long as nothing is known what stands for it. */
  get least(): number {
    return this.known ? Math.min(this.current, this.before) : FIRST_RTT_NS
  }

  /** Whether one that takes `ns` is longer than what a path without a queue varies by. */
  isQueued(ns: number): boolean {
    return ns > this.least + Math.max(this.least / 8, MIN_QUEUE_NS)
  }

  sample(ns: number, now: number): void {
    const rtt = Math.max(ns, 1)
    this.latest = rtt
    this.smoothed = this.known ? this.smoothed + (rtt - this.smoothed) / 8 : rtt
    if (now - this.since > LEAST_NS) {
      this.before = this.current
      this.current = rtt
      this.since = now
    } else if (rtt < this.current) this.current = rtt
  }
}
