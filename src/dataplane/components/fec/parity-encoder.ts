/** Frames source packets into blocks of rows and columns, and sends the parity of each line behind its last source. */
import { BATCH_CAPACITY, type Batch } from '../../engine/batch.ts'
import type { RunClock } from '../../engine/clock.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Timer } from '../../engine/timers.ts'
import type { BlockEncoderCounters } from './block-counters.ts'
import type { BlockEncoderContext } from './block-encoder.ts'
import { LENGTH_BYTES } from './block-header.ts'
import {
  COLUMN_PARITY,
  GRID_SOURCE,
  PARITY_HEADER_BYTES,
  PARITY_SYMBOL_AT,
  ROW_PARITY,
  writeParityHeader,
} from './parity-header.ts'
import { LineSums, ParitySums } from './parity-sums.ts'

export interface ParityOptions {
  readonly columns: number
  readonly rows: number
  /** 24 bits that no other encoder before the same decoder has. */
  readonly session: number
  /** Silence after which an unfinished block is closed, ns; 0: never. */
  readonly silence: number
}

/** The row at hand is line 0 of the sums, column c is line 1 + c. */
const ROW = 0
const FIRST_COLUMN = 1

/** Each source is added to the sums of its row and column as it passes, so nothing is copied: the sums become the parity packets. */
export class ParityEncoder {
  private readonly packets: Packets
  private readonly outlet: Outlet
  private readonly counters: BlockEncoderCounters
  private readonly options: ParityOptions
  private readonly adding: ParitySums
  private readonly sums: LineSums
  private readonly clock: RunClock
  private readonly timer: Timer
  /** What leaves at the end of the batch, in order. */
  private readonly leaving: Int32Array
  private leavingCount = 0
  private silence = 0
  private block = 0
  private count = 0
  private lastAt = 0
  /** The last source, while it has not left. */
  private last = -1

  constructor(
    { packets, clock, memory, timer }: BlockEncoderContext,
    outlet: Outlet,
    counters: BlockEncoderCounters,
    options: ParityOptions,
  ) {
    this.packets = packets
    this.outlet = outlet
    this.counters = counters
    this.options = options
    this.adding = new ParitySums(packets, memory())
    this.sums = new LineSums(FIRST_COLUMN + options.columns)
    this.clock = clock
    this.timer = timer(() => this.closeDue())
    // Two sources at least make a row, two rows a column; what was there before the batch may be one row and one block more.
    this.leaving = new Int32Array(2 * BATCH_CAPACITY + options.columns + 1)
    this.silence = options.silence
  }

  /** Changes after which silence an unfinished block is closed, ns; 0: never. Holds for the block at hand too. */
  closeAfter(silence: number): void {
    this.silence = silence
    this.timer.cancel()
    this.arm()
  }

  /** Takes the packets of a batch; they leave at once, with the parities of every line that they fill. */
  input(batch: Batch): void {
    const { handles, length } = batch
    const { columns, rows } = this.options
    for (let i = 0; i < length; i++) {
      if (!this.frame(handles[i])) continue
      if (this.count % columns === 0) this.endRow()
      if (this.count === columns * rows) this.endBlock()
    }
    this.leave()
    if (this.count > 0) {
      this.lastAt = this.clock.now
      if (!this.timer.armed) this.arm()
    }
    this.outlet.flush()
  }

  /** Ends an unfinished block with the parities of what is there. */
  flush(): void {
    if (this.count === 0) return
    if (this.count % this.options.columns !== 0) this.endRow()
    this.endBlock()
    this.leave()
    this.outlet.flush()
  }

  /** Slots of the unfinished block's sums, unless silence will close it. */
  get kept(): number {
    return this.timer.armed ? 0 : this.adding.held
  }

  /** Gives the sums back. */
  stop(): void {
    this.timer.cancel()
    for (let line = 0; line < this.sums.slot.length; line++) this.adding.release(this.sums, line)
    this.adding.run()
    this.count = 0
  }

  private arm(): void {
    if (this.count > 0 && this.silence > 0) this.timer.at(this.lastAt + this.silence)
  }

  /** The timer is armed once in a while, not for each batch: it looks whether it has been silent since. */
  private closeDue(): void {
    if (this.lastAt + this.silence > this.clock.now) this.arm()
    else this.flush()
  }

  private frame(packet: number): boolean {
    const { packets, adding, sums } = this
    const { columns, rows, session } = this.options
    const payload = packets.length[packet]
    const at = payload > 0xffff ? -1 : packets.prepend(packet, PARITY_HEADER_BYTES)
    if (at < 0) {
      packets.release(packet)
      this.counters.no_room_packets.add(1)
      return false
    }
    const index = this.count++
    writeParityHeader(packets.view, at, GRID_SOURCE, columns, rows, 0, session, this.block, index)
    const symbol = at + PARITY_SYMBOL_AT
    packets.view.setUint16(symbol, payload)
    const column = FIRST_COLUMN + (index % columns)
    adding.add(sums, ROW, packet, symbol, payload + LENGTH_BYTES)
    adding.add(sums, column, packet, symbol, payload + LENGTH_BYTES)
    if (sums.slot[ROW] < 0 && sums.slot[column] < 0) this.counters.unprotected_packets.add(1)
    this.leaving[this.leavingCount++] = packet
    this.last = packet
    this.counters.source_packets.add(1)
    return true
  }

  private endRow(): void {
    const row = Math.floor((this.count - 1) / this.options.columns)
    this.endLine(ROW, ROW_PARITY, row)
  }

  private endBlock(): void {
    const columns = Math.min(this.options.columns, this.count)
    for (let c = 0; c < columns; c++) this.endLine(FIRST_COLUMN + c, COLUMN_PARITY, c)
    this.block = (this.block + 1) | 0
    this.count = 0
  }

  /** The sum of a line becomes its parity packet. */
  private endLine(line: number, kind: number, number: number): void {
    const { packets } = this
    const { columns, rows, session } = this.options
    const like = this.like()
    const parity = this.adding.take(this.sums, line)
    if (parity < 0) {
      this.counters.unsent_repair_packets.add(1)
      return
    }
    writeParityHeader(
      packets.view,
      packets.offset[parity],
      kind,
      columns,
      rows,
      number,
      session,
      this.block,
      this.count,
    )
    if (like >= 0) packets.annotateAs(parity, like)
    this.leaving[this.leavingCount++] = parity
    this.counters.repair_packets.add(1)
  }

  /** The packet whose annotations a parity gets: the last source or, once that has left, what was noted of it; -1: nothing was. */
  private like(): number {
    if (this.last >= 0) return this.last
    // The columns' sums go in their order, so that the last one has it still.
    const { slot } = this.sums
    for (let line = slot.length - 1; line >= FIRST_COLUMN; line--) if (slot[line] > 0) return slot[line] - 1
    return -1
  }

  private leave(): void {
    this.adding.run()
    if (this.count > 0 && this.last >= 0) {
      const { last } = this
      this.last = -1
      const note = this.like()
      if (note >= 0) this.packets.annotateAs(note, last)
    }
    this.last = -1
    for (let i = 0; i < this.leavingCount; i++) this.outlet.push(this.leaving[i])
    this.leavingCount = 0
  }
}
