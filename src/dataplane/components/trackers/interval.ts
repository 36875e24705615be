/** Intervals of a run's clock, one after the other, at the end of each of which something is measured. */
import type { RunClock } from '../../engine/clock.ts'
import type { Timer } from '../../engine/timers.ts'

export class Interval {
  /** When the present interval began, ns on the run's clock. */
  start: number
  private readonly timer: Timer
  private length: number

  /** The first begins now; `length` in ns. */
  constructor(context: { readonly clock: RunClock; timer(fire: () => void): Timer }, length: number, end: () => void) {
    const { clock } = context
    this.length = length
    this.start = clock.now
    this.timer = context.timer(() => {
      end()
      this.start = clock.now
      this.timer.at(this.start + this.length)
    })
    this.timer.at(this.start + length)
  }

  /** Takes effect at once: the present interval ends when the new one would have. */
  setLength(length: number): void {
    this.length = length
    this.timer.at(this.start + length)
  }

  stop(): void {
    this.timer.cancel()
  }
}
