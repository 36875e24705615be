/** The clock of a run: nanoseconds since it began, read once a breath and with every receive; real or virtual. */
import { native } from '../native/native.ts'

export const NS_PER_MS = 1e6
export const NS_PER_S = 1e9

export interface RunClock {
  /**
   * Nanoseconds since the run began, as of the start of this breath or the last receive in it, so never before the arrival of
   * a packet at hand; a double, exact for 104 days.
   */
  readonly now: number
  /** Nanoseconds since the Unix epoch at `now` = 0; the virtual clock says 0. */
  readonly epoch: number
  /** What arrived after it came while this breath waited, or since: no earlier breath has seen it. */
  readonly waitedFrom: number
}

/** CLOCK_MONOTONIC from the moment of construction. */
export class MonotonicClock implements RunClock {
  now = 0
  waitedFrom = 0
  /** When a breath last took what had arrived. */
  private taken = 0
  readonly epoch: number
  /** Zero of this clock on `native.now()`. */
  readonly origin: number
  /** What `native.now()` said last. */
  private readonly time = new Float64Array(1)

  constructor() {
    this.origin = native.now()
    // Date.now() is cut to whole milliseconds, too coarse to compare the clocks of two runs.
    this.epoch = (performance.timeOrigin + performance.now()) * 1e6
  }

  /** Takes the time; this breath takes what has arrived. */
  tick(): number {
    this.waitedFrom = this.taken
    native.readClock(this.time)
    this.now = this.time[0] - this.origin
    this.taken = this.now
    return this.now
  }

  /** Takes the time; what arrives is left to a later breath. */
  look(): number {
    this.waitedFrom = this.now
    native.readClock(this.time)
    this.now = this.time[0] - this.origin
    return this.now
  }

  /** A packet has arrived at `time`, on this clock. */
  arrived(time: number): void {
    if (time <= this.now) return
    this.now = time
    this.taken = time
  }
}

/** Stands still until it is told to move. */
export class VirtualClock implements RunClock {
  now = 0
  /** Packets arrive when they are taken. */
  readonly waitedFrom = Number.POSITIVE_INFINITY
  readonly epoch = 0

  /** Moves to `time`, never backwards. */
  advanceTo(time: number): void {
    if (time > this.now) this.now = time
  }
}
