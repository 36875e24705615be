/** How many keys may be derived for salts not heard before: deriving one costs time, and anybody can send a new salt. */
import type { RunClock } from '../../engine/clock.ts'
import { NS_PER_S } from '../../engine/clock.ts'

/** Keys derived for unknown salts: so many at once, then so many a second, whatever arrives. */
export const MAX_TRIALS_AT_ONCE = 64
export const MAX_TRIALS_PER_SECOND = 1000

export class Trials {
  private readonly clock: RunClock
  private left = MAX_TRIALS_AT_ONCE
  private refilled: number

  constructor(clock: RunClock) {
    this.clock = clock
    this.refilled = clock.now
  }

  /** Whether there may be one now, which is counted. */
  take(): boolean {
    const { now } = this.clock
    const earned = ((now - this.refilled) / NS_PER_S) * MAX_TRIALS_PER_SECOND
    this.left = Math.min(MAX_TRIALS_AT_ONCE, this.left + earned)
    this.refilled = now
    if (this.left < 1) return false
    this.left--
    return true
  }
}
