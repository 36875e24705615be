/** Frames source packets into blocks and makes random linear combinations of a block's sources, at the points that a schedule names. */
import type { Batch } from '../../engine/batch.ts'
import type { RunClock } from '../../engine/clock.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import { Random } from '../../engine/random.ts'
import type { Timer } from '../../engine/timers.ts'
import { native } from '../../native/native.ts'
import type { BlockEncoderContext, BlockEncoderCounters } from './block-encoder.ts'
import { LENGTH_BYTES, SYMBOL_AT, writeBlockHeader } from './block-header.ts'
import { COMBINATION_AT, COMBINATION_HEADER_BYTES, type Kinds, SEED_AT, SEED_BYTES } from './combination-header.ts'

/** Repairs that are made when so many sources of a block have come. */
export interface RepairPoint {
  readonly sources: number
  readonly repairs: number
}

export interface LinearBlockOptions {
  readonly kinds: Kinds
  /** Sources strictly rising, 255 at most; the last point ends the block. At most 255 repairs in all. */
  readonly schedule: readonly RepairPoint[]
  /** 24 bits that no other encoder before the same decoder has. */
  readonly session: number
  /** Of the repairs' own seeds. */
  readonly seed: number
  /** When an unfinished block is closed: so long after its last source, ns; 0: never. */
  silence: number
  /** So long after its first source, ns; 0: never. */
  age: number
}

/**
 * Sources of a block that begins and ends in one batch are combined where they lie, before they are sent. Those that a later
 * repair of their block covers are copied, into slots of their own, since whoever comes next may change the packets.
 */
export class LinearBlockEncoder {
  private readonly packets: Packets
  private readonly memory: number
  private readonly outlet: Outlet
  private readonly counters: BlockEncoderCounters
  private readonly kinds: Kinds
  private readonly schedule: readonly RepairPoint[]
  private readonly k: number
  private readonly r: number
  private readonly session: number
  private readonly random: Random
  /** Place in the slab of each source symbol of the block; behind them those of the repair symbols being made. */
  private readonly places: Int32Array
  private readonly lengths: Int32Array
  private readonly seeds: Int32Array
  private readonly repairs: Int32Array
  /** Framed and not yet sent, the last of the block's sources so far. */
  private readonly fresh: Int32Array
  /** Copies of the sources before those. */
  private readonly copies: Int32Array
  private readonly clock: RunClock
  private readonly timer: Timer
  private silence = 0
  private age = 0
  private block = 0
  /** Sources of this block, and of the one before. */
  private count = 0
  private previous = 0
  /** The next point of the schedule, how many sources the last repairs covered, and how many repairs there are of the block. */
  private point = 0
  private covered = 0
  private made = 0
  private firstAt = 0
  private lastAt = 0
  private freshCount = 0
  private copyCount = 0
  private longest = 0
  /** Where in its slot the longest symbol begins: repairs, as long, find the same room around them in theirs. */
  private longestAt = 0
  private uneven = false

  constructor(
    { packets, clock, memory, timer }: BlockEncoderContext,
    outlet: Outlet,
    counters: BlockEncoderCounters,
    { kinds, schedule, session, seed, silence, age }: LinearBlockOptions,
  ) {
    this.packets = packets
    this.memory = memory()
    this.clock = clock
    this.timer = timer(() => this.closeDue())
    this.outlet = outlet
    this.counters = counters
    this.kinds = kinds
    this.schedule = schedule
    this.k = schedule[schedule.length - 1].sources
    this.r = schedule.reduce((sum, { repairs }) => sum + repairs, 0)
    this.session = session & 0xffffff
    this.random = new Random(seed)
    this.places = new Int32Array(this.k + this.r)
    this.lengths = new Int32Array(this.k)
    this.seeds = new Int32Array(this.r)
    this.repairs = new Int32Array(this.r)
    this.fresh = new Int32Array(this.k)
    this.copies = new Int32Array(this.k)
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

  /** Takes the packets of a batch; they leave at once, each repair behind the last source that it covers. */
  input(batch: Batch): void {
    const { handles, length } = batch
    for (let i = 0; i < length; i++) {
      if (this.frame(handles[i]) && this.count === this.schedule[this.point].sources) this.repair()
    }
    if (this.freshCount > 0) this.copyAndSend()
    if (this.count > 0) {
      this.lastAt = this.clock.now
      if (!this.timer.armed) this.arm()
    }
    this.outlet.flush()
  }

  /** Ends an unfinished block, with the next repairs of the schedule when a source has come since the last. */
  flush(): void {
    if (this.count === 0) return
    if (this.count > this.covered) this.sendRepairs(this.schedule[this.point].repairs)
    this.nextBlock()
    this.outlet.flush()
  }

  /** Slots of the unfinished block's copies, unless time will close it. */
  get kept(): number {
    return this.timer.armed ? 0 : this.copyCount
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
    const { packets, k } = this
    const payload = packets.length[packet]
    const front = payload > 0xffff ? -1 : packets.prepend(packet, COMBINATION_HEADER_BYTES)
    if (front < 0) {
      packets.release(packet)
      this.counters.no_room_packets.add(1)
      return false
    }
    // The room that the longer header of a repair takes stays free in front of a source.
    packets.trimFront(packet, SEED_BYTES)
    const at = front + SEED_BYTES
    const index = this.count++
    if (index === 0) this.firstAt = this.clock.now
    const { view } = packets
    const closing = this.kinds.tellsPrevious ? this.previous : 0
    writeBlockHeader(view, at, this.kinds.source, k, this.r, index, this.session, closing, this.block)
    view.setUint16(at + SYMBOL_AT, payload)
    const bytes = payload + LENGTH_BYTES
    this.places[index] = at + SYMBOL_AT
    this.lengths[index] = bytes
    if (index === 0 || bytes > this.longest) {
      if (index > 0) this.uneven = true
      this.longest = bytes
      this.longestAt = at + SYMBOL_AT - packet * packets.slotBytes
    } else if (bytes !== this.longest) this.uneven = true
    this.fresh[this.freshCount++] = packet
    return true
  }

  /** A point of the schedule is reached. */
  private repair(): void {
    const { block } = this
    this.sendRepairs(this.schedule[this.point].repairs)
    // It has ended where there were no slots for copies.
    if (this.block === block && ++this.point === this.schedule.length) this.nextBlock()
  }

  /** Sends the sources at hand and repairs over all of the block. */
  private sendRepairs(wanted: number): void {
    const last = this.freshCount > 0 ? this.fresh[this.freshCount - 1] : this.copies[this.copyCount - 1]
    const made = this.makeRepairs(wanted, last)
    this.covered = this.count
    // A later point covers them again.
    if (this.point + 1 < this.schedule.length && this.count < this.k) this.copyAndSend()
    else this.sendFresh()
    for (let j = 0; j < made; j++) this.outlet.push(this.repairs[j])
  }

  /** Returns how many repairs there are; fewer than wanted when slots have run out. `like` gives them its annotations. */
  private makeRepairs(wanted: number, like: number): number {
    const { packets, count, longest, longestAt, repairs, seeds, places, lengths } = this
    const { view } = packets
    let made = 0
    for (; made < wanted; made++) {
      const repair = packets.allocate()
      if (repair < 0) break
      const symbol = repair * packets.slotBytes + longestAt
      const at = symbol - COMBINATION_AT
      packets.offset[repair] = at
      packets.length[repair] = COMBINATION_AT + longest
      packets.annotateAs(repair, like)
      writeBlockHeader(view, at, this.kinds.repair, this.k, this.r, this.made + made, this.session, count, this.block)
      const seed = this.random.bits()
      view.setInt32(at + SEED_AT, seed)
      seeds[made] = seed
      repairs[made] = repair
      places[count + made] = symbol
    }
    // Those that could not be made have their indices nevertheless: they are as good as lost.
    this.made += wanted
    this.counters.unsent_repair_packets.add(wanted - made)
    this.counters.repair_packets.add(made)
    if (made === 0) return 0
    if (this.uneven) native.gfRandomMultiply(this.memory, seeds, places, count, made, longest, lengths)
    else native.gfRandomMultiply(this.memory, seeds, places, count, made, longest)
    return made
  }

  private sendFresh(): void {
    for (let i = 0; i < this.freshCount; i++) this.outlet.push(this.fresh[i])
    this.counters.source_packets.add(this.freshCount)
    this.freshCount = 0
  }

  /** The block goes on: its new sources are copied before they leave. Without slots for that it ends here. */
  private copyAndSend(): void {
    const { packets, fresh, freshCount } = this
    let whole = true
    let index = this.count - freshCount
    for (let i = 0; whole && this.r > 0 && i < freshCount; i++, index++) {
      const copy = packets.clone(fresh[i])
      if (copy < 0) {
        whole = false
        break
      }
      this.copies[this.copyCount++] = copy
      this.places[index] = packets.offset[copy] + SYMBOL_AT
    }
    this.sendFresh()
    if (whole) return
    this.counters.unprotected_packets.add(this.count - this.covered)
    this.nextBlock()
  }

  private nextBlock(): void {
    this.releaseCopies()
    this.block = (this.block + 1) | 0
    this.previous = this.count
    this.count = 0
    this.point = 0
    this.covered = 0
    this.made = 0
    this.uneven = false
  }

  private releaseCopies(): void {
    for (let i = 0; i < this.copyCount; i++) this.packets.release(this.copies[i])
    this.copyCount = 0
  }
}
