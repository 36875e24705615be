/** The engine's clock, as a server knows it by the time stamps of its own writes. */
import type { EngineTime } from './entries.ts'

/**
 * A write gets its time stamp between the moments at which it was sent and came back, so that each bounds how far the two clocks are apart; the estimate is moved
 * only as far as that demands. A stamp that comes late so changes nothing, and one of a clock that was set does.
 */
export class EngineClock {
  /** How far it is ahead of this server's monotonic clock, milliseconds; undefined before the first stamp. */
  #ahead: number | undefined

  /** `stamp` is that of a write which was sent at `sentAt` and came back at `now`, by this server's monotonic clock; milliseconds. */
  take(stamp: EngineTime, sentAt: number, now: number): void {
    const least = stamp - now
    // What is below a millisecond is cut off.
    const most = stamp + 1 - sentAt
    this.#ahead = Math.min(Math.max(this.#ahead ?? least, least), most)
  }

  /** What it says at `now`, as far as is known: not more than it does; 0 before the first stamp. */
  at(now: number): EngineTime {
    return this.#ahead === undefined ? 0 : Math.floor(now + this.#ahead)
  }
}
