/** Measures packets and bits per second over whole intervals on the run's clock, also while nothing passes. */
import { NS_PER_S, type RunClock } from '../../engine/clock.ts'
import { type Gauge, gauge } from '../../engine/metrics.ts'
import type { Timer } from '../../engine/timers.ts'

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
  private readonly timer: Timer
  private interval: number
  private start: number
  private packets = 0
  private bytes = 0

  /** `interval` in ns. */
  constructor(context: RateMeterContext, interval: number) {
    this.context = context
    this.interval = interval
    this.start = context.clock.now
    this.timer = context.timer(() => this.measure())
    this.timer.at(this.start + interval)
  }

  /** Packets and bytes that passed. */
  add(packets: number, bytes: number): void {
    this.packets += packets
    this.bytes += bytes
  }

  /** Takes effect at once: the present interval ends when the new one would have. */
  setInterval(interval: number): void {
    this.interval = interval
    this.timer.at(this.start + interval)
  }

  private measure(): void {
    const { clock, metrics } = this.context
    const seconds = (clock.now - this.start) / NS_PER_S
    metrics.packets_per_second.set(this.packets / seconds)
    metrics.bits_per_second.set((this.bytes * 8) / seconds)
    this.start = clock.now
    this.packets = 0
    this.bytes = 0
    this.timer.at(this.start + this.interval)
  }

  stop(): void {
    this.timer.cancel()
  }
}
