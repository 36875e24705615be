/** Frames sources and sends a repair over the window of the newest whenever their credit has come to one. */
import { MAX_REPAIRS, SlidingEncoder } from '../../codes/sliding-encoder.ts'
import { MAX_WINDOW } from '../../codes/sliding-window.ts'
import { BATCH_CAPACITY, type Batch } from '../../engine/batch.ts'
import type { RunClock } from '../../engine/clock.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Timer } from '../../engine/timers.ts'
import { REMOTE_BYTES } from '../../native/native.ts'
import type { RelySenderCounters } from './rely-counters.ts'
import {
  LENGTH_BYTES,
  MAX_PAYLOAD,
  REPAIR,
  REPAIR_SYMBOL_AT,
  SOURCE,
  SOURCE_HEADER_BYTES,
  SOURCE_SYMBOL_AT,
} from './rely-header.ts'

/** Most repairs after one source. */
export const MAX_RATE = 4
/**
 * Of so many sources that come in one batch the repairs follow together, the symbols of which begin elsewhere: packets of one length leave, and arrive,
 * many in one piece (UDP_SEGMENT, UDP_GRO).
 */
export const TOGETHER = 32
/** Sums of rates such as 0.1 fall short of one by less. */
const ROUNDING = 1e-9

export interface RelySettings {
  /** Age at which a source leaves the window, ns. */
  span: number
  /** Most sources of the window, 1 to `MAX_WINDOW`. */
  window: number
  /** Repairs per source, 0 to `MAX_RATE`. */
  rate: number
  /** Silence after which what no repair covers yet gets one, ns; 0: never. */
  flushAfter: number
}

export interface RelySenderContext {
  readonly packets: Packets
  readonly clock: RunClock
  memory(): number
  timer(fire: () => void): Timer
}

export class RelySender {
  private readonly packets: Packets
  private readonly clock: RunClock
  private readonly memory: number
  private readonly timer: Timer
  private readonly outlet: Outlet
  private readonly counters: RelySenderCounters
  private readonly session: number
  private settings: RelySettings
  private encoder: SlidingEncoder
  /** When each source of the window came, by number modulo `MAX_WINDOW`. */
  private readonly times = new Float64Array(MAX_WINDOW)
  /** Number of the next source; how many before it make the window. */
  private next = 0
  private count = 0
  private credit = 0
  private key = 0
  /** Whether a source came since the last repair, and when. */
  private unprotected = false
  private lastAt = 0
  /** Annotations of the last source, for a repair that follows later. */
  private readonly remote = new Int32Array(REMOTE_BYTES / 4)
  private client = -1
  /** Sources and repairs to send. */
  private readonly ready = new Int32Array(BATCH_CAPACITY * (1 + MAX_RATE))
  private readyCount = 0
  /** Repairs that are to follow the sources in `ready`. */
  private readonly due = new Int32Array(TOGETHER * MAX_RATE)
  private dueCount = 0
  /** The repairs among them, in the order in which the encoder was asked for them. */
  private readonly repairs = new Int32Array(MAX_REPAIRS)
  private repairCount = 0
  /** Where in its slot the symbol that begins first does: repairs find the same room around them in theirs. */
  private symbolAt: number

  /** `session`: 24 bits that no other encoder before the same decoder has. */
  constructor(
    { packets, clock, memory, timer }: RelySenderContext,
    outlet: Outlet,
    counters: RelySenderCounters,
    session: number,
    settings: RelySettings,
  ) {
    this.packets = packets
    this.clock = clock
    this.memory = memory()
    this.timer = timer(() => this.flushSilent())
    this.outlet = outlet
    this.counters = counters
    this.session = session & 0xffffff
    this.settings = settings
    this.encoder = this.open()
    this.symbolAt = packets.headroom - LENGTH_BYTES
  }

  private open(): SlidingEncoder {
    const symbolBytes = Math.min(MAX_PAYLOAD, this.packets.slotBytes) + LENGTH_BYTES
    return new SlidingEncoder({ memory: this.memory, window: this.settings.window, symbolBytes })
  }

  /** Takes changed settings over. With another size of the window it begins anew: what came before gets no further repairs, but the one that silence would bring. */
  reconfigure(settings: RelySettings): void {
    const isOther = settings.window !== this.settings.window
    if (isOther && this.settings.flushAfter > 0) this.flush()
    this.settings = settings
    if (isOther) {
      this.encoder.close()
      this.encoder = this.open()
      this.count = 0
      this.unprotected = false
    }
    this.timer.cancel()
    this.arm()
  }

  /** Sees to it that silence brings a repair where one is due. */
  private arm(): void {
    const { flushAfter } = this.settings
    if (flushAfter > 0 && this.unprotected && !this.timer.armed) this.timer.at(this.lastAt + flushAfter)
  }

  /** Takes the packets of a batch; they leave at once, each followed by the repairs that are due, or `TOGETHER` by theirs. */
  input(batch: Batch): void {
    const { handles, length } = batch
    const { rate, flushAfter } = this.settings
    const protects = rate > 0 || flushAfter > 0
    let last = -1
    for (let i = 0; i < length; i++) {
      if (length < TOGETHER || (i & (TOGETHER - 1)) === 0) this.takeDue()
      const packet = handles[i]
      if (!this.frame(packet, protects)) continue
      last = packet
      this.ready[this.readyCount++] = packet
      this.credit += rate
      for (; this.credit >= 1 - ROUNDING; this.credit--) this.repair(packet)
    }
    this.takeDue()
    if (last >= 0) {
      this.packets.readRemote(last, this.remote)
      this.client = this.packets.client[last]
    }
    this.send()
    this.arm()
  }

  /** Writes the header. A source that `protects` does not hold for is in no window. */
  private frame(packet: number, protects: boolean): boolean {
    const { packets, clock } = this
    const payload = packets.length[packet]
    const at = payload > MAX_PAYLOAD ? -1 : packets.prepend(packet, SOURCE_HEADER_BYTES)
    if (at < 0) {
      packets.release(packet)
      this.counters.no_room_packets.add(1)
      return false
    }
    const { view } = packets
    const sequence = this.next
    view.setInt32(at, (SOURCE << 24) | this.session)
    view.setInt32(at + 4, sequence)
    view.setUint16(at + SOURCE_SYMBOL_AT, payload)
    this.counters.source_packets.add(1)
    this.next = (sequence + 1) | 0
    this.unprotected = protects
    if (!protects) {
      this.count = 0
      return true
    }
    this.lastAt = clock.now
    this.times[sequence & (MAX_WINDOW - 1)] = clock.now
    if (this.count < this.settings.window) this.count++
    this.encoder.add(sequence, at + SOURCE_SYMBOL_AT, payload + LENGTH_BYTES)
    const symbolAt = at + SOURCE_SYMBOL_AT - packet * packets.slotBytes
    if (symbolAt < this.symbolAt) this.symbolAt = symbolAt
    return true
  }

  /** Sources that are too old leave the window; the newest stays. */
  private shrink(): void {
    const oldest = this.lastAt - this.settings.span
    while (this.count > 1 && this.times[(this.next - this.count) & (MAX_WINDOW - 1)] <= oldest) this.count--
  }

  /** Asks for a repair over the window, with the annotations of `like`, or, where that is -1, of the last source, and puts it behind what is ready. */
  private repair(like: number): void {
    const { packets, symbolAt } = this
    this.unprotected = false
    this.shrink()
    const repair = packets.allocate()
    if (repair < 0) {
      this.counters.unsent_repair_packets.add(1)
      return
    }
    const { view, slotBytes } = packets
    const first = (this.next - this.count) | 0
    const key = this.key
    this.key = (key + 1) & 0xffff
    const symbol = repair * slotBytes + symbolAt
    const n = this.encoder.askRepair(first, this.count, key, symbol, slotBytes - symbolAt)
    const at = symbol - REPAIR_SYMBOL_AT
    view.setInt32(at, (REPAIR << 24) | this.session)
    view.setInt32(at + 4, first)
    view.setUint16(at + 8, this.count)
    view.setUint16(at + 10, key)
    packets.offset[repair] = at
    this.repairs[n] = repair
    this.repairCount = n + 1
    if (like >= 0) packets.annotateAs(repair, like)
    else {
      packets.arrival[repair] = this.clock.stamp()
      packets.client[repair] = this.client
      packets.setRemote(repair, this.remote)
    }
    this.counters.repair_packets.add(1)
    this.due[this.dueCount++] = repair
  }

  private takeDue(): void {
    for (let n = 0; n < this.dueCount; n++) this.ready[this.readyCount++] = this.due[n]
    this.dueCount = 0
  }

  /** Makes the repairs, copies what is left of the sources, and sends both. */
  private send(): void {
    this.encoder.makeRepairs()
    for (let n = 0; n < this.repairCount; n++) {
      this.packets.length[this.repairs[n]] = REPAIR_SYMBOL_AT + this.encoder.repairBytes(n)
    }
    this.repairCount = 0
    for (let i = 0; i < this.readyCount; i++) this.outlet.push(this.ready[i])
    this.readyCount = 0
    this.outlet.flush()
  }

  /** The timer is armed once in a while, not for each batch: it looks whether it has been silent since. */
  private flushSilent(): void {
    const { flushAfter } = this.settings
    if (!this.unprotected || flushAfter === 0) return
    const due = this.lastAt + flushAfter
    if (due > this.clock.now) this.timer.at(due)
    else this.flush()
  }

  /** Sends a repair over the window if a source came since the last one. */
  flush(): void {
    if (!this.unprotected) return
    this.repair(-1)
    this.takeDue()
    this.send()
  }

  /** Whether silence will bring a repair. */
  get waits(): boolean {
    return this.unprotected && this.timer.armed
  }

  stop(): void {
    this.timer.cancel()
    this.encoder.close()
  }
}
