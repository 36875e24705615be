/** What a carrier with a limit may send now: it fills at the carrier's pace, so that a pause or a late timer is caught up with, but not a long one. */

/** What may go at once after a pause, ns of the pace; and bytes at least. */
const BURST_NS = 10e6
const MIN_BURST = 3_000

export class TokenBucket {
  /** Bytes that may go now; 0 or below: none. */
  bytes = MIN_BURST
  private filledAt = 0

  /** Brings `bytes` up to date; `pace` in bytes per ns, Infinity: it stays as it is. */
  fill(pace: number, now: number): void {
    if (pace !== Number.POSITIVE_INFINITY) {
      const most = Math.max(pace * BURST_NS, MIN_BURST)
      this.bytes = Math.min(most, this.bytes + (now - this.filledAt) * pace)
    }
    this.filledAt = now
  }

  /** A packet of `bytes` bytes goes. */
  spend(bytes: number): void {
    this.bytes -= bytes
  }

  /** When something may go again, ns; meaningful while nothing may. */
  nextAt(pace: number): number {
    return this.filledAt + (1 - this.bytes) / pace
  }
}
