/** The packets of one block that follow each other in a batch, taken one by one. */
import type { Counter } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import { BEGINS_RUN, SOURCE_PACKET } from '../../native/code-calls.ts'
import type { BlockDecoderCounters } from './block-counters.ts'
import { LENGTH_BYTES, MAX_BLOCK } from './block-header.ts'
import { type BlockRecovery, CONTRADICTED, NO_MORE, NO_SLOT, WHOLE } from './block-recovery.ts'
import { BlockRepairs } from './block-repairs.ts'
import type { BlockRetention } from './block-retention.ts'
import { BlockWindow, DONE, OPEN, RECOVERED, REPLACED, SEEN, UNKNOWN, UNSEEN } from './block-window.ts'
import { PacketCopies } from './packet-copies.ts'

/**
 * At its end what follows is computed from the packets where they lie, and when the block is not complete its new sources are copied and
 * leave, since whoever comes next may change them.
 */
export class BlockRun {
  /** Between `begin` and `end`. */
  begun = false
  private readonly packets: Packets
  private readonly outlet: Outlet
  private readonly counters: BlockDecoderCounters
  private readonly recovery: BlockRecovery
  private readonly retention: BlockRetention
  private readonly repairs: BlockRepairs
  private readonly copies: PacketCopies
  private window = new BlockWindow()
  private block = 0
  private place = 0
  /** Sources that came in it, not sent yet. */
  private readonly fresh = new Int32Array(MAX_BLOCK)
  private readonly freshAt = new Int32Array(MAX_BLOCK)
  private freshCount = 0
  /** One of those by another one of its block. */
  private overtaken = false
  /** The last packet taken, whose annotations recovered packets get. */
  private last = -1

  /** `progressive`: repairs are over the first sources of their block. */
  constructor(
    packets: Packets,
    outlet: Outlet,
    counters: BlockDecoderCounters,
    recovery: BlockRecovery,
    retention: BlockRetention,
    progressive: boolean,
  ) {
    this.packets = packets
    this.outlet = outlet
    this.counters = counters
    this.recovery = recovery
    this.retention = retention
    this.repairs = new BlockRepairs(packets, counters, retention, progressive, recovery.mostShapes)
    this.copies = new PacketCopies(recovery.memory)
  }

  /** Packets of this block follow. */
  begin(window: BlockWindow, block: number): void {
    this.window = window
    this.block = block
    this.place = window.place(block)
    this.begun = true
  }

  /** Takes the sources of the run from `handles[i]` on, which is one, with the words of their headers; returns the index of the last. */
  takeSources(handles: Int32Array, words: Int32Array, i: number, length: number): number {
    const { window, place, fresh, freshAt } = this
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

  /** Takes a repair with the word of its header. */
  takeRepair(packet: number, word: number): void {
    if (this.repairs.take(this.window, this.place, packet, word & 255, (word >> 8) & 255)) this.last = packet
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
  end(): void {
    if (!this.begun) return
    this.begun = false
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
    const { window, place, copies, fresh, freshAt, freshCount } = this
    if (freshCount === 0) return
    const copied = copies.make(fresh, 0, freshCount)
    for (let i = 0; i < freshCount; i++) window.symbols[freshAt[i]] = i < copied ? copies.handles[i] + 1 : SEEN
    this.retention.keep(window, place, copied - freshCount)
    this.counters.unkept_packets.add(freshCount - copied)
  }

  private discard(packet: number, counter: Counter): void {
    this.packets.release(packet)
    counter.add(1)
  }
}
