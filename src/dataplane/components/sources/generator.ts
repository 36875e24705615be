/** What traffic sources share: packet sizes, pacing on the run's clock, and the end of a flow. */
import { BATCH_CAPACITY } from '../../engine/batch.ts'
import { NS_PER_MS, NS_PER_S, type RunClock } from '../../engine/clock.ts'
import type { Fault } from '../../engine/component.ts'
import type { Log } from '../../engine/log.ts'
import { type Counter, counter, created, type Gauge, gauge } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Random } from '../../engine/random.ts'
import { Optional, Uint32 } from '../../engine/schema.ts'
import type { Timer } from '../../engine/timers.ts'
import { PROBE_BYTES, type ProbeContext, ProbeWriter } from './probe.ts'

/** Largest packet that sources make, bytes. */
export const MAX_PACKET = 65_535
const DEFAULT_MIN = 64
const DEFAULT_MAX = 1400
/** How far a paced source may be behind its schedule after a whole batch before it gives the rest up, ns. */
export const MAX_LAG_NS = 20 * NS_PER_MS

const sizeLimits = { minimum: PROBE_BYTES, maximum: MAX_PACKET, unit: 'bytes' }

/** The size fields of sources whose packets vary. */
export const sizeFields = {
  min_packet_size: Optional(
    Uint32('Smallest packet. Unset: 64, or max_packet_size where only that is given.', sizeLimits),
  ),
  max_packet_size: Optional(
    Uint32('Largest packet. Unset: 1400, or min_packet_size where only that is given.', sizeLimits),
  ),
}

interface SizeConfig {
  min_packet_size?: number
  max_packet_size?: number
}

/** Smallest and largest packet, bytes. */
export interface Sizes {
  smallest: number
  largest: number
}

/** Smallest and largest packet; one alone sets both. */
export function sizesOf({ min_packet_size, max_packet_size }: SizeConfig): Sizes {
  return {
    smallest: min_packet_size ?? max_packet_size ?? DEFAULT_MIN,
    largest: max_packet_size ?? min_packet_size ?? DEFAULT_MAX,
  }
}

export function checkSizes(config: SizeConfig): Fault[] {
  const { smallest, largest } = sizesOf(config)
  if (smallest <= largest) return []
  return [{ pointer: '/min_packet_size', message: `${smallest} bytes are more than max_packet_size, ${largest}` }]
}

export const sourceMetrics = {
  generated_packets: created('Packets made.'),
  starved_packets: counter('Packets not made because no packet slot was free.', 'packets'),
  skipped_ms: counter('Time of the schedule given up because the run could not keep up with it.', 'ms'),
  finished: gauge('1 once all packets are sent or the duration is over.'),
}

/** What a generator needs of its component's context. */
export interface GeneratorContext extends ProbeContext {
  readonly outlets: { readonly output: Outlet }
  readonly metrics: {
    readonly generated_packets: Counter
    readonly starved_packets: Counter
    readonly skipped_ms: Counter
    readonly finished: Gauge
  }
  readonly log: Log
  timer(fire: () => void): Timer
  source(poll: () => boolean): void
}

/** Sends probes of random sizes until it has sent `total` (0: no limit). */
export class Generator {
  protected readonly context: GeneratorContext
  protected readonly clock: RunClock
  protected readonly random: Random
  protected started = -1
  protected done = false
  private sizes: Sizes
  private total: number
  private readonly probes: ProbeWriter
  private bytes = 0

  constructor(context: GeneratorContext, random: Random, sizes: Sizes, total: number) {
    this.context = context
    this.clock = context.clock
    this.random = random
    this.sizes = sizes
    this.total = total
    this.probes = new ProbeWriter(context, random)
  }

  /** Sends one packet (gathered in the outlet) and returns its size, also when no slot was free for it. */
  protected one(): number {
    const { context } = this
    const { smallest, largest } = this.sizes
    const size = smallest === largest ? smallest : this.random.between(smallest, largest)
    const packet = this.probes.make(size)
    if (packet < 0) context.metrics.starved_packets.add(1)
    else {
      context.metrics.generated_packets.add(1)
      context.outlets.output.push(packet)
      this.bytes += size
    }
    return size
  }

  /** More packets are to come. */
  get active(): boolean {
    return !this.done
  }

  protected get complete(): boolean {
    return this.total > 0 && this.probes.sequence >= this.total
  }

  /**
   * Takes over other sizes, within what the run's slots hold, and another total, which may be reached by that. A source that has
   * finished stays finished.
   */
  adjust(sizes: Sizes, total: number): void {
    this.sizes = sizes
    this.total = total
    if (this.complete) this.finish()
  }

  /** Gives up time of the schedule that the run could not keep up with, ns. */
  protected skip(lag: number): void {
    this.context.metrics.skipped_ms.add(Math.floor(lag / NS_PER_MS))
  }

  protected finish(): void {
    if (this.done) return
    this.done = true
    this.context.metrics.finished.set(1)
    const packets = this.probes.sequence
    const seconds = (this.clock.now - this.started) / NS_PER_S
    const message = `finished: ${packets} packets, ${this.bytes} bytes in ${seconds.toFixed(3)} s`
    this.context.log('INFO', message, { packets, bytes: this.bytes, seconds, source: this.probes.source })
    this.probes.close()
  }

  stop(): void {
    this.done = true
    this.probes.close()
  }
}

/** Sends a batch every breath, as fast as the graph takes them. */
export class Flood extends Generator {
  constructor(context: GeneratorContext, random: Random, sizes: Sizes, total: number) {
    super(context, random, sizes, total)
    context.source(() => this.poll())
  }

  private poll(): boolean {
    if (this.done) return false
    if (this.started < 0) this.started = this.clock.now
    const { packets, outlets } = this.context
    let sent = 0
    // A breath that finds no slot free waits for one that gives some back.
    while (sent < BATCH_CAPACITY && packets.available > 0 && !this.complete) {
      this.one()
      sent++
    }
    outlets.output.flush()
    if (this.complete) this.finish()
    return sent > 0 && !this.done
  }
}

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

/** ns that a byte takes at `mbit` megabit per second. */
export function nsPerByte(mbit: number): number {
  return 8000 / mbit
}

/**
 * Sends packets at the times of a schedule. Behind schedule it sends at most a batch a breath, and when after that it
 * still is more than 20 ms behind, it takes the schedule up again from now.
 */
export class Paced extends Generator {
  readonly pace: Pace
  private readonly timer: Timer
  private next = 0

  constructor(context: GeneratorContext, random: Random, sizes: Sizes, total: number, pace: Pace) {
    super(context, random, sizes, total)
    this.pace = pace
    this.timer = context.timer(() => this.fire())
    this.timer.at(context.clock.now)
  }

  private fire(): void {
    const { now } = this.clock
    const { perPacket, perByte, group, duration } = this.pace
    if (this.started < 0) this.started = this.next = now
    const end = duration > 0 ? this.started + duration : Number.POSITIVE_INFINITY
    for (let room = BATCH_CAPACITY; room >= group && this.next <= now && this.next < end; room -= group) {
      for (let i = 0; i < group && !this.complete; i++) this.next += perPacket + perByte * this.one()
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

  override stop(): void {
    this.timer.cancel()
    super.stop()
  }
}
