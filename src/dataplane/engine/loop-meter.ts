/** How busy the loop of a run is: what part of the time it does not sleep. */
import { NS_PER_S } from './clock.ts'
import type { Metrics } from './metrics.ts'
import type { engineMetrics } from './own-metrics.ts'

/** A share of the time so small that it may stand until there is work again. */
const SETTLED = 0.01

/** All times are nanoseconds of the run's clock. */
export class LoopMeter {
  private readonly metrics: Metrics<typeof engineMetrics>
  private readonly started: number
  /** Time slept in all, and up to `windowStart`. */
  private slept = 0
  private sleptBefore = 0
  private windowStart: number
  /** When the share has to be published again though nothing happens, since it tells of work that is over; infinite where it does not. */
  settleAt = Number.POSITIVE_INFINITY

  constructor(metrics: Metrics<typeof engineMetrics>, now: number) {
    this.metrics = metrics
    this.started = now
    this.windowStart = now
  }

  /** A turn of the loop has begun, after a sleep of `slept`. */
  breath(slept: number): void {
    this.metrics.breaths.add(1)
    this.slept += slept
  }

  /** Brings the metrics up to date; the share is over a second at least. */
  observe(now: number): void {
    const { busy_time, busy_share } = this.metrics
    busy_time.add(now - this.started - this.slept - busy_time.value)
    const elapsed = now - this.windowStart
    if (elapsed < NS_PER_S) {
      this.settleAt = this.windowStart + NS_PER_S
      return
    }
    const share = 1 - (this.slept - this.sleptBefore) / elapsed
    busy_share.set(share)
    this.sleptBefore = this.slept
    this.windowStart = now
    this.settleAt = share < SETTLED ? Number.POSITIVE_INFINITY : now + NS_PER_S
  }
}
