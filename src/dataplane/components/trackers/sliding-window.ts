/** Sums what happened in a window of time that slides in steps. */

/** The window is so many buckets of time, all of them over: the present one counts once it is. */
export class SlidingWindow {
  private readonly sums: Float64Array
  private readonly width: number
  private readonly start: number
  /** Number of the bucket at hand since the start, and what it has. */
  private current = 0
  private open = 0
  private total = 0

  /** `length` of the window in ns; it begins at `start`, ns on the run's clock. */
  constructor(length: number, buckets: number, start: number) {
    this.sums = new Float64Array(buckets)
    this.width = length / buckets
    this.start = start
  }

  /** `amount` happened at `now`, which never goes back. */
  add(amount: number, now: number): void {
    this.advance(now)
    this.open += amount
  }

  /** The amount per ns in the window as of `now`; while less time has passed since the start, in that. 0 before the first bucket is over. */
  rate(now: number): number {
    this.advance(now)
    return this.current === 0 ? 0 : this.total / (Math.min(this.current, this.sums.length) * this.width)
  }

  /** Whether nothing of the window as of `now` has happened, nor of the present bucket. */
  isEmpty(now: number): boolean {
    this.advance(now)
    return this.total === 0 && this.open === 0
  }

  private advance(now: number): void {
    const { sums } = this
    const bucket = Math.floor((now - this.start) / this.width)
    const passed = bucket - this.current
    if (passed <= 0) return
    this.close(this.open)
    this.open = 0
    if (passed > sums.length) {
      sums.fill(0)
      this.total = 0
      this.current = bucket
    } else while (this.current < bucket) this.close(0)
  }

  private close(amount: number): void {
    const { sums } = this
    const at = this.current++ % sums.length
    this.total += amount - sums[at]
    sums[at] = amount
  }
}
