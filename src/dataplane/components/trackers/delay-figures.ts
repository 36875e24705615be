/** Least, mean and greatest of the times measured in an interval. */
import type { Gauge } from '../../engine/metrics.ts'

export class DelayFigures {
  /** Times since the last `show`. */
  count = 0
  private sum = 0
  private least = 0
  private greatest = 0

  /** `time` in ns, negative ones as they are. */
  add(time: number): void {
    if (this.count === 0 || time < this.least) this.least = time
    if (this.count === 0 || time > this.greatest) this.greatest = time
    this.sum += time
    this.count++
  }

  /** Sets the gauges, which stay as they are where nothing was measured, and begins anew. */
  show(least: Gauge, mean: Gauge, greatest: Gauge): void {
    if (this.count === 0) return
    least.set(this.least)
    mean.set(this.sum / this.count)
    greatest.set(this.greatest)
    this.count = 0
    this.sum = 0
  }
}
