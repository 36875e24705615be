/** Frames source packets into blocks and makes the repair packets of each block, at the points that a schedule names. */
import type { Batch } from '../../engine/batch.ts'
import type { RunClock } from '../../engine/clock.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Timer } from '../../engine/timers.ts'
import type { BlockEncoderCounters } from './block-counters.ts'
import { BlockFraming } from './block-framing.ts'
import type { BlockFormat } from './block-header.ts'
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
  private readonly framing: BlockFraming
  /** The header of the first repair of those that are made. */
  private readonly header = new Int32Array(3)
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
    { packets, clock, memory, timer }: BlockEncoderContext,
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
    this.schedule = schedule
    const last = schedule[schedule.length - 1]
    this.k = last.sources
    this.r = schedule.reduce((sum, { repairs }) => sum + repairs, 0)
    this.lastRepairs = last.repairs
    this.earlierRepairs = this.r - last.repairs
    this.session = session & 0xffffff
    const stride = this.k + last.repairs
    this.framing = new BlockFraming(memory(), format, this.session, this.k, this.r, stride)
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
    for (let i = 0; i < length; ) i = this.frame(handles, i, length)
    this.sendWaiting()
    if (this.count > 0) {
      this.copyAndSend()
      this.lastAt = this.clock.now
      if (!this.timer.armed) this.arm()
    }
    this.outlet.flush()
  }

  /**
   * Ends an unfinished block, with the next repairs of the schedule when a source has come since the last. Without repairs it goes on: nothing
   * would be sent, and nothing would tell a decoder that there are no more sources of it.
   */
  flush(): void {
    const { count } = this
    if (count === 0 || this.r === 0) return
    if (count > this.covered) this.send(1, count, this.schedule[this.point].repairs, this.made, this.block, false)
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

  /** Frames packets from the `i`th on until a point of the schedule is reached or no more full blocks can wait; returns how far it came. */
  private frame(handles: Int32Array, i: number, length: number): number {
    const { framing, schedule, symbols } = this
    const { sources } = schedule[this.point]
    const blocks = schedule.length === 1 ? this.mostWaiting - this.waiting : 1
    framing.goOn(this.block, this.count, this.previous, this.waiting)
    const next = framing.frame(handles, i, length, sources, blocks, symbols)
    this.counters.no_room_packets.add(framing.refused)
    for (let full = (framing.block - this.block) | 0; full > 0; full--) this.fill(this.k)
    if (framing.count > 0 && this.count === 0) this.firstAt = this.clock.now
    this.count = framing.count
    if (this.count === sources) this.reachPoint()
    return next
  }

  /** A block of so many sources is full, and waits. */
  private fill(sources: number): void {
    this.count = sources
    this.nextBlock()
    this.waiting++
  }

  /** A point of the schedule is reached. */
  private reachPoint(): void {
    if (this.count < this.k) {
      this.sendWaiting()
      this.sendEarly()
      return
    }
    this.fill(this.k)
    if (this.waiting === this.mostWaiting) this.sendWaiting()
  }

  /** Sends the sources at hand and repairs over all of the block, which goes on. */
  private sendEarly(): void {
    const { count, symbols, outlet, counters, block } = this
    const wanted = this.schedule[this.point].repairs
    const repairs = wanted === 0 ? 0 : this.make(1, count, wanted, this.made, block, false)
    counters.repair_packets.add(repairs)
    counters.unsent_repair_packets.add(wanted - repairs)
    // Those that could not be made have their indices nevertheless: they are as good as lost.
    this.made += wanted
    this.covered = count
    this.copyAndSend()
    outlet.pushAll(symbols, count, count + repairs)
    // It has ended where there were no slots for copies.
    if (this.block === block) this.point++
  }

  /** Sends the full blocks. */
  private sendWaiting(): void {
    const { waiting, symbols, k, lastRepairs } = this
    if (waiting === 0) return
    const rest = waiting * (k + lastRepairs)
    this.waiting = 0
    this.send(waiting, k, lastRepairs, this.earlierRepairs, (this.block - waiting) | 0, true)
    this.releaseCopies()
    symbols.copyWithin(0, rest, rest + this.count)
  }

  /**
   * Makes `repairs` repairs, from index `index` on, of each of the first `blocks` blocks, of `sources` each, and sends what has not been sent
   * of those; `first` is the id of the first. `framed`: those that were framed last stand where they were put.
   */
  private send(blocks: number, sources: number, repairs: number, index: number, first: number, framed: boolean): void {
    const { symbols, counters, outlet, sent } = this
    const wanted = blocks * repairs
    let left = wanted === 0 ? 0 : this.make(blocks, sources, repairs, index, first, framed)
    counters.repair_packets.add(left)
    counters.unsent_repair_packets.add(wanted - left)
    counters.source_packets.add(blocks * sources - sent)
    if (left === wanted) {
      outlet.pushAll(symbols, sent, blocks * (sources + repairs))
      return
    }
    for (let n = 0; n < blocks; n++) {
      const made = Math.min(repairs, left)
      const end = n * (sources + repairs) + sources
      left -= made
      outlet.pushAll(symbols, n === 0 ? sent : end - sources, end + made)
    }
  }

  /** Makes repairs, from index `index` on, of each of the first `blocks` blocks, of which `first` is the first; how many. */
  private make(
    blocks: number,
    sources: number,
    repairs: number,
    index: number,
    first: number,
    framed: boolean,
  ): number {
    const { header, format, k, r, session, symbols } = this
    header[0] = (format.repair << 24) | (k << 16) | (r << 8) | index
    header[1] = (session << 8) | sources
    header[2] = first
    return this.maker.make(symbols, blocks, sources, repairs, header, framed)
  }

  /** The block goes on: its new sources leave, copies of them stay. Where there were no slots for those it ends here. */
  private copyAndSend(): void {
    const { outlet, framing, counters, symbols, count, sent } = this
    if (sent === count) return
    counters.source_packets.add(count - sent)
    const copied = this.r === 0 ? count - sent : framing.copied
    outlet.pushAll(symbols, sent, sent + copied)
    if (this.r > 0) for (let n = 0; n < copied; n++) symbols[sent + n] = framing.copies[n]
    this.sent = sent + copied
    if (this.sent === count) return
    counters.unprotected_packets.add(count - this.covered)
    outlet.pushAll(symbols, this.sent, count)
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
