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
  /** What has arrived after it has come into this breath, and nothing has held it yet: no earlier one has had such a packet. */
  readonly waitedFrom: number
  /** `now`, as the time of arrival of a packet that is made in this breath. */
  stamp(): number
}

/**
 * `time` as packets carry it, in whole nanoseconds, up at both ends: the virtual clock stands at fractions of one, and a delay must not come out longer than it
 * was, which of one that is as long as it may be would make a late packet.
 */
export const asCarried = (time: number): number => Math.ceil(time)

/** CLOCK_MONOTONIC from the moment of construction. */
export class MonotonicClock implements RunClock {
  now = 0
  waitedFrom = 0
  /**
   * The latest arrival of a packet that some breath has had. The time at which it asked would not do: what the kernel has taken in reaches the socket
   * later, by as long as asking takes.
   */
  private latest = 0
  readonly epoch: number
  /** Zero of this clock on `native.now()`. */
  readonly origin: number
  /** What `native.now()` said last. */
  private readonly time = new Float64Array(1)

  constructor() {
    this.origin = native.now()
    // What `performance` says goes on from when the thread was made: the system's time may have been set since.
    this.epoch = native.unixTime()
  }

  /** Takes the time; what is received from now on has come into this breath. */
  tick(): number {
    this.waitedFrom = this.latest
    native.readClock(this.time)
    this.now = this.time[0] - this.origin
    return this.now
  }

  /** Timers fire: what has come so far a component may have held until now, in a breath that is late for as long as it was to. */
  beginTimers(): void {
    this.waitedFrom = this.latest
  }

  /** A packet was received that has arrived at `time`, on this clock. */
  arrived(time: number): void {
    if (time > this.latest) this.latest = time
    if (time > this.now) this.now = time
  }

  stamp(): number {
    this.arrived(this.now)
    return this.now
  }
}

/** Stands still until it is told to move. */
export class VirtualClock implements RunClock {
  now = 0
  /** Packets arrive when they are taken. */
  readonly waitedFrom = Number.POSITIVE_INFINITY
  readonly epoch = 0

  stamp(): number {
    return this.now
  }

  /** Moves to `time`, never backwards. */
  advanceTo(time: number): void {
    if (time > this.now) this.now = time
  }
}
