/** Passes source packets on and recovers missing ones as soon as as many symbols of their block are there as it has sources. */
import { DecodingMatrices, MAX_SYMBOLS, repairPoint } from '../../codes/cauchy.ts'
import type { Batch } from '../../engine/batch.ts'
import type { Counter, Gauge } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import { native } from '../../native/native.ts'
import { BLOCK_HEADER_BYTES, KIND_REPAIR, KIND_SOURCE, LENGTH_BYTES, SYMBOL_AT, symbolPlace } from './block-header.ts'
import { BlockSessions, CONTRADICTORY, LATE } from './block-sessions.ts'
import { type BlockWindow, DONE, OPEN, RECOVERED, SEEN, UNKNOWN, UNSEEN } from './block-window.ts'

export interface BlockDecoderCounters {
  readonly recovered_packets: Counter
  readonly unrecovered_packets: Counter
  readonly late_packets: Counter
  readonly duplicate_packets: Counter
  readonly redundant_packets: Counter
  readonly spent_packets: Counter
  readonly malformed_packets: Counter
  readonly held_packets: Gauge
  readonly held_at_end_packets: Counter
  readonly unkept_packets: Counter
}

/** The measured loss looks back over about as many packets. */
const LOSS_MEMORY = 10_000

/**
 * Packets of one block that follow each other in a batch make a run. At its end the block is completed from the packets where they
 * lie, or, when it is not there yet, its new sources are copied and leave, since whoever comes next may change them.
 */
export class BlockDecoder {
  private readonly packets: Packets
  private readonly memory: number
  private readonly outlet: Outlet
  private readonly counters: BlockDecoderCounters
  private readonly sessions = new BlockSessions()
  private readonly matrices = new DecodingMatrices()
  private runs = 0
  /** The run at hand: its window, block, and place there; sources that came in it, not sent yet. */
  private window: BlockWindow
  private block = 0
  private place = 0
  private inRun = false
  private readonly fresh = new Int32Array(MAX_SYMBOLS)
  private readonly freshIndex = new Int32Array(MAX_SYMBOLS)
  private freshCount = 0
  /** The last packet taken, whose annotations recovered packets get. */
  private last = -1
  private readonly points = new Uint8Array(MAX_SYMBOLS)
  private readonly missing = new Uint8Array(MAX_SYMBOLS)
  /** Places in the slab of the symbols at hand, then of those to compute. */
  private readonly places = new Int32Array(2 * MAX_SYMBOLS)
  private readonly lengths = new Int32Array(MAX_SYMBOLS)
  private readonly recovered = new Int32Array(MAX_SYMBOLS)
  private recoveredCount = 0
  /** Whether the block being finished took its repairs to complete. */
  private repairsUsed = false
  private lostPackets = 0
  private expectedPackets = 0

  constructor(packets: Packets, memory: number, outlet: Outlet, counters: BlockDecoderCounters) {
    this.packets = packets
    this.memory = memory
    this.outlet = outlet
    this.counters = counters
    this.window = this.sessions.windows[0]
  }

  /** Share of packets, sources and repairs, that did not come before their block left the window. */
  get loss(): number {
    return this.expectedPackets === 0 ? 0 : this.lostPackets / this.expectedPackets
  }

  /** Takes the packets of a batch. */
  input(batch: Batch): void {
    const { handles, length } = batch
    for (let i = 0; i < length; i++) this.take(handles[i])
    this.endRun()
    this.outlet.flush()
  }

  /** Gives up every block and forgets every session. */
  reset(): void {
    for (const window of this.sessions.windows) this.leave(window)
  }

  /** Slots of the symbols that unfinished blocks have at hand. */
  get kept(): number {
    let kept = 0
    for (const window of this.sessions.windows) {
      for (let place = 0; window.active && place < window.blocks; place++) kept += window.kept[place]
    }
    return kept
  }

  /** The run ends. */
  stop(): void {
    for (const window of this.sessions.windows) this.leave(window, this.counters.held_at_end_packets)
  }

  private discard(packet: number, counter: Counter): void {
    this.packets.release(packet)
    counter.add(1)
  }

  private take(packet: number): void {
    const { packets, counters } = this
    const bytes = packets.length[packet]
    if (bytes < BLOCK_HEADER_BYTES) {
      this.discard(packet, counters.malformed_packets)
      return
    }
    const { data, view } = packets
    const at = packets.offset[packet]
    const kind = data[at]
    const k = data[at + 1]
    const r = data[at + 2]
    const index = data[at + 3]
    const session = view.getInt32(at + 4) >>> 8
    const closing = data[at + 7]
    const block = view.getInt32(at + 8)
    const isSource = kind === KIND_SOURCE
    const plausible = isSource
      ? index < k && closing === 0 && view.getUint16(at + SYMBOL_AT) === bytes - BLOCK_HEADER_BYTES
      : kind === KIND_REPAIR && index < r && closing > 0 && closing <= k
    if (!plausible || k + r > MAX_SYMBOLS) {
      this.discard(packet, counters.malformed_packets)
      return
    }
    const { window } = this
    if (!this.inRun || block !== this.block || session !== window.session || k !== window.k || r !== window.r) {
      const refused = this.beginRun(session, k, r, block)
      if (refused) {
        this.discard(packet, refused)
        return
      }
    }
    packets.trimFront(packet, SYMBOL_AT)
    if (isSource) this.takeSource(packet, index)
    else this.takeRepair(packet, index, closing)
  }

  /** Finds the block, or the counter of those that cannot be placed. */
  private beginRun(session: number, k: number, r: number, block: number): Counter | null {
    this.endRun()
    const match = this.sessions.match(session, k, r, block)
    if (match === CONTRADICTORY) return this.counters.malformed_packets
    if (match === LATE) return this.counters.late_packets
    let found: BlockWindow
    if (typeof match === 'number') {
      found = this.sessions.leastTrusted()
      this.leave(found)
      found.open(session, k, r, block)
    } else found = match
    found.used = ++this.runs
    this.advance(found, block)
    this.window = found
    this.block = block
    this.place = found.place(block)
    if (found.state[this.place] === UNKNOWN) found.beginBlock(this.place)
    this.inRun = true
    return null
  }

  /** Moves the window on to `block`, giving up the blocks that fall out of it. */
  private advance(window: BlockWindow, block: number): void {
    for (let steps = window.ahead(block); steps > 0; steps--) {
      window.newest = (window.newest + 1) | 0
      const place = window.place(window.newest)
      this.giveUp(window, place, true)
      window.beginBlock(place)
    }
  }

  /** `kept` counts the repairs that were still kept. */
  private leave(window: BlockWindow, kept = this.counters.spent_packets): void {
    if (!window.active) return
    // Of the newest block more may be on its way, so nothing is counted as lost there.
    const newest = window.place(window.newest)
    for (let place = 0; place < window.blocks; place++) {
      this.giveUp(window, place, window.proven && place !== newest, kept)
    }
    window.active = false
    window.confirmed = false
  }

  /** Counts what a block lacks, when that is to be `counted`, and lets go of its packets. */
  private giveUp(window: BlockWindow, place: number, counted: boolean, kept = this.counters.spent_packets): void {
    if (window.state[place] === UNKNOWN) return
    const sources = window.closing[place] || window.k
    if (counted) {
      const expected = sources + window.r
      this.lostPackets += expected - window.sources[place] - window.repairs[place]
      this.expectedPackets += expected
      if (this.expectedPackets > LOSS_MEMORY) {
        this.lostPackets /= 2
        this.expectedPackets /= 2
      }
      if (window.state[place] === OPEN) {
        this.counters.unrecovered_packets.add(sources - window.sources[place])
      }
    }
    this.letGo(window, place, kept)
    window.state[place] = UNKNOWN
  }

  /** Releases copies of sources, and repairs, which `counter` counts. */
  private letGo(window: BlockWindow, place: number, counter: Counter): void {
    if (window.kept[place] === 0) return
    const { symbols, k, stride } = window
    const at = place * stride
    let repairs = 0
    for (let n = 0; n < stride; n++) {
      const kept = symbols[at + n]
      if (kept <= UNSEEN) continue
      this.packets.release(kept - 1)
      symbols[at + n] = SEEN
      if (n >= k) repairs++
    }
    window.kept[place] = 0
    counter.add(repairs)
    this.counters.held_packets.add(-repairs)
  }

  /** `packet` begins with its symbol. */
  private takeSource(packet: number, index: number): void {
    const { window, place, counters } = this
    const bytes = this.packets.length[packet]
    const closing = window.closing[place]
    if (closing !== 0 && (index >= closing || bytes > window.repairBytes[place])) {
      this.discard(packet, counters.malformed_packets)
      return
    }
    const at = place * window.stride + index
    const seen = window.symbols[at]
    if (seen !== UNSEEN) {
      if (seen !== RECOVERED) {
        this.discard(packet, counters.duplicate_packets)
        return
      }
      window.symbols[at] = SEEN
      window.sources[place]++
      this.discard(packet, counters.late_packets)
      return
    }
    window.symbols[at] = packet + 1
    window.sources[place]++
    window.kept[place]++
    if (index >= window.top[place]) window.top[place] = index + 1
    if (bytes > window.longest[place]) window.longest[place] = bytes
    this.fresh[this.freshCount] = packet
    this.freshIndex[this.freshCount++] = at
    this.last = packet
    this.sessions.count(window)
  }

  /** `packet` begins with its symbol. */
  private takeRepair(packet: number, index: number, closing: number): void {
    const { window, place, counters } = this
    const bytes = this.packets.length[packet]
    const known = window.closing[place]
    const fits =
      known === 0
        ? closing >= window.top[place] && bytes >= window.longest[place]
        : closing === known && bytes === window.repairBytes[place]
    if (!fits) {
      this.discard(packet, counters.malformed_packets)
      return
    }
    const at = place * window.stride + window.k + index
    if (window.symbols[at] !== UNSEEN) {
      this.discard(packet, counters.duplicate_packets)
      return
    }
    window.closing[place] = closing
    window.repairBytes[place] = bytes
    window.repairs[place]++
    this.sessions.count(window)
    if (window.state[place] === DONE) {
      window.symbols[at] = SEEN
      this.discard(packet, counters.redundant_packets)
      return
    }
    window.symbols[at] = packet + 1
    window.kept[place]++
    counters.held_packets.add(1)
    this.last = packet
  }

  /** Completes the block, or keeps what came of it for later; the run's sources leave, and those recovered. */
  private endRun(): void {
    if (!this.inRun) return
    this.inRun = false
    const { window, place } = this
    if (window.state[place] === OPEN) {
      const wanted = window.closing[place] || window.k
      if (window.sources[place] === wanted) this.finish()
      else if (window.closing[place] !== 0 && window.kept[place] >= wanted) {
        this.recover(wanted)
        this.finish()
      } else this.copyFresh()
    } else this.forgetFresh()
    const { packets, outlet, fresh, recovered } = this
    for (let i = 0; i < this.freshCount; i++) {
      packets.trimFront(fresh[i], LENGTH_BYTES)
      outlet.push(fresh[i])
    }
    this.freshCount = 0
    for (let i = 0; i < this.recoveredCount; i++) outlet.push(recovered[i])
    this.recoveredCount = 0
  }

  /** The run's sources are about to leave and are no longer at hand. */
  private forgetFresh(): void {
    const { window, freshIndex, freshCount } = this
    for (let i = 0; i < freshCount; i++) window.symbols[freshIndex[i]] = SEEN
    window.kept[this.place] -= freshCount
  }

  private copyFresh(): void {
    const { window, packets, fresh, freshIndex, freshCount } = this
    for (let i = 0; i < freshCount; i++) {
      const copy = packets.clone(fresh[i])
      if (copy >= 0) window.symbols[freshIndex[i]] = copy + 1
      else {
        window.symbols[freshIndex[i]] = SEEN
        window.kept[this.place]--
        this.counters.unkept_packets.add(1)
      }
    }
  }

  private finish(): void {
    const { window, place } = this
    this.forgetFresh()
    this.letGo(window, place, this.repairsUsed ? this.counters.spent_packets : this.counters.redundant_packets)
    this.repairsUsed = false
    window.state[place] = DONE
  }

  /** Computes the missing of the block's `wanted` sources. There are enough symbols at hand. */
  private recover(wanted: number): void {
    const { window, place, packets, counters, points, missing, places, lengths } = this
    const { k, stride, symbols } = window
    const base = place * stride
    const bytes = window.repairBytes[place]
    let columns = 0
    let erasures = 0
    let uneven = false
    for (let i = 0; i < wanted; i++) {
      const kept = symbols[base + i]
      if (kept <= UNSEEN) {
        missing[erasures++] = i
        continue
      }
      points[columns] = i
      places[columns] = packets.offset[kept - 1]
      lengths[columns] = packets.length[kept - 1]
      if (lengths[columns] !== bytes) uneven = true
      columns++
    }
    for (let j = 0; columns < wanted; j++) {
      const kept = symbols[base + k + j]
      if (kept <= UNSEEN) continue
      points[columns] = repairPoint(j)
      places[columns] = packets.offset[kept - 1]
      lengths[columns] = bytes
      columns++
    }
    this.repairsUsed = true
    const { slotBytes } = packets
    const at = symbolPlace(slotBytes, packets.headroom, packets.tailroom, bytes)
    const { recovered } = this
    for (let m = 0; m < erasures; m++) {
      const packet = packets.allocate()
      if (packet < 0) {
        for (let n = 0; n < m; n++) packets.release(recovered[n])
        counters.unrecovered_packets.add(wanted - window.sources[place])
        return
      }
      recovered[m] = packet
      places[wanted + m] = packet * slotBytes + at
    }
    const matrix = this.matrices.get(points, wanted, missing, erasures)
    if (uneven) native.gfMatrixMultiply(this.memory, matrix, places, wanted, erasures, bytes, lengths)
    else native.gfMatrixMultiply(this.memory, matrix, places, wanted, erasures, bytes)
    let good = 0
    for (let m = 0; m < erasures; m++) {
      const packet = recovered[m]
      const symbol = base + missing[m]
      // It came, but there was no slot to keep it.
      if (symbols[symbol] === SEEN) {
        packets.release(packet)
        continue
      }
      const payload = packets.view.getUint16(places[wanted + m])
      if (payload > bytes - LENGTH_BYTES) {
        packets.release(packet)
        counters.unrecovered_packets.add(1)
        continue
      }
      symbols[symbol] = RECOVERED
      packets.offset[packet] = places[wanted + m] + LENGTH_BYTES
      packets.length[packet] = payload
      packets.annotateAs(packet, this.last)
      recovered[good++] = packet
    }
    counters.recovered_packets.add(good)
    this.recoveredCount = good
  }
}
