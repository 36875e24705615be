/** Passes source packets on and recovers missing ones as soon as what has come of their block determines them. */
import type { Batch } from '../../engine/batch.ts'
import type { Counter } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import { BEGINS_RUN, SOURCE_PACKET } from '../../native/native.ts'
import type { BlockDecoderCounters } from './block-counters.ts'
import {
  type BlockHeaders,
  LENGTH_BYTES,
  MAX_BLOCK,
  RUN_BLOCK,
  RUN_PACKETS,
  RUN_SESSION,
  RUN_WORDS,
} from './block-header.ts'
import { type BlockRecovery, CONTRADICTED, NO_MORE, NO_SLOT, WHOLE } from './block-recovery.ts'
import { BlockRepairs } from './block-repairs.ts'
import { BlockRetention } from './block-retention.ts'
import { BlockSessions, LATE } from './block-sessions.ts'
import { BlockWindow, DONE, OPEN, RECOVERED, REPLACED, SEEN, UNKNOWN, UNSEEN } from './block-window.ts'
import { WholeBlocks } from './whole-blocks.ts'

/** What `findRun` says of a run that has begun. */
const ONE_BY_ONE = 0

/**
 * Packets of one block that follow each other in a batch make a run. At its end what follows is computed from the packets where they
 * lie, and when the block is not complete its new sources are copied and leave, since whoever comes next may change them. Runs of whole blocks
 * wait for each other and are passed on in one call.
 *
 * A source that came leaves, once, whatever repairs say: those may be cut short or made up. Where they contradict the sources, or each
 * other, they are dropped.
 */
export class BlockDecoder {
  private readonly packets: Packets
  private readonly outlet: Outlet
  private readonly counters: BlockDecoderCounters
  private readonly headers: BlockHeaders
  private readonly sessions: BlockSessions
  private readonly recovery: BlockRecovery
  private readonly retention: BlockRetention
  private readonly repairs: BlockRepairs
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
  /** The packets of the batch at hand, and its blocks that wait for one call. */
  private handles = new Int32Array(0)
  private readonly whole: WholeBlocks
  /** The last packet taken, whose annotations recovered packets get. */
  private last = -1

  /** Follows at most `sessions` sessions at once. */
  constructor(
    packets: Packets,
    outlet: Outlet,
    counters: BlockDecoderCounters,
    headers: BlockHeaders,
    recovery: BlockRecovery,
    sessions: number,
  ) {
    const { progressive } = headers.format
    this.packets = packets
    this.outlet = outlet
    this.counters = counters
    this.headers = headers
    this.recovery = recovery
    this.retention = new BlockRetention(packets, counters, progressive, (window, place) =>
      recovery.forget(window, place),
    )
    this.repairs = new BlockRepairs(packets, counters, this.retention, progressive, recovery.mostShapes)
    this.whole = new WholeBlocks(packets, recovery.memory, recovery.random, counters, this.retention, outlet)
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
    const { headers } = this
    const { words } = headers
    this.handles = handles
    headers.read(batch)
    let run = length - RUN_WORDS
    for (let i = 0; i < length; i++) {
      const word = words[i]
      if (word < 0) {
        this.discard(handles[i], this.counters.malformed_packets)
        continue
      }
      if ((word & BEGINS_RUN) !== 0) {
        this.endRun()
        run += RUN_WORDS
      }
      const isSource = (word & SOURCE_PACKET) !== 0
      if (!this.inRun) {
        const found = this.findRun(i, isSource, run)
        if (found !== ONE_BY_ONE) {
          i += found - 1
          continue
        }
      }
      if (isSource) i = this.takeSources(handles, i, length)
      else this.takeRepair(handles[i], word)
    }
    this.endRun()
    this.passWhole()
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

  /** Takes the sources of the run from `handles[i]` on, which is one; returns the index of the last. */
  private takeSources(handles: Int32Array, i: number, length: number): number {
    const { window, place, fresh, freshAt } = this
    const { words } = this.headers
    const { symbols } = window
    const bytes = this.packets.length
    const base = place * window.stride
    // Of a block that has no repairs yet a source that is new needs no more looking at.
    const isPlain = this.block === window.newest && window.repairBytes[place] === 0
    let top = window.top[place]
    let longest = window.longest[place]
    let count = this.freshCount
    let at = i
    for (let word = words[at]; isPlain; word = words[at]) {
      // Neither a closing byte nor the beginning of another run.
      const symbol = base + (word & 255)
      if ((word & ~255 & (at === i ? ~BEGINS_RUN : -1)) !== SOURCE_PACKET || symbols[symbol] !== UNSEEN) break
      const packet = handles[at]
      symbols[symbol] = packet + 1
      fresh[count] = packet
      freshAt[count++] = symbol
      if (bytes[packet] > longest) longest = bytes[packet]
      const index = word & 255
      if (index < top) this.overtaken = true
      else top = index + 1
      if (++at === length) break
    }
    if (at === i) {
      this.takeSource(handles[i], words[i] & 255, (words[i] >> 8) & 255)
      return i
    }
    this.freshCount = count
    window.top[place] = top
    window.longest[place] = longest
    this.last = handles[at - 1]
    return at - 1
  }

  private takeRepair(packet: number, word: number): void {
    if (this.repairs.take(this.window, this.place, packet, word & 255, (word >> 8) & 255)) this.last = packet
  }

  /**
   * Begins the run of the packet at `i`, which `ONE_BY_ONE` says; or returns how many packets are taken: all of a run that waits with others, or one that no window
   * takes.
   */
  private findRun(i: number, isSource: boolean, run: number): number {
    const { words } = this.headers
    const shape = words[run]
    const session = words[run + RUN_SESSION]
    const block = words[run + RUN_BLOCK]
    if (!this.whole.continues(words, run, session, shape)) this.passWhole()
    const found = this.sessions.find(session, shape >> 8, shape & 255, block, isSource)
    if (typeof found !== 'number') {
      this.retention.makeRoom(this.sessions.windows)
      found.begin(block)
      if ((words[i] & BEGINS_RUN) !== 0 && this.whole.add(words, run, found, i)) return words[run + RUN_PACKETS]
      this.passWhole()
      this.beginRun(found, block)
      return ONE_BY_ONE
    }
    this.passWhole()
    const packet = this.handles[i]
    if (found === LATE) this.discard(packet, this.counters.late_packets)
    else if (!isSource) this.discard(packet, this.counters.unfollowed_repair_packets)
    else {
      this.packets.trimFront(packet, LENGTH_BYTES)
      this.counters.unfollowed_packets.add(1)
      this.outlet.push(packet)
    }
    return 1
  }

  private beginRun(window: BlockWindow, block: number): void {
    this.window = window
    this.block = block
    this.place = window.place(block)
    this.inRun = true
  }

  /** Passes on the blocks that wait; one of which what is missing cannot be made at once is taken packet by packet. */
  private passWhole(): void {
    const { whole, handles } = this
    const { words } = this.headers
    while (whole.count > 0) {
      const at = whole.pass(handles, words)
      if (at < 0) return
      const end = at + whole.size
      this.beginRun(whole.owner, whole.block)
      for (let i = at; i < end; i++) {
        if ((words[i] & SOURCE_PACKET) !== 0) i = this.takeSources(handles, i, end)
        else this.takeRepair(handles[i], words[i])
      }
      this.endRun()
    }
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
    const { window, place, recovery, outlet, fresh } = this
    const { offset, length } = this.packets
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
      const packet = fresh[i]
      offset[packet] += LENGTH_BYTES
      length[packet] -= LENGTH_BYTES
      outlet.push(packet)
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
