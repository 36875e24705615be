/** Sends packets at a pace that can change while they are sent, or as fast as the graph takes them. */
import { BATCH_CAPACITY } from '../../engine/batch.ts'
import type { Random } from '../../engine/random.ts'
import type { Timer } from '../../engine/timers.ts'
import { Generator, type GeneratorContext, MAX_LAG_NS, type Sizes } from './generator.ts'

/** Without time from one packet to the next: as fast as the graph takes them. */
export interface Pace {
  /** ns from one packet to the next, per packet. */
  perPacket: number
  /** ns from one packet to the next, per byte of the former. */
  perByte: number
  /** Packets sent at one time, 1..256. */
  group: number
  /** ns after the first packet when it is over, 0 for never. */
  duration: number
}

/** For the pages of what has a rate. */
export const RATES =
  'From 1 kbit/s to 1 Tbit/s the time that a packet takes is a number that can be calculated with; rates beyond are refused.'

/** ns that a byte takes at `mbit` megabit per second. */
export function nsPerByte(mbit: number): number {
  return 8000 / mbit
}

/**
 * Sends packets at the times of a schedule. Behind schedule it sends at most a batch a breath, and when after that it
 * still is more than 20 ms behind, it takes the schedule up again from now. Without a schedule it sends a batch every breath.
 */
export class Paced extends Generator {
  private pace: Pace
  private readonly timer: Timer
  /** When the next group is due, ns. */
  private next = 0
  /** When the last group was due, ns, and what it had. */
  private last = 0
  private lastPackets = 0
  private lastBytes = 0

  constructor(context: GeneratorContext, random: Random, sizes: Sizes, total: number, pace: Pace) {
    super(context, random, sizes, total)
    this.pace = pace
    this.timer = context.timer(() => this.fire())
    context.source(() => this.flood())
    if (!this.unpaced) this.timer.at(context.clock.now)
  }

  private get unpaced(): boolean {
    return this.pace.perPacket === 0 && this.pace.perByte === 0
  }

  /** Takes over another pace, by which the time since the last group counts; what is over by it finishes in the next breath. */
  changePace(pace: Pace): void {
    const { perPacket, perByte } = this.pace
    this.pace = pace
    this.timer.cancel()
    if (this.done || this.unpaced) return
    const { now } = this.clock
    if (pace.perPacket !== perPacket || pace.perByte !== perByte) {
      this.next = Math.max(now, this.last + this.lastPackets * pace.perPacket + this.lastBytes * pace.perByte)
    }
    this.timer.at(this.started < 0 ? now : Math.min(this.next, this.end))
  }

  /** When the duration is over, ns. */
  private get end(): number {
    const { duration } = this.pace
    return duration > 0 ? this.started + duration : Number.POSITIVE_INFINITY
  }

  private flood(): boolean {
    if (this.done || !this.unpaced) return false
    const { now } = this.clock
    if (this.started < 0) this.started = now
    // One batch at a time: another breath of the same moment has nothing to add.
    else if (this.last === now) return true
    const { packets, outlets } = this.context
    let sent = 0
    // A breath that finds no slot free waits for one that gives some back.
    while (sent < BATCH_CAPACITY && packets.available > 0 && !this.complete) {
      this.lastBytes = this.one()
      sent++
    }
    outlets.output.flush()
    if (sent > 0) this.last = now
    this.lastPackets = 1
    if (this.complete) this.finish()
    return sent > 0 && !this.done
  }

  private fire(): void {
    const { now } = this.clock
    const { group } = this.pace
    if (this.started < 0) this.started = this.next = now
    const { end } = this
    for (let room = BATCH_CAPACITY; room >= group && this.next <= now && this.next < end; room -= group) {
      this.sendGroup()
      if (this.complete) break
    }
    this.context.outlets.output.flush()
    if (this.complete || now >= end) {
      this.finish()
      return
    }
    const lag = now - this.next
    if (lag > MAX_LAG_NS) {
      this.skip(lag)
      this.next = now
    }
    this.timer.at(Math.min(this.next, end))
  }

  /** Of a group that would take longer than what is left of the duration it sends what has its turn before the end. */
  private sendGroup(): void {
    const { perPacket, perByte, group } = this.pace
    const { end } = this
    this.last = this.next
    this.lastPackets = 0
    this.lastBytes = 0
    for (; this.lastPackets < group && this.next < end && !this.complete; this.lastPackets++) {
      const bytes = this.one()
      this.lastBytes += bytes
      this.next += perPacket + perByte * bytes
    }
  }

  protected override finish(): void {
    this.timer.cancel()
    super.finish()
  }

  override stop(): void {
    this.timer.cancel()
    super.stop()
  }
}
