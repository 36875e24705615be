/** Bursts of loss at intervals of time. */
import type { RunClock } from '../../engine/clock.ts'
import { GAUGE_NS, type Timer } from '../../engine/timers.ts'
import type { LossModel } from './loss-models.ts'
import type { PhasesContext } from './phases.ts'

export interface TimedBurstsParameters {
  /** Before each burst, ns, above 0. */
  readonly interval: number
  /** The burst ends with this many packets lost; Infinity: by time alone. */
  readonly packets: number
  /** The burst ends this many ns after its start; Infinity: with its packets alone. */
  readonly duration: number
}

/** An interval without loss, from the first breath of the run, then a burst that loses every packet, then the interval again. */
export class TimedBursts implements LossModel {
  private readonly clock: RunClock
  /** Where no packet comes the metrics are to say all the same whether there is a burst. */
  private readonly timer: Timer
  private parameters: TimedBurstsParameters
  private begun = false
  private inBurst = false
  /** When the present interval or burst began, ns. */
  private since = 0
  /** Packets lost of the present burst. */
  private lost = 0

  constructor(context: PhasesContext, parameters: TimedBurstsParameters) {
    this.clock = context.clock
    this.parameters = parameters
    this.timer = context.timer(() => {
      this.follow()
      this.arm()
    })
    this.timer.at(this.clock.now)
  }

  private arm(): void {
    const { since, length, clock, timer } = this
    if (length < Number.POSITIVE_INFINITY) timer.at(Math.max(since + length, clock.now + GAUGE_NS))
  }

  /** How long an interval, or a burst, lasts by time, ns. */
  private get length(): number {
    return this.inBurst ? this.parameters.duration : this.parameters.interval
  }

  private follow(): void {
    const { now } = this.clock
    if (!this.begun) {
      this.begun = true
      this.since = now
    }
    const { interval, duration } = this.parameters
    const round = interval + duration
    if (now - this.since >= round) {
      // Whole rounds without a packet.
      this.since += Math.floor((now - this.since) / round) * round
      this.lost = 0
    }
    while (now >= this.since + this.length) {
      this.since += this.length
      this.inBurst = !this.inBurst
      this.lost = 0
    }
  }

  /** Whether a packet of now is lost. */
  get bursting(): boolean {
    this.follow()
    return this.inBurst
  }

  spares(count: number): number {
    if (count === 0 || !this.bursting) return count
    if (++this.lost >= this.parameters.packets) this.endBurst()
    return 0
  }

  /** Takes over other parameters: an interval, or a burst, that would be over with them ends now. */
  change(parameters: TimedBurstsParameters): void {
    if (this.begun) this.follow()
    this.parameters = parameters
    if (this.inBurst && this.lost >= parameters.packets) this.endBurst()
    this.since = Math.max(this.since, this.clock.now - this.length)
    if (this.begun) this.arm()
  }

  private endBurst(): void {
    this.inBurst = false
    this.since = this.clock.now
    this.arm()
  }
}
