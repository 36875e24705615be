/** Passes source packets on and recovers the one that is missing in a row or column, again and again while that leaves one in another. */
import { NOT_ONE } from '../../codes/parity-grid.ts'
import { BATCH_CAPACITY, type Batch } from '../../engine/batch.ts'
import type { Counter } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import { native } from '../../native/native.ts'
import type { BlockDecoderCounters } from './block-counters.ts'
import { LENGTH_BYTES } from './block-header.ts'
import { PARITY_HEADER_BYTES, PARITY_SYMBOL_AT, ParityHeader } from './parity-header.ts'
import { ParityKeeper } from './parity-keeper.ts'
import { ParitySessions } from './parity-sessions.ts'
import { ParitySums } from './parity-sums.ts'
import {
  DONE,
  OPEN,
  ParityBlock,
  type ParityWindow,
  RECOVERED,
  SEEN,
  SOURCES_TO_BELIEVE,
  UNKNOWN,
  UNSEEN,
} from './parity-window.ts'

/** Stands for every block that has been given up. */
const NEVER = new ParityBlock(2, 2)

/**
 * A source is added to the sums of its row and column as it passes, so that nothing is copied. A parity waits until its line lacks one source:
 * then it becomes that source, less the sum of the others. What a batch brought is added at its end, before it leaves.
 */
export class ParityDecoder {
  private readonly packets: Packets
  private readonly memory: number
  private readonly outlet: Outlet
  private readonly counters: BlockDecoderCounters
  private readonly adding: ParitySums
  private readonly keeper: ParityKeeper
  private readonly sessions = new ParitySessions((window) => this.keeper.leave(window))
  private readonly header = new ParityHeader()
  /** Sources that leave at the end of the batch. */
  private readonly leaving = new Int32Array(BATCH_CAPACITY)
  private leavingCount = 0
  /** Lines that lack one source and have their parity, of blocks that may have been given up since. */
  private readonly readyBlocks: ParityBlock[] = []
  private readonly readyLines: number[] = []
  private ready = 0
  private readonly recovered: number[] = []
  /** The last packet taken, whose annotations recovered packets get. */
  private last = -1

  constructor(packets: Packets, memory: number, outlet: Outlet, counters: BlockDecoderCounters) {
    this.packets = packets
    this.memory = memory
    this.outlet = outlet
    this.counters = counters
    this.adding = new ParitySums(packets, memory)
    this.keeper = new ParityKeeper(packets, counters, this.adding)
  }

  /** Sessions followed now. */
  get followed(): number {
    return this.sessions.followed
  }

  /** Share of packets, sources and parities, that did not come before their block left the window. */
  get loss(): number {
    return this.keeper.loss.value
  }

  /** Slots of sums and parities of unfinished blocks. */
  get kept(): number {
    return this.keeper.kept
  }

  /** Takes the packets of a batch. */
  input(batch: Batch): void {
    const { handles, length } = batch
    const { outlet, leaving } = this
    this.keeper.makeRoom(this.sessions.windows)
    for (let i = 0; i < length; i++) this.take(handles[i])
    this.adding.run()
    // What is recovered gets annotations of a packet that has not left yet.
    const recovered = this.recover()
    for (let i = 0; i < this.leavingCount; i++) outlet.push(leaving[i])
    this.leavingCount = 0
    for (let i = 0; i < recovered; i++) outlet.push(this.recovered[i])
    outlet.flush()
  }

  /** Gives up every block and forgets every session. */
  reset(): void {
    this.sessions.reset()
    this.adding.run()
  }

  /** The run ends. */
  stop(): void {
    for (const window of this.sessions.windows) if (window) this.keeper.leave(window, this.counters.held_at_end_packets)
    this.adding.run()
  }

  private discard(packet: number, counter: Counter): void {
    this.packets.release(packet)
    counter.add(1)
  }

  private take(packet: number): void {
    const { packets, counters, header } = this
    if (!header.read(packets.view, packets.offset[packet], packets.length[packet])) {
      this.discard(packet, counters.malformed_packets)
      return
    }
    const { isSource, session, columns, rows } = header
    const window = this.sessions.find(session, columns, rows, header.block)
    const block = window ? this.locate(window, header.block, isSource) : null
    if (!window || !block) {
      this.passUnfollowed(packet, isSource)
    } else if (block.state === UNKNOWN) {
      this.discard(packet, counters.late_packets)
    } else if (isSource) {
      window.heard++
      this.takeSource(block, packet, header.count)
    } else this.takeParity(block, packet, header.line, header.count)
  }

  /** No window takes the packet. */
  private passUnfollowed(packet: number, isSource: boolean): void {
    if (!isSource) {
      this.discard(packet, this.counters.unfollowed_repair_packets)
      return
    }
    this.packets.trimFront(packet, PARITY_HEADER_BYTES)
    this.counters.unfollowed_packets.add(1)
    this.leaving[this.leavingCount++] = packet
  }

  /** The block of that id, one that is UNKNOWN when it is long given up, null when it is too far ahead to be believed. */
  private locate(window: ParityWindow, id: number, isSource: boolean): ParityBlock | null {
    const ahead = window.ahead(id)
    const isBehind = ahead <= -window.span
    if (isBehind && window.proven) return NEVER
    if (isBehind || ahead > window.span) {
      if (!isSource) return null
      window.noteLeap(id)
      if (window.proven && window.leaping < SOURCES_TO_BELIEVE) return null
      if (isBehind) this.keeper.leave(window)
      else this.keeper.leap(window, window.leapTo)
      window.open(id, true)
    } else if (isSource) for (let steps = ahead; steps > 0; steps--) this.keeper.advance(window)
    if (isSource) window.leaping = 0
    return window.begin(id)
  }

  private takeSource(block: ParityBlock, packet: number, index: number): void {
    const { packets, counters } = this
    const place = packets.trimFront(packet, PARITY_HEADER_BYTES) + PARITY_SYMBOL_AT
    const seen = block.sources[index]
    if (seen === SEEN) {
      this.discard(packet, counters.duplicate_packets)
      return
    }
    block.sources[index] = SEEN
    block.arrived++
    if (index >= block.top) block.top = index + 1
    if (seen === RECOVERED) {
      if (block.crc[index] === native.crc32c(this.memory, place + LENGTH_BYTES, packets.length[packet])) {
        this.discard(packet, counters.late_packets)
        return
      }
      counters.wrong_recoveries.add(1)
    }
    if (seen === UNSEEN && block.state === OPEN) {
      if (!this.fill(block, index, packet, place, packets.length[packet] + LENGTH_BYTES)) counters.unkept_packets.add(1)
    }
    this.leaving[this.leavingCount++] = packet
    this.last = packet
  }

  /** A source of a block is there: adds its symbol to the sums of its lines. False: one had no slot for its sum. */
  private fill(block: ParityBlock, index: number, packet: number, place: number, bytes: number): boolean {
    const { grid } = block
    grid.fill(index)
    if (grid.total === 0) {
      this.keeper.close(block, DONE, this.counters.redundant_packets)
      return true
    }
    const byRow = this.fillLine(block, grid.rowOf(index), packet, place, bytes)
    return this.fillLine(block, grid.columnOf(index), packet, place, bytes) && byRow
  }

  private fillLine(block: ParityBlock, line: number, packet: number, place: number, bytes: number): boolean {
    if (block.grid.missing[line] === 0) {
      this.keeper.closeLine(block, line, this.counters.redundant_packets)
      return true
    }
    const added = this.adding.add(block.sums, line, packet, place, bytes)
    this.lookAt(block, line)
    return added
  }

  private takeParity(block: ParityBlock, packet: number, line: number, count: number): void {
    const { packets, counters } = this
    if (block.parities[line] !== 0) {
      this.discard(packet, counters.duplicate_packets)
      return
    }
    packets.trimFront(packet, PARITY_SYMBOL_AT)
    const { columns, rows } = block.grid
    const full = line < rows ? (line + 1) * columns : columns * rows
    const tooShort = block.sums.slot[line] > 0 && packets.length[packet] < block.sums.bytes[line]
    if (tooShort || (count < full && !block.endAt(count))) {
      this.discard(packet, counters.malformed_packets)
      return
    }
    block.parityCount++
    if (count > block.covered) block.covered = count
    if (block.state !== OPEN) {
      block.parities[line] = -1
      this.discard(packet, block.state === DONE ? counters.redundant_packets : counters.spent_packets)
      return
    }
    this.keeper.keepParity(block, line, packet)
    if (block.grid.total === 0) this.keeper.close(block, DONE, counters.redundant_packets)
    else if (count < full) for (let other = 0; other < rows + columns; other++) this.lookAt(block, other)
    else this.lookAt(block, line)
    if (block.parities[line] > 0) this.last = packet
  }

  /** Whether a line is complete, or can be completed by its parity. */
  private lookAt(block: ParityBlock, line: number): void {
    const missing = block.grid.missing[line]
    if (missing === 0) this.keeper.closeLine(block, line, this.counters.redundant_packets)
    else if (block.parities[line] > 0 && block.sums.slot[line] < 0)
      this.keeper.dropParity(block, line, this.counters.spent_packets)
    else if (missing === 1 && block.parities[line] > 0) {
      this.readyBlocks[this.ready] = block
      this.readyLines[this.ready++] = line
    }
  }

  /** Recovers what can be, and what that makes possible; returns how many packets `recovered` has. */
  private recover(): number {
    let count = 0
    for (let n = 0; n < this.ready; n++) {
      const block = this.readyBlocks[n]
      const line = this.readyLines[n]
      const source = block.grid.lastOf(line)
      if (block.state !== OPEN || source === NOT_ONE || block.parities[line] <= 0) continue
      const symbol = this.solve(block, line)
      if (symbol > 0) this.recovered[count++] = this.finish(block, line, source, symbol)
      else this.keeper.dropParity(block, line, this.counters.malformed_packets)
    }
    this.ready = 0
    this.adding.run()
    return count
  }

  /** Adds a line's sum to its parity: that is the symbol of the source that it lacks. Returns its bytes, 0: they contradict each other. */
  private solve(block: ParityBlock, line: number): number {
    const { packets, adding } = this
    const { sums } = block
    const packet = block.parities[line] - 1
    const bytes = packets.length[packet]
    const longest = sums.slot[line] > 0 ? sums.bytes[line] : 0
    if (longest > bytes) return 0
    adding.addTo(packets.offset[packet], bytes, sums, line)
    adding.run()
    // A parity is as long as the longest symbol of its line: none is longer, and with all of them there one is as long.
    const symbol = packets.view.getUint16(packets.offset[packet]) + LENGTH_BYTES
    return Math.max(symbol, longest) === bytes ? symbol : 0
  }

  /** The parity of a line has become its missing source: returns its packet, once the line that it crosses has it too. */
  private finish(block: ParityBlock, line: number, source: number, symbol: number): number {
    const { packets, counters, keeper } = this
    const { grid } = block
    const packet = keeper.takeParity(block, line)
    const place = packets.trimFront(packet, LENGTH_BYTES)
    packets.length[packet] = symbol - LENGTH_BYTES
    packets.annotateAs(packet, this.last)
    block.sources[source] = RECOVERED
    block.crc[source] = native.crc32c(this.memory, place + LENGTH_BYTES, symbol - LENGTH_BYTES)
    counters.recovered_packets.add(1)
    counters.spent_packets.add(1)
    grid.fill(source)
    keeper.closeLine(block, line, counters.spent_packets)
    if (grid.total === 0) keeper.close(block, DONE, counters.redundant_packets)
    else this.fillLine(block, grid.crossing(line, source), packet, place, symbol)
    return packet
  }
}
