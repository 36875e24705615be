/** What traffic sources share: packet sizes, the packets themselves, and the end of a flow. */
import { NS_PER_MS, NS_PER_S, type RunClock } from '../../engine/clock.ts'
import type { Fault } from '../../engine/component.ts'
import type { Log } from '../../engine/log.ts'
import { type Counter, counter, created, type Gauge, gauge } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Random } from '../../engine/random.ts'
import { Optional, Uint32, ZERO_UNSET } from '../../engine/schema.ts'
import type { Timer } from '../../engine/timers.ts'
import { PROBE_BYTES, type ProbeContext, ProbeWriter } from './probe.ts'

/** Largest packet that sources make, bytes. */
export const MAX_PACKET = 65_535
const DEFAULT_MIN = 64
const DEFAULT_MAX = 1400
/** How far a paced source may be behind its schedule after a whole batch before it gives the rest up, ns. */
export const MAX_LAG_NS = 20 * NS_PER_MS

const sizeLimits = { minimum: PROBE_BYTES, maximum: MAX_PACKET, unit: 'bytes', ...ZERO_UNSET }

/** The size fields of sources whose packets vary. */
export const sizeFields = {
  min_packet_size: Optional(
    Uint32(
      'Smallest packet, of which the probe header is 32. Unset: 64, or max_packet_size where only that is given.',
      sizeLimits,
    ),
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
