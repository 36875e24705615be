/** Passes source packets on and recovers missing ones as soon as what has come of their block determines them. */
import type { Batch } from '../../engine/batch.ts'
import type { Counter } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { BlockDecoderCounters } from './block-counters.ts'
import {
  BLOCK_HEADER_BYTES,
  type BlockFormat,
  BlockHeader,
  LENGTH_BYTES,
  MAX_BLOCK,
  SYMBOL_AT,
} from './block-header.ts'
import { type BlockRecovery, CONTRADICTED, NO_MORE, NO_SLOT, WHOLE } from './block-recovery.ts'
import { BlockRepairs } from './block-repairs.ts'
import { BlockRetention } from './block-retention.ts'
import { BlockSessions, LATE } from './block-sessions.ts'
import { BlockWindow, DONE, OPEN, RECOVERED, REPLACED, SEEN, UNKNOWN, UNSEEN } from './block-window.ts'

/**
 * Packets of one block that follow each other in a batch make a run. At its end what follows is computed from the packets where they
 * lie, and when the block is not complete its new sources are copied and leave, since whoever comes next may change them.
 *
 * A source that came leaves, once, whatever repairs say: those may be cut short or made up. Where they contradict the sources, or each
 * other, they are dropped.
 */
export class BlockDecoder {
  private readonly packets: Packets
  private readonly outlet: Outlet
  private readonly counters: BlockDecoderCounters
  private readonly format: BlockFormat
  private readonly sessions: BlockSessions
  private readonly recovery: BlockRecovery
  private readonly retention: BlockRetention
  private readonly repairs: BlockRepairs
  private readonly header = new BlockHeader()
  /** The run at hand: its window, block, and place there; sources that came in it, not sent yet. */
  private window = new BlockWindow()
  private block = 0
  private place = 0
  private inRun = false
  private readonly fresh = new Int32Array(MAX_BLOCK)
  private readonly freshAt = new Int32Array(MAX_BLOCK)
  private freshCount = 0
  /** One of those by another one of its block. */
  private overtaken = false
  /** The last packet taken, whose annotations recovered packets get. */
  private last = -1

  /** Follows at most `sessions` sessions at once. */
  constructor(
    packets: Packets,
    outlet: Outlet,
    counters: BlockDecoderCounters,
    format: BlockFormat,
    recovery: BlockRecovery,
    sessions: number,
  ) {
    const { progressive } = format
    this.packets = packets
    this.outlet = outlet
    this.counters = counters
    this.format = format
    this.recovery = recovery
    this.retention = new BlockRetention(packets, counters, progressive, (window, place) =>
      recovery.forget(window, place),
    )
    this.repairs = new BlockRepairs(packets, counters, this.retention, progressive, recovery.mostShapes)
    this.sessions = new BlockSessions(sessions, (window) => this.retention.leave(window, counters.spent_packets))
  }

  /** Sessions followed now. */
  get followed(): number {
    let count = 0
    for (const { active } of this.sessions.windows) if (active) count++
    return count
  }

  /** Share of packets, sources and repairs, that did not come before their block left the window. */
  get loss(): number {
    return this.retention.loss.value
  }

  /** Slots of the symbols that unfinished blocks have at hand. */
  get kept(): number {
    return this.retention.kept
  }

  /** Follows at most `sessions` sessions from now on; those silent longest are forgotten where there are more. */
  follow(sessions: number): void {
    this.sessions.follow(sessions)
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

  /** The run ends. */
  stop(): void {
    for (const window of this.sessions.windows) {
      if (window.active) this.retention.leave(window, this.counters.held_at_end_packets)
    }
  }

  private discard(packet: number, counter: Counter): void {
    this.packets.release(packet)
    counter.add(1)
  }

  private take(packet: number): void {
    const { packets, header, window } = this
    if (!header.read(packets.view, packets.offset[packet], packets.length[packet], this.format)) {
      this.discard(packet, this.counters.malformed_packets)
      return
    }
    const { isSource, k, r, session, block } = header
    if (!this.inRun || block !== this.block || session !== window.session || k !== window.k || r !== window.r) {
      this.endRun()
      const found = this.sessions.find(session, k, r, block, isSource)
      if (typeof found === 'number') {
        this.passUnfollowed(packet, isSource, found)
        return
      }
      this.beginRun(found, block)
    }
    packets.trimFront(packet, isSource ? SYMBOL_AT : this.format.repairSymbolAt)
    if (isSource) this.takeSource(packet, header.index, header.closing)
    else if (this.repairs.take(this.window, this.place, packet, header.index, header.closing)) this.last = packet
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
    this.retention.makeRoom(this.sessions.windows)
    this.window = window
    this.block = block
    this.place = window.place(block)
    window.begin(block)
    this.inRun = true
  }

  /** `packet` begins with its symbol; `previous`: sources of the block before, 0 where that is not said. */
  private takeSource(packet: number, index: number, previous: number): void {
    const { window, place, counters } = this
    if (this.block !== window.newest) this.retention.advance(window, this.block)
    if (previous > 0) this.learnPrevious(previous)
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
        window.noteSource(place, index, bytes)
        window.countSources(1, true)
        this.discard(packet, counters.late_packets)
        return
      }
      counters.wrong_recoveries.add(1)
    }
    if (window.repairBytes[place] !== 0) this.repairs.dropContradicted(window, place, index, bytes)
    window.symbols[at] = packet + 1
    if (window.noteSource(place, index, bytes)) this.overtaken = true
    this.fresh[this.freshCount] = packet
    this.freshAt[this.freshCount++] = at
    this.last = packet
  }

  /** The block before the one at hand has so many sources: it may be complete. */
  private learnPrevious(sources: number): void {
    const { window, block, retention } = this
    const place = window.place(block - 1)
    if (window.ahead(block - 1) <= -window.span || window.closing[place] !== 0) return
    if (window.state[place] === UNKNOWN || sources < window.top[place]) return
    window.closing[place] = sources
    if (window.state[place] === OPEN && retention.missing(window, place, sources) === 0) this.complete(place)
  }

  /** Recovers what follows, or keeps what came of the block for later; the run's sources leave, and those recovered. */
  private endRun(): void {
    if (!this.inRun) return
    this.inRun = false
    const { window, place, recovery, packets, outlet, fresh } = this
    recovery.count = 0
    if (this.freshCount > 0) {
      window.sources[place] += this.freshCount
      this.retention.keep(window, place, this.freshCount)
      window.countSources(this.freshCount, this.overtaken || this.block !== window.newest)
      this.overtaken = false
    }
    if (window.state[place] === OPEN) this.recover()
    else this.forgetFresh()
    if (window.state[place] === OPEN) this.copyFresh()
    for (let i = 0; i < this.freshCount; i++) {
      packets.trimFront(fresh[i], LENGTH_BYTES)
      outlet.push(fresh[i])
    }
    this.freshCount = 0
    for (let i = 0; i < recovery.count; i++) outlet.push(recovery.recovered[i])
  }

  private recover(): void {
    const { window, place, recovery, counters } = this
    let outcome = NO_MORE
    while (window.repairBytes[place] !== 0 && window.sources[place] < (window.closing[place] || window.k)) {
      outcome = recovery.run(window, place, this.last)
      if (outcome !== CONTRADICTED) break
      this.repairs.dropShape(window, place, recovery.wrongShape || this.repairs.fewest(window, place))
    }
    counters.recovered_packets.add(recovery.count)
    const sources = window.closing[place] || window.k
    if (outcome === NO_SLOT) counters.unrecovered_packets.add(this.retention.missing(window, place, sources))
    if (outcome === WHOLE || outcome === NO_SLOT || this.isWhole(sources)) this.complete(place)
  }

  private isWhole(sources: number): boolean {
    const { window, place } = this
    if (window.sources[place] + this.recovery.count >= sources) return true
    return window.repairBytes[place] !== 0 && this.retention.missing(window, place, sources) === 0
  }

  /** All of a block is there: its symbols at hand go, but for the run's sources, which leave. */
  private complete(place: number): void {
    const { window, retention, counters } = this
    if (place === this.place) this.forgetFresh()
    const sources = window.closing[place] || window.k
    const used = window.sources[place] < sources
    if (!used) this.repairs.settle(window, place, sources)
    retention.letGo(window, place, used ? counters.spent_packets : counters.redundant_packets)
    window.state[place] = DONE
  }

  /** The run's sources are about to leave and are no longer at hand. */
  private forgetFresh(): void {
    const { window, freshAt, freshCount } = this
    const { symbols } = window
    for (let i = 0; i < freshCount; i++) symbols[freshAt[i]] = SEEN
    this.retention.keep(window, this.place, -freshCount)
  }

  private copyFresh(): void {
    const { window, place, packets, fresh, freshAt, freshCount } = this
    for (let i = 0; i < freshCount; i++) {
      const copy = packets.clone(fresh[i])
      window.symbols[freshAt[i]] = copy < 0 ? SEEN : copy + 1
      if (copy >= 0) continue
      this.retention.keep(window, place, -1)
      this.counters.unkept_packets.add(1)
    }
  }
}
