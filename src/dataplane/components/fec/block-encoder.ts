/** Frames source packets into blocks and makes the repair packets of each block, at the points that a schedule names. */
import type { Batch } from '../../engine/batch.ts'
import type { RunClock } from '../../engine/clock.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Timer } from '../../engine/timers.ts'
import type { BlockEncoderCounters } from './block-counters.ts'
import { type BlockFormat, headerBytes, LENGTH_BYTES, SYMBOL_AT, writeBlockHeader } from './block-header.ts'
import type { RepairMaker } from './repair-maker.ts'

/** Repairs that are made when so many sources of a block have come. */
export interface RepairPoint {
  readonly sources: number
  readonly repairs: number
}

export interface BlockEncoderOptions {
  readonly format: BlockFormat
  /** Sources strictly rising, 255 at most; the last point ends the block. At most 255 repairs in all. */
  readonly schedule: readonly RepairPoint[]
  /** 24 bits that no other encoder before the same decoder has. */
  readonly session: number
  /** When an unfinished block is closed: so long after its last source, ns; 0: never. */
  readonly silence: number
  /** So long after its first source, ns; 0: never. */
  readonly age: number
}

export interface BlockEncoderContext {
  readonly packets: Packets
  readonly clock: RunClock
  memory(): number
  timer(fire: () => void): Timer
}

/** Symbols of full blocks that wait for their repairs, so that those of many are made in one call; of large blocks it is one. */
const WAITING_SYMBOLS = 512

/** Most repairs that an encoder with this schedule makes at once. */
export function mostRepairs(schedule: readonly RepairPoint[]): number {
  return Math.max(WAITING_SYMBOLS, ...schedule.map(({ repairs }) => repairs))
}

/**
 * Sources that come and go in one batch are multiplied where they lie, before they are sent. Only those that a later repair of their block
 * is over are copied, into slots of their own, since whoever comes next may change the packets.
 */
export class BlockEncoder {
  private readonly packets: Packets
  private readonly outlet: Outlet
  private readonly counters: BlockEncoderCounters
  private readonly maker: RepairMaker
  private readonly format: BlockFormat
  private readonly front: number
  private readonly schedule: readonly RepairPoint[]
  private readonly k: number
  private readonly r: number
  /** Repairs of a full block's last point; those before it. */
  private readonly lastRepairs: number
  private readonly earlierRepairs: number
  private readonly session: number
  /** Packets, block by block: sources and room for repairs. First the full blocks that wait, behind them the unfinished one. */
  private readonly symbols: Int32Array
  private readonly mostWaiting: number
  private waiting = 0
  private block = 0
  /** Sources of the unfinished block, and of the one before. */
  private count = 0
  private previous = 0
  /** How many of the first sources in `symbols` have been sent; where there are repairs to come, copies stand there. */
  private sent = 0
  /** The next point of the schedule, how many sources the last repairs were over, and how many repairs there are of the block. */
  private point = 0
  private covered = 0
  private made = 0
  private readonly clock: RunClock
  private readonly timer: Timer
  private silence = 0
  private age = 0
  private firstAt = 0
  private lastAt = 0

  constructor(
    { packets, clock, timer }: BlockEncoderContext,
    outlet: Outlet,
    counters: BlockEncoderCounters,
    maker: RepairMaker,
    { format, schedule, session, silence, age }: BlockEncoderOptions,
  ) {
    this.packets = packets
    this.clock = clock
    this.timer = timer(() => this.closeDue())
    this.outlet = outlet
    this.counters = counters
    this.maker = maker
    this.format = format
    this.front = headerBytes(format)
    this.schedule = schedule
    const last = schedule[schedule.length - 1]
    this.k = last.sources
    this.r = schedule.reduce((sum, { repairs }) => sum + repairs, 0)
    this.lastRepairs = last.repairs
    this.earlierRepairs = this.r - last.repairs
    this.session = session & 0xffffff
    const stride = this.k + last.repairs
    this.mostWaiting = Math.max(1, Math.floor(WAITING_SYMBOLS / stride))
    this.symbols = new Int32Array(this.mostWaiting * stride + this.k + this.r)
    this.closeAfter(silence, age)
  }

  /** Changes after which silence, and at which age, an unfinished block is closed, ns; 0: never. Holds for the block at hand too. */
  closeAfter(silence: number, age: number): void {
    // Without repairs there is nothing that closing a block would send.
    this.silence = this.r > 0 ? silence : 0
    this.age = this.r > 0 ? age : 0
    this.timer.cancel()
    this.arm()
  }

  /** Takes the packets of a batch; they leave at once, each repair behind the last source that it is over. */
  input(batch: Batch): void {
    const { handles, length } = batch
    for (let i = 0; i < length; i++) {
      if (this.frame(handles[i]) && this.count === this.schedule[this.point].sources) this.reachPoint()
    }
    this.sendWaiting()
    if (this.count > 0) {
      this.copyAndSend()
      this.lastAt = this.clock.now
      if (!this.timer.armed) this.arm()
    }
    this.outlet.flush()
  }

  /** Ends an unfinished block, with the next repairs of the schedule when a source has come since the last. */
  flush(): void {
    const { count } = this
    if (count === 0) return
    if (count > this.covered) this.send(1, count, this.schedule[this.point].repairs, this.made, this.block)
    this.releaseCopies()
    this.nextBlock()
    this.outlet.flush()
  }

  /** Slots of the unfinished block's copies, unless time will close it. */
  get kept(): number {
    return this.timer.armed || this.r === 0 ? 0 : this.sent
  }

  /** Gives back the copies. */
  stop(): void {
    this.timer.cancel()
    this.releaseCopies()
    this.count = 0
  }

  private get due(): number {
    const silent = this.silence > 0 ? this.lastAt + this.silence : Number.POSITIVE_INFINITY
    return this.age > 0 ? Math.min(silent, this.firstAt + this.age) : silent
  }

  private arm(): void {
    if (this.count > 0 && this.due < Number.POSITIVE_INFINITY) this.timer.at(this.due)
  }

  /** The timer is armed once in a while, not for each batch: it looks whether the block it finds is due. */
  private closeDue(): void {
    if (this.count === 0) return
    if (this.due > this.clock.now) this.arm()
    else this.flush()
  }

  private frame(packet: number): boolean {
    const { packets, k, r, front } = this
    const payload = packets.length[packet]
    const room = payload > 0xffff ? -1 : packets.prepend(packet, front)
    if (room < 0) {
      packets.release(packet)
      this.counters.no_room_packets.add(1)
      return false
    }
    // The room that the longer header of a repair takes stays free in front of a source.
    const spare = front - SYMBOL_AT - LENGTH_BYTES
    const at = room + spare
    packets.offset[packet] = at
    packets.length[packet] -= spare
    const index = this.count++
    if (index === 0) this.firstAt = this.clock.now
    const { view } = packets
    const closing = this.format.progressive ? this.previous : 0
    writeBlockHeader(view, at, this.format.source, k, r, index, this.session, closing, this.block)
    view.setUint16(at + SYMBOL_AT, payload)
    this.symbols[this.waiting * (k + this.lastRepairs) + index] = packet
    return true
  }

  /** A point of the schedule is reached. */
  private reachPoint(): void {
    if (this.count < this.k) {
      this.sendWaiting()
      this.sendEarly()
      return
    }
    this.nextBlock()
    if (++this.waiting === this.mostWaiting) this.sendWaiting()
  }

  /** Sends the sources at hand and repairs over all of the block, which goes on. */
  private sendEarly(): void {
    const { count, symbols, outlet, counters, block } = this
    const wanted = this.schedule[this.point].repairs
    const repairs = wanted === 0 ? 0 : this.maker.make(symbols, 1, count, wanted)
    counters.repair_packets.add(repairs)
    counters.unsent_repair_packets.add(wanted - repairs)
    this.finishRepairs(count, repairs, count, this.made, block, 0)
    // Those that could not be made have their indices nevertheless: they are as good as lost.
    this.made += wanted
    this.covered = count
    this.copyAndSend()
    for (let at = count; at < count + repairs; at++) outlet.push(symbols[at])
    // It has ended where there were no slots for copies.
    if (this.block === block) this.point++
  }

  /** Sends the full blocks. */
  private sendWaiting(): void {
    const { waiting, symbols, k, lastRepairs } = this
    if (waiting === 0) return
    const rest = waiting * (k + lastRepairs)
    this.waiting = 0
    this.send(waiting, k, lastRepairs, this.earlierRepairs, (this.block - waiting) | 0)
    this.releaseCopies()
    symbols.copyWithin(0, rest, rest + this.count)
  }

  /**
   * Makes `repairs` repairs, from index `index` on, of each of the first `blocks` blocks, of `sources` each, and sends what has not been sent
   * of those; `first` is the id of the first.
   */
  private send(blocks: number, sources: number, repairs: number, index: number, first: number): void {
    const { symbols, counters, outlet, sent } = this
    const wanted = blocks * repairs
    let left = wanted === 0 ? 0 : this.maker.make(symbols, blocks, sources, repairs)
    counters.repair_packets.add(left)
    counters.unsent_repair_packets.add(wanted - left)
    counters.source_packets.add(blocks * sources - sent)
    for (let n = 0; n < blocks; n++) {
      const made = Math.min(repairs, left)
      const end = n * (sources + repairs) + sources
      left -= made
      this.finishRepairs(end, made, sources, index, (first + n) | 0, n * repairs)
      for (let at = n === 0 ? sent : end - sources; at < end + made; at++) outlet.push(symbols[at])
    }
  }

  /** Writes the headers of the repairs from `at` on, of which the first is that of `index`, and the `nth` of those made last. */
  private finishRepairs(at: number, count: number, closing: number, index: number, block: number, nth: number): void {
    const { packets, symbols, format, k, r, session, maker } = this
    const { view, offset } = packets
    for (let j = 0; j < count; j++) {
      const from = offset[symbols[at + j]]
      writeBlockHeader(view, from, format.repair, k, r, index + j, session, closing, block)
      maker.finish(view, from + SYMBOL_AT, nth + j)
    }
  }

  /** The block goes on: its new sources are copied before they leave. Without slots for that it ends here. */
  private copyAndSend(): void {
    const { packets, outlet, counters, symbols, count, r } = this
    counters.source_packets.add(count - this.sent)
    for (; this.sent < count; this.sent++) {
      const source = symbols[this.sent]
      const copy = r === 0 ? source : packets.clone(source)
      if (copy < 0) break
      symbols[this.sent] = copy
      outlet.push(source)
    }
    if (this.sent === count) return
    counters.unprotected_packets.add(count - this.covered)
    for (let at = this.sent; at < count; at++) outlet.push(symbols[at])
    this.releaseCopies()
    this.nextBlock()
  }

  private nextBlock(): void {
    this.block = (this.block + 1) | 0
    this.previous = this.count
    this.count = 0
    this.point = 0
    this.covered = 0
    this.made = 0
  }

  private releaseCopies(): void {
    if (this.r > 0) for (let at = 0; at < this.sent; at++) this.packets.release(this.symbols[at])
    this.sent = 0
  }
}
