/** Passes source packets on and recovers missing ones as soon as as many symbols of their block are there as it has sources. */
import { MAX_SYMBOLS } from '../../codes/cauchy.ts'
import type { Batch } from '../../engine/batch.ts'
import type { Counter } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { BlockDecoderCounters, LossShare } from './block-counters.ts'
import { BLOCK_HEADER_BYTES, KIND_REPAIR, KIND_SOURCE, LENGTH_BYTES, SYMBOL_AT } from './block-header.ts'
import { BlockRecovery, CONTRADICTED, DECODED } from './block-recovery.ts'
import { BlockRepairs } from './block-repairs.ts'
import { BlockRetention } from './block-retention.ts'
import { BlockSessions, LATE } from './block-sessions.ts'
import { BlockWindow, DONE, OPEN, RECOVERED, REPLACED, SEEN, UNSEEN } from './block-window.ts'

/**
 * Packets of one block that follow each other in a batch make a run. At its end the block is completed from the packets where they
 * lie, or, when it is not there yet, its new sources are copied and leave, since whoever comes next may change them.
 *
 * A source that came leaves, once, whatever repairs say: those may be cut short or made up. Where they contradict the sources they
 * are dropped, where they contradict each other those that complete the block count.
 */
export class BlockDecoder {
  private readonly packets: Packets
  private readonly outlet: Outlet
  private readonly counters: BlockDecoderCounters
  private readonly sessions: BlockSessions
  private readonly retention: BlockRetention
  private readonly repairs: BlockRepairs
  private readonly recovery: BlockRecovery
  /** The run at hand: its window, block, and place there; sources that came in it, not sent yet. */
  private window = new BlockWindow()
  private block = 0
  private place = 0
  private inRun = false
  private readonly fresh = new Int32Array(MAX_SYMBOLS)
  private readonly freshIndex = new Int32Array(MAX_SYMBOLS)
  /** Not among the sources and kept symbols of their block yet. */
  private freshCount = 0
  /** One of those by another one of its block. */
  private overtaken = false
  /** The last packet taken, whose annotations recovered packets get. */
  private last = -1
  /** Whether the block being finished took its repairs to complete. */
  private repairsUsed = false

  /** Follows at most `sessions` sessions at once. */
  constructor(packets: Packets, memory: number, outlet: Outlet, counters: BlockDecoderCounters, sessions: number) {
    this.packets = packets
    this.outlet = outlet
    this.counters = counters
    this.sessions = new BlockSessions(sessions, (window) => this.retention.leave(window, counters.spent_packets))
    this.retention = new BlockRetention(packets, counters, this.sessions.windows)
    this.repairs = new BlockRepairs(packets, counters, this.retention)
    this.recovery = new BlockRecovery(packets, memory)
  }

  /** Share of packets, sources and repairs, that did not come before their block left the window. */
  get loss(): LossShare {
    return this.retention.loss
  }

  /** Sessions followed now. */
  get followed(): number {
    let count = 0
    for (const { active } of this.sessions.windows) if (active) count++
    return count
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
    this.sessions.reset()
  }

  /** Slots of the symbols that unfinished blocks have at hand. */
  get kept(): number {
    return this.retention.held
  }

  /** The run ends. */
  stop(): void {
    const { retention, counters } = this
    for (const window of this.sessions.windows) if (window.active) retention.leave(window, counters.held_at_end_packets)
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
    const { view } = packets
    const at = packets.offset[packet]
    const shape = view.getInt32(at)
    const kind = shape >>> 24
    const k = (shape >>> 16) & 255
    const r = (shape >>> 8) & 255
    const index = shape & 255
    const sender = view.getInt32(at + 4)
    const session = sender >>> 8
    const closing = sender & 255
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
      this.endRun()
      const found = this.sessions.find(session, k, r, block, isSource)
      if (typeof found === 'number') {
        this.passUnfollowed(packet, isSource, found)
        return
      }
      this.beginRun(found, block)
    }
    packets.trimFront(packet, SYMBOL_AT)
    if (isSource) this.takeSource(packet, index)
    else if (this.repairs.take(this.window, this.place, packet, index, closing)) this.last = packet
  }

  /** No window takes the packet. */
  private passUnfollowed(packet: number, isSource: boolean, why: number): void {
    if (why === LATE) this.discard(packet, this.counters.late_packets)
    else if (!isSource) this.discard(packet, this.counters.unfollowed_repair_packets)
    else {
      this.packets.trimFront(packet, BLOCK_HEADER_BYTES)
      this.counters.unfollowed_packets.add(1)
      this.outlet.push(packet)
    }
  }

  private beginRun(window: BlockWindow, block: number): void {
    this.retention.makeRoom()
    this.window = window
    this.block = block
    this.place = window.place(block)
    window.begin(block)
    this.inRun = true
  }

  /** `packet` begins with its symbol. */
  private takeSource(packet: number, index: number): void {
    const { window, place, counters } = this
    if (this.block !== window.newest) this.retention.advance(window, this.block)
    const bytes = this.packets.length[packet]
    const at = place * window.stride + index
    const seen = window.symbols[at]
    if (seen !== UNSEEN) {
      if (seen !== RECOVERED && seen !== REPLACED) {
        this.discard(packet, counters.duplicate_packets)
        return
      }
      if (seen === REPLACED || this.recovery.matches(window, at, packet)) {
        window.symbols[at] = SEEN
        window.sources[place]++
        window.countSources(1, true)
        this.discard(packet, counters.late_packets)
        return
      }
      counters.wrong_recoveries.add(1)
    }
    if (window.closing[place] !== 0 && (index >= window.closing[place] || bytes > window.repairBytes[place])) {
      this.repairs.dropContradicted(window, place, index, bytes)
    }
    window.symbols[at] = packet + 1
    if (index < window.top[place]) this.overtaken = true
    else window.top[place] = index + 1
    if (bytes > window.longest[place]) window.longest[place] = bytes
    this.fresh[this.freshCount] = packet
    this.freshIndex[this.freshCount++] = at
    this.last = packet
  }

  /** Completes the block, or keeps what came of it for later; the run's sources leave, and those recovered. */
  private endRun(): void {
    if (!this.inRun) return
    this.inRun = false
    const { window, place, recovery } = this
    recovery.count = 0
    if (this.freshCount > 0) {
      window.sources[place] += this.freshCount
      window.kept[place] += this.freshCount
      window.countSources(this.freshCount, this.overtaken || this.block !== window.newest)
      this.overtaken = false
    }
    if (window.state[place] !== OPEN) this.forgetFresh()
    else if (window.mixed[place] !== 0) this.weigh()
    else this.complete(window.closing[place], window.repairBytes[place], window.kept[place])
    if (window.state[place] === OPEN) this.copyFresh()
    const { packets, outlet, fresh } = this
    for (let i = 0; i < this.freshCount; i++) {
      packets.trimFront(fresh[i], LENGTH_BYTES)
      outlet.push(fresh[i])
    }
    this.freshCount = 0
    for (let i = 0; i < recovery.count; i++) outlet.push(recovery.recovered[i])
  }

  /** Completes the block if its repairs, of one kind, say that it has `closing` sources (0: there are none), `kept` symbols being at hand. */
  private complete(closing: number, bytes: number, kept: number): void {
    const { window, place, counters, recovery } = this
    const wanted = closing || window.k
    if (window.sources[place] === wanted) {
      this.finish()
      return
    }
    if (closing === 0 || kept < wanted) return
    const outcome = recovery.run(window, place, wanted, bytes, this.last)
    if (outcome === CONTRADICTED) {
      this.repairs.dropShape(window, place, bytes * 256 + closing)
      return
    }
    this.repairsUsed = true
    if (outcome === DECODED) counters.recovered_packets.add(recovery.count)
    else counters.unrecovered_packets.add(wanted - window.sources[place])
    this.finish()
  }

  /** The repairs at hand contradict each other: completes the block with those of one shape that suffice, if there are. */
  private weigh(): void {
    const { window, place, repairs } = this
    if (window.sources[place] === window.closing[place]) {
      this.finish()
      return
    }
    const count = repairs.listShapes(window, place)
    for (let n = 0; n < count && window.state[place] === OPEN; n++) {
      const shape = repairs.shapes[n]
      const closing = shape & 255
      if (window.sources[place] >= closing) continue
      this.complete(closing, shape >> 8, window.kept[place] - repairs.othersThan(window, place, shape))
    }
  }

  /** The run's sources are about to leave and are no longer at hand. */
  private forgetFresh(): void {
    const { window, freshIndex, freshCount } = this
    const { symbols } = window
    for (let i = 0; i < freshCount; i++) symbols[freshIndex[i]] = SEEN
    window.kept[this.place] -= freshCount
  }

  private copyFresh(): void {
    const { window, packets, fresh, freshIndex, freshCount } = this
    let kept = 0
    for (let i = 0; i < freshCount; i++) {
      const copy = packets.clone(fresh[i])
      if (copy >= 0) {
        window.symbols[freshIndex[i]] = copy + 1
        kept++
      } else {
        window.symbols[freshIndex[i]] = SEEN
        window.kept[this.place]--
        this.counters.unkept_packets.add(1)
      }
    }
    window.held += kept
    this.retention.held += kept
  }

  private finish(): void {
    const { window, place, counters } = this
    this.forgetFresh()
    this.retention.letGo(window, place, this.repairsUsed ? counters.spent_packets : counters.redundant_packets)
    this.repairsUsed = false
    window.state[place] = DONE
  }
}
