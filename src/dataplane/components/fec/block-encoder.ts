/** Frames source packets into blocks and makes the repair packets of each block when it is full or closed. */
import { cauchyMatrix } from '../../codes/cauchy.ts'
import type { Batch } from '../../engine/batch.ts'
import type { RunClock } from '../../engine/clock.ts'
import type { Counter } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Timer } from '../../engine/timers.ts'
import { native } from '../../native/native.ts'
import { BLOCK_HEADER_BYTES, KIND_REPAIR, KIND_SOURCE, SYMBOL_AT, writeBlockHeader } from './block-header.ts'

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

/** Symbols of full blocks that wait for their repairs, so that those of many are made in one call; of large blocks it is one. */
const WAITING_SYMBOLS = 512

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
  /** Packets, block by block: k sources and room for r repairs. First the full blocks that wait, behind them the unfinished one. */
  private readonly symbols: Int32Array
  private readonly mostWaiting: number
  private waiting = 0
  /** Sources of the unfinished block. */
  private count = 0
  /** How many of the first sources in `symbols` have been sent; where there are repairs to come, copies stand there. */
  private sent = 0
  /** Id of the unfinished block. */
  private block: number
  private readonly clock: RunClock
  private readonly flushAfter: number
  private readonly timer: Timer
  /** When the block's last source came. */
  private lastAt = 0

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
    this.mostWaiting = Math.max(1, Math.floor(WAITING_SYMBOLS / (k + r)))
    this.symbols = new Int32Array((this.mostWaiting + 1) * (k + r))
  }

  /** Takes the packets of a batch; they leave at once, with the repairs of every block that they fill. */
  input(batch: Batch): void {
    const { handles, length } = batch
    for (let i = 0; i < length; i++) {
      if (!this.frame(handles[i]) || this.count < this.k) continue
      this.count = 0
      this.block = (this.block + 1) | 0
      if (++this.waiting === this.mostWaiting) this.sendWaiting()
    }
    this.sendWaiting()
    if (this.count > 0) {
      this.copyAndSend()
      if (this.flushAfter > 0) this.awaitSilence()
    }
    this.outlet.flush()
  }

  private awaitSilence(): void {
    this.lastAt = this.clock.now
    if (!this.timer.armed) this.timer.at(this.lastAt + this.flushAfter)
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
    const { count } = this
    if (count === 0) return
    this.count = 0
    this.send(1, count, this.shortened(count), this.block)
    this.block = (this.block + 1) | 0
    this.outlet.flush()
  }

  /** Slots of the unfinished block's copies, unless silence will close it. */
  get kept(): number {
    return this.timer.armed || this.r === 0 ? 0 : this.sent
  }

  /** Gives back the copies. */
  stop(): void {
    this.timer.cancel()
    this.releaseCopies()
    this.count = 0
  }

  private frame(packet: number): boolean {
    const { packets, k, r } = this
    const payload = packets.length[packet]
    const at = payload > 0xffff ? -1 : packets.prepend(packet, BLOCK_HEADER_BYTES)
    if (at < 0) {
      packets.release(packet)
      this.counters.no_room_packets.add(1)
      return false
    }
    const { view } = packets
    const index = this.count++
    writeBlockHeader(view, at, KIND_SOURCE, k, r, index, this.session, 0, this.block)
    view.setUint16(at + SYMBOL_AT, payload)
    this.symbols[this.waiting * (k + r) + index] = packet
    return true
  }

  /** Sends the full blocks. */
  private sendWaiting(): void {
    const { waiting, symbols, k, r } = this
    if (waiting === 0) return
    const rest = waiting * (k + r)
    this.waiting = 0
    this.send(waiting, k, this.matrix, (this.block - waiting) | 0)
    symbols.copyWithin(0, rest, rest + this.count)
  }

  /** Makes the repairs of the first `blocks` blocks, of `sources` each, and sends what has not been sent of those; `first` is the id of the first. */
  private send(blocks: number, sources: number, matrix: Uint8Array, first: number): void {
    const { r, symbols, counters, outlet, sent } = this
    let made = r === 0 ? 0 : native.gfMultiplyPackets(this.memory, matrix, symbols, blocks, sources, r, SYMBOL_AT)
    counters.repair_packets.add(made)
    if (made < blocks * r) counters.unsent_repair_packets.add(blocks * r - made)
    counters.source_packets.add(blocks * sources - sent)
    for (let n = 0; n < blocks; n++) {
      const repairs = Math.min(r, made)
      const end = n * (sources + r) + sources
      made -= repairs
      this.finishRepairs(end, repairs, sources, (first + n) | 0)
      for (let at = n === 0 ? sent : end - sources; at < end + repairs; at++) outlet.push(symbols[at])
    }
    this.releaseCopies()
  }

  /** Writes the headers of the repairs from `at` on. */
  private finishRepairs(at: number, count: number, sources: number, block: number): void {
    const { packets, symbols, k, r, session } = this
    const { view, offset } = packets
    for (let j = 0; j < count; j++) {
      const repair = symbols[at + j]
      writeBlockHeader(view, offset[repair], KIND_REPAIR, k, r, j, session, sources, block)
    }
  }

  /** The encoding matrix for as many sources. */
  private shortened(count: number): Uint8Array {
    const { k, r, matrix, shortMatrix } = this
    for (let j = 0; j < r; j++) {
      for (let i = 0; i < count; i++) shortMatrix[j * count + i] = matrix[j * k + i]
    }
    return shortMatrix
  }

  /** The block goes on in a later batch: its new sources are copied before they leave. */
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
    counters.unprotected_packets.add(count)
    for (let at = this.sent; at < count; at++) outlet.push(symbols[at])
    this.releaseCopies()
    this.count = 0
    this.block = (this.block + 1) | 0
  }

  private releaseCopies(): void {
    if (this.r > 0) for (let at = 0; at < this.sent; at++) this.packets.release(this.symbols[at])
    this.sent = 0
  }
}
