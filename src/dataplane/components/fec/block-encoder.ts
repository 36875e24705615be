/** Frames source packets into blocks and makes the repair packets of each block when it is full or closed. */
import { cauchyMatrix } from '../../codes/cauchy.ts'
import type { Batch } from '../../engine/batch.ts'
import type { RunClock } from '../../engine/clock.ts'
import type { Counter } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Timer } from '../../engine/timers.ts'
import { native } from '../../native/native.ts'
import {
  BLOCK_HEADER_BYTES,
  KIND_REPAIR,
  KIND_SOURCE,
  LENGTH_BYTES,
  SYMBOL_AT,
  writeBlockHeader,
} from './block-header.ts'

export interface BlockEncoderOptions {
  /** Sources of a block. */
  k: number
  /** Repairs of a block, k + r ≤ 255. */
  r: number
  /** 24 bits that no other encoder before the same decoder has. */
  session: number
  /** Id of the first block. */
  block: number
  /** Silence after which an unfinished block is closed, ns; 0: never. */
  flushAfter: number
}

export interface BlockEncoderContext {
  readonly packets: Packets
  readonly clock: RunClock
  memory(): number
  timer(fire: () => void): Timer
}

export interface BlockEncoderCounters {
  readonly source_packets: Counter
  readonly repair_packets: Counter
  readonly no_room_packets: Counter
  readonly unsent_repair_packets: Counter
  readonly unprotected_packets: Counter
}

/**
 * Sources that come and go in one batch are multiplied where they lie, before they are sent. Only those of a block
 * that goes on in a later batch are copied, into slots of their own, since whoever comes next may change the packets.
 */
export class BlockEncoder {
  private readonly packets: Packets
  private readonly memory: number
  private readonly outlet: Outlet
  private readonly counters: BlockEncoderCounters
  private readonly k: number
  private readonly r: number
  private readonly session: number
  private readonly matrix: Uint8Array
  private readonly shortMatrix: Uint8Array
  /** Place in the slab of each source symbol of the block; behind them, once it is closed, those of the repair symbols. */
  private readonly places: Int32Array
  /** Bytes of each source symbol. */
  private readonly lengths: Int32Array
  private readonly repairs: Int32Array
  /** Framed and not yet sent, the last of the block's sources so far. */
  private readonly fresh: Int32Array
  /** Copies of the sources before those. */
  private readonly copies: Int32Array
  private readonly clock: RunClock
  private readonly flushAfter: number
  private readonly timer: Timer
  private block: number
  private count = 0
  /** When the block's last source came. */
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
    options: BlockEncoderOptions,
  ) {
    const { k, r } = options
    this.packets = packets
    this.memory = memory()
    this.clock = clock
    // Without repairs there is nothing that closing a block would send.
    this.flushAfter = r > 0 ? options.flushAfter : 0
    this.timer = timer(() => this.flushSilent())
    this.outlet = outlet
    this.counters = counters
    this.k = k
    this.r = r
    this.session = options.session & 0xffffff
    this.block = options.block | 0
    this.matrix = cauchyMatrix(k, r)
    this.shortMatrix = new Uint8Array(k * r)
    this.places = new Int32Array(k + r)
    this.lengths = new Int32Array(k)
    this.fresh = new Int32Array(k)
    this.copies = new Int32Array(k)
    this.repairs = new Int32Array(r)
  }

  /** Takes the packets of a batch; they leave at once, with the repairs of every block that they fill. */
  input(batch: Batch): void {
    const { handles, length } = batch
    for (let i = 0; i < length; i++) {
      if (this.frame(handles[i]) && this.count === this.k) this.close()
    }
    if (this.freshCount > 0) this.copyAndSend()
    if (this.flushAfter > 0 && this.count > 0) {
      this.lastAt = this.clock.now
      if (!this.timer.armed) this.timer.at(this.lastAt + this.flushAfter)
    }
    this.outlet.flush()
  }

  /** The timer is armed once in a while, not for each batch: it looks whether it has been silent since. */
  private flushSilent(): void {
    if (this.count === 0) return
    const due = this.lastAt + this.flushAfter
    if (due > this.clock.now) this.timer.at(due)
    else this.flush()
  }

  /** Ends an unfinished block with the repairs due. */
  flush(): void {
    if (this.count === 0) return
    this.close()
    this.outlet.flush()
  }

  /** Slots of the unfinished block's copies, unless silence will close it. */
  get kept(): number {
    return this.timer.armed ? 0 : this.copyCount
  }

  /** Gives back the copies. */
  stop(): void {
    this.timer.cancel()
    this.releaseCopies()
    this.count = 0
  }

  private frame(packet: number): boolean {
    const { packets, k } = this
    const payload = packets.length[packet]
    const at = payload > 0xffff ? -1 : packets.prepend(packet, BLOCK_HEADER_BYTES)
    if (at < 0) {
      packets.release(packet)
      this.counters.no_room_packets.add(1)
      return false
    }
    const { view } = packets
    const index = this.count++
    writeBlockHeader(view, at, KIND_SOURCE, k, this.r, index, this.session, 0, this.block)
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

  /** Sends the sources at hand and the block's repairs; begins the next block. */
  private close(): void {
    const last = this.freshCount > 0 ? this.fresh[this.freshCount - 1] : this.copies[this.copyCount - 1]
    const made = this.makeRepairs(last)
    this.sendFresh()
    for (let j = 0; j < made; j++) this.outlet.push(this.repairs[j])
    this.nextBlock()
  }

  /** Returns how many repairs there are; fewer than r when slots have run out. `like` gives them its annotations. */
  private makeRepairs(like: number): number {
    const { packets, r, count, longest, longestAt, repairs, places } = this
    let made = 0
    for (; made < r; made++) {
      const repair = packets.allocate()
      if (repair < 0) break
      const at = repair * packets.slotBytes + longestAt
      packets.offset[repair] = at - SYMBOL_AT
      packets.length[repair] = SYMBOL_AT + longest
      packets.annotateAs(repair, like)
      writeBlockHeader(packets.view, at - SYMBOL_AT, KIND_REPAIR, this.k, r, made, this.session, count, this.block)
      repairs[made] = repair
      places[count + made] = at
    }
    if (made < r) this.counters.unsent_repair_packets.add(r - made)
    if (made === 0) return 0
    this.counters.repair_packets.add(made)
    const { memory, lengths } = this
    const matrix = this.rows(made)
    if (this.uneven) native.gfMatrixMultiply(memory, matrix, places, count, made, longest, lengths)
    else native.gfMatrixMultiply(memory, matrix, places, count, made, longest)
    return made
  }

  /** The encoding matrix for as many sources as the block has. */
  private rows(made: number): Uint8Array {
    const { k, count, matrix, shortMatrix } = this
    if (count === k) return matrix
    for (let j = 0; j < made; j++) {
      for (let i = 0; i < count; i++) shortMatrix[j * count + i] = matrix[j * k + i]
    }
    return shortMatrix
  }

  private sendFresh(): void {
    for (let i = 0; i < this.freshCount; i++) this.outlet.push(this.fresh[i])
    this.counters.source_packets.add(this.freshCount)
    this.freshCount = 0
  }

  /** The block goes on in a later batch: its new sources are copied before they leave. */
  private copyAndSend(): void {
    if (this.r > 0) {
      const { packets, fresh, freshCount } = this
      let index = this.count - freshCount
      for (let i = 0; i < freshCount; i++, index++) {
        const copy = packets.clone(fresh[i])
        if (copy < 0) {
          this.counters.unprotected_packets.add(this.count)
          this.nextBlock()
          break
        }
        this.copies[this.copyCount++] = copy
        this.places[index] = packets.offset[copy] + SYMBOL_AT
      }
    }
    this.sendFresh()
  }

  private nextBlock(): void {
    this.releaseCopies()
    this.block = (this.block + 1) | 0
    this.count = 0
    this.uneven = false
  }

  private releaseCopies(): void {
    for (let i = 0; i < this.copyCount; i++) this.packets.release(this.copies[i])
    this.copyCount = 0
  }
}
