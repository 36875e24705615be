/** Measures packets and bits per second over whole intervals on the run's clock, also while nothing passes. */
import { NS_PER_S, type RunClock } from '../../engine/clock.ts'
import { type Gauge, gauge } from '../../engine/metrics.ts'
import type { Timer } from '../../engine/timers.ts'
import { Interval } from './interval.ts'

export const rateMetrics = {
  packets_per_second: gauge('Packet rate of the last whole interval.', 'packets/s'),
  bits_per_second: gauge('Bit rate of the last whole interval.', 'bit/s'),
}

export interface RateMeterContext {
  readonly clock: RunClock
  readonly metrics: { readonly packets_per_second: Gauge; readonly bits_per_second: Gauge }
  timer(fire: () => void): Timer
}

export class RateMeter {
  private readonly context: RateMeterContext
  private readonly interval: Interval
  private packets = 0
  private bytes = 0

  /** `interval` in ns. */
  constructor(context: RateMeterContext, interval: number) {
    this.context = context
    this.interval = new Interval(context, interval, () => this.measure())
  }

  /** Packets and bytes that passed. */
  add(packets: number, bytes: number): void {
    this.packets += packets
    this.bytes += bytes
  }

  /** Takes effect at once: the present interval ends when the new one would have. */
  setInterval(interval: number): void {
    this.interval.setLength(interval)
  }

  private measure(): void {
    const { clock, metrics } = this.context
    const seconds = (clock.now - this.interval.start) / NS_PER_S
    metrics.packets_per_second.set(this.packets / seconds)
    metrics.bits_per_second.set((this.bytes * 8) / seconds)
    this.packets = 0
    this.bytes = 0
  }

  stop(): void {
    this.interval.stop()
  }
}
