/** Passes source packets on and recovers each missing one as soon as it follows from what has come of its block. */
import type { Batch } from '../../engine/batch.ts'
import type { Counter } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { BlockDecoderCounters } from './block-counters.ts'
import { BLOCK_HEADER_BYTES, LENGTH_BYTES, SYMBOL_AT } from './block-header.ts'
import { BlockKeeper } from './block-keeper.ts'
import { BlockSessions, LATE } from './block-sessions.ts'
import { BlockWindow, DONE, OPEN, RECOVERED, REPLACED, SEEN, UNKNOWN, UNSEEN } from './block-window.ts'
import { COMBINATION_AT, CombinationHeader, type Kinds } from './combination-header.ts'
import { MAX_BLOCK } from './elimination-pool.ts'
import { LinearBlockRecovery } from './linear-block-recovery.ts'
import { RepairsAtHand } from './repairs-at-hand.ts'

/**
 * Packets of one block that follow each other in a batch make a run. At its end what follows is computed from the packets where they
 * lie, and when the block is not complete its new sources are copied and leave, since whoever comes next may change them.
 *
 * A source that came leaves, once, whatever repairs say: those may be cut short or made up. Where they contradict the sources, or each
 * other, they are dropped.
 */
export class LinearBlockDecoder {
  private readonly packets: Packets
  private readonly outlet: Outlet
  private readonly counters: BlockDecoderCounters
  private readonly kinds: Kinds
  private readonly sessions: BlockSessions
  private readonly recovery: LinearBlockRecovery
  private readonly keeper: BlockKeeper
  private readonly repairs: RepairsAtHand
  private readonly header = new CombinationHeader()
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
    memory: number,
    outlet: Outlet,
    counters: BlockDecoderCounters,
    kinds: Kinds,
    sessions: number,
  ) {
    this.packets = packets
    this.outlet = outlet
    this.counters = counters
    this.kinds = kinds
    this.recovery = new LinearBlockRecovery(packets, memory)
    const forget = (window: BlockWindow, place: number) => this.recovery.forget(window, place)
    this.keeper = new BlockKeeper(packets, counters, forget)
    this.repairs = new RepairsAtHand(packets, this.keeper, !kinds.tellsPrevious, counters.malformed_packets, forget)
    this.sessions = new BlockSessions(sessions, (window) => this.keeper.leave(window))
  }

  /** Sessions followed now. */
  get followed(): number {
    let count = 0
    for (const { active } of this.sessions.windows) if (active) count++
    return count
  }

  /** Share of packets, sources and repairs, that did not come before their block left the window. */
  get loss(): number {
    return this.keeper.loss.value
  }

  /** Slots of the symbols that unfinished blocks have at hand. */
  get kept(): number {
    return this.keeper.kept
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
      if (window.active) this.keeper.leave(window, this.counters.held_at_end_packets)
    }
  }

  private discard(packet: number, counter: Counter): void {
    this.packets.release(packet)
    counter.add(1)
  }

  private take(packet: number): void {
    const { packets, header, window } = this
    if (!header.read(packets.view, packets.offset[packet], packets.length[packet], this.kinds)) {
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
    packets.trimFront(packet, isSource ? SYMBOL_AT : COMBINATION_AT)
    if (isSource) this.takeSource(packet, header.index, header.closing)
    else this.takeRepair(packet, header.index, header.closing)
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
    this.keeper.makeRoom(this.sessions.windows)
    this.window = window
    this.block = block
    this.place = window.place(block)
    window.begin(block)
    this.inRun = true
  }

  /** `packet` begins with its symbol; `previous`: sources of the block before, 0 where that is not said. */
  private takeSource(packet: number, index: number, previous: number): void {
    const { window, place, counters } = this
    if (this.block !== window.newest) this.keeper.advance(window, this.block)
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
        window.countSources(1, true)
        this.discard(packet, counters.late_packets)
        return
      }
      counters.wrong_recoveries.add(1)
    }
    this.repairs.dropContradicted(window, place, index, bytes)
    window.symbols[at] = packet + 1
    if (index < window.top[place]) this.overtaken = true
    else window.top[place] = index + 1
    if (bytes > window.longest[place]) window.longest[place] = bytes
    this.fresh[this.freshCount] = packet
    this.freshAt[this.freshCount++] = at
    this.last = packet
  }

  /** The block before the one at hand has so many sources: it may be complete. */
  private learnPrevious(sources: number): void {
    const { window, block, keeper } = this
    const place = window.place(block - 1)
    if (window.ahead(block - 1) <= -window.span || window.closing[place] !== 0) return
    if (window.state[place] === UNKNOWN || sources < window.top[place]) return
    window.closing[place] = sources
    if (window.state[place] === OPEN && keeper.missing(window, place, sources) === 0) this.complete(place)
  }

  /** `packet` begins with its symbol. */
  private takeRepair(packet: number, index: number, closing: number): void {
    const { window, place, counters, packets } = this
    const at = place * window.stride + window.k + index
    const { symbols } = window
    if (!this.repairs.fits(window, place, packets.length[packet], closing)) {
      this.discard(packet, counters.malformed_packets)
      return
    }
    if (symbols[at] !== UNSEEN) {
      this.discard(packet, counters.duplicate_packets)
      return
    }
    window.repairs[place]++
    if (window.state[place] !== OPEN) {
      symbols[at] = SEEN
      this.discard(packet, window.state[place] === DONE ? counters.redundant_packets : counters.spent_packets)
      return
    }
    this.repairs.add(window, place, at, packet, closing)
    counters.held_packets.add(1)
    this.last = packet
  }

  /** Recovers what follows, or keeps what came of the block for later; the run's sources leave, and those recovered. */
  private endRun(): void {
    if (!this.inRun) return
    this.inRun = false
    const { window, place, recovery, packets, outlet, fresh } = this
    recovery.count = 0
    if (this.freshCount > 0) {
      window.sources[place] += this.freshCount
      this.keeper.keep(window, place, this.freshCount)
      window.countSources(this.freshCount, this.overtaken || this.block !== window.newest)
      this.overtaken = false
    }
    if (window.state[place] === OPEN) this.recover()
    if (window.state[place] === OPEN) this.copyFresh()
    else this.forgetFresh()
    for (let i = 0; i < this.freshCount; i++) {
      packets.trimFront(fresh[i], LENGTH_BYTES)
      outlet.push(fresh[i])
    }
    this.freshCount = 0
    for (let i = 0; i < recovery.count; i++) outlet.push(recovery.recovered[i])
  }

  private recover(): void {
    const { window, place, recovery, counters } = this
    while (window.repairBytes[place] !== 0) {
      if (window.sources[place] >= (window.closing[place] || window.k)) break
      if (recovery.run(window, place, this.last)) break
      this.repairs.dropFewest(window, place)
    }
    counters.recovered_packets.add(recovery.count)
    const sources = window.closing[place] || window.k
    const isWhole = window.sources[place] + recovery.count >= sources
    if (isWhole || (window.repairBytes[place] !== 0 && this.keeper.missing(window, place, sources) === 0))
      this.complete(place)
  }

  /** All of a block is there: its symbols at hand go, but for the run's sources, which leave. */
  private complete(place: number): void {
    const { window, keeper, counters } = this
    if (place === this.place) this.forgetFresh()
    const used = window.sources[place] < (window.closing[place] || window.k)
    keeper.letGo(window, place, used ? counters.spent_packets : counters.redundant_packets)
    window.state[place] = DONE
  }

  /** The run's sources are about to leave and are no longer at hand. */
  private forgetFresh(): void {
    const { window, place, freshAt, freshCount } = this
    let kept = 0
    for (let i = 0; i < freshCount; i++) {
      if (window.symbols[freshAt[i]] > UNSEEN) kept++
      window.symbols[freshAt[i]] = SEEN
    }
    this.keeper.keep(window, place, -kept)
  }

  private copyFresh(): void {
    const { window, place, packets, fresh, freshAt, freshCount } = this
    for (let i = 0; i < freshCount; i++) {
      const copy = packets.clone(fresh[i])
      window.symbols[freshAt[i]] = copy < 0 ? SEEN : copy + 1
      if (copy >= 0) continue
      this.keeper.keep(window, place, -1)
      this.counters.unkept_packets.add(1)
    }
  }
}
