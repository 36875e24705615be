/** What a decoder keeps of unfinished blocks, bounded for all its sessions together, and how blocks are given up. */
import type { Counter } from '../../engine/metrics.ts'
import type { Packets } from '../../engine/packets.ts'
import { type BlockDecoderCounters, LossShare, lostInOutage } from './block-counters.ts'
import { type BlockWindow, DONE, OPEN, SEEN, SPENT, UNKNOWN, UNSEEN } from './block-window.ts'

export class BlockRetention {
  /** Share of packets, sources and repairs, that did not come before their block left the window. */
  readonly loss = new LossShare()
  /** Packets kept of all sessions, and how many may be: they are slots that the run's other components go without. */
  private held = 0
  private readonly mostHeld: number
  private readonly packets: Packets
  private readonly counters: BlockDecoderCounters
  /** Whether a block that ends early may have fewer repairs than a whole one. */
  private readonly progressive: boolean
  /** Called when symbols of a block are no longer at hand. */
  private readonly forget: (window: BlockWindow, place: number) => void

  constructor(
    packets: Packets,
    counters: BlockDecoderCounters,
    progressive: boolean,
    forget: (window: BlockWindow, place: number) => void,
  ) {
    this.packets = packets
    this.counters = counters
    this.progressive = progressive
    this.forget = forget
    this.mostHeld = packets.slots >> 2
  }

  /** Slots of the symbols that unfinished blocks have at hand. */
  get kept(): number {
    return this.held
  }

  /** The addon has kept `count` packets of a window (or let them go), and of blocks that left it `lost` of `expected` packets did not come. */
  note(window: BlockWindow, count: number, expected: number, lost: number): void {
    window.held += count
    this.held += count
    this.loss.add(expected, lost)
  }

  /** `count` more packets (fewer, where negative) are kept in a block. */
  keep(window: BlockWindow, place: number, count: number): void {
    window.kept[place] += count
    window.held += count
    this.held += count
  }

  /** Keeps a repair that came; it is this block's from now on. */
  keepRepair(window: BlockWindow, place: number, symbol: number, packet: number): void {
    window.symbols[symbol] = packet + 1
    this.keep(window, place, 1)
    this.counters.held_packets.add(1)
  }

  /** Drops a kept repair, as if it had not come. */
  dropRepair(window: BlockWindow, place: number, symbol: number, counter: Counter): void {
    this.packets.release(window.symbols[symbol] - 1)
    window.symbols[symbol] = UNSEEN
    this.keep(window, place, -1)
    this.counters.held_packets.add(-1)
    counter.add(1)
    this.forget(window, place)
  }

  /** Gives up blocks, where too many packets are kept, the oldest of the session silent longest first, until an eighth of what may be is free. */
  makeRoom(windows: readonly BlockWindow[]): void {
    if (this.held <= this.mostHeld) return
    const goal = this.mostHeld - (this.mostHeld >> 3)
    while (this.held > goal) {
      let window: BlockWindow | null = null
      for (const other of windows) if (other.held > 0 && (!window || other.used < window.used)) window = other
      if (!window) return
      for (let n = 1; n <= window.places && this.held > goal; n++) {
        const place = window.place(window.newest + window.span + n)
        if (window.state[place] !== OPEN) continue
        this.letGo(window, place, this.counters.spent_packets)
        window.state[place] = SPENT
      }
    }
  }

  /** Moves the window on to `block`, giving up the blocks that fall out of it. */
  advance(window: BlockWindow, block: number): void {
    for (let steps = window.ahead(block); steps > 0; steps--) {
      window.newest = (window.newest + 1) | 0
      this.giveUp(window, window.newest - window.span, true, this.counters.spent_packets)
      window.begin(window.newest)
    }
  }

  /** Gives up every block of the window; `kept` counts the repairs that were still kept. */
  giveUpAll(window: BlockWindow, kept: Counter): void {
    // Of the newest block more may be on its way, so nothing is counted as lost there.
    this.giveUpBefore(window, window.newest, kept)
  }

  /**
   * Gives up every block of the window, whose session has gone on with the block `start`, far ahead, after an outage: what those between lack counts as
   * lost, but for `known` of them that the window there has.
   */
  giveUpForLeap(window: BlockWindow, start: number, known: number): void {
    const { newest, span, k, r, proven } = window
    let blocks = window.ahead(start) - 1 - known
    for (let ahead = 1; ahead <= span; ahead++) if (window.knows(newest + ahead)) blocks--
    this.giveUpBefore(window, start, this.counters.spent_packets)
    const usual = window.usual || k
    const lost = proven ? lostInOutage(blocks * usual) : 0
    if (lost === 0) return
    const expected = lost + (this.countsRepairs(usual, k) ? blocks * r : 0)
    this.loss.add(expected, expected)
    this.counters.unrecovered_packets.add(lost)
  }

  /** Gives up every block; what those before `end` lack is counted. */
  private giveUpBefore(window: BlockWindow, end: number, kept: Counter): void {
    const { newest, span, proven } = window
    const before = window.ahead(end)
    for (let ahead = 1 - span; ahead <= span; ahead++)
      this.giveUp(window, newest + ahead, proven && ahead < before, kept)
  }

  /** Counts what a block lacks, when that is to be `counted`, and lets go of its packets. */
  private giveUp(window: BlockWindow, block: number, counted: boolean, kept: Counter): void {
    const place = window.place(block)
    const state = window.state[place]
    if (state === UNKNOWN) return
    if (counted && (state === OPEN || state === SPENT || state === DONE)) {
      const sources = this.sourcesOf(window, block)
      const hasAll = this.countsRepairs(sources, window.k)
      const expected = sources + (hasAll ? window.r : 0)
      const came = window.sources[place] + (hasAll ? window.repairs[place] : 0)
      this.loss.add(expected, Math.max(0, expected - came))
      if (state !== DONE) this.counters.unrecovered_packets.add(this.missing(window, place, sources))
    }
    this.letGo(window, place, kept)
    window.state[place] = UNKNOWN
  }

  /** Nobody says how many repairs a block had that ended early, where it may have had fewer: its sources alone tell of the loss then. */
  private countsRepairs(sources: number, k: number): boolean {
    return !this.progressive || sources === k
  }

  /** How many sources a block had. Where nothing says it, it is taken for one like those before, or like the first of which it is known. */
  private sourcesOf(window: BlockWindow, block: number): number {
    const known = this.knownOf(window, block)
    if (known > 0) {
      window.usual = known
      return known
    }
    for (let next = block + 1; window.usual === 0 && window.ahead(next) <= 0; next++) {
      window.usual = this.knownOf(window, next)
    }
    const place = window.place(block)
    return Math.max(window.top[place], window.usual || window.k, this.covered(window, place))
  }

  /** How many sources a block had, as its packets say or those of the next one; 0: none of them does. */
  private knownOf(window: BlockWindow, block: number): number {
    const { k, closing, top, state, sources } = window
    const place = window.place(block)
    if (state[place] === UNKNOWN) return 0
    if (closing[place] > 0) return closing[place]
    if (top[place] === k) return k
    if (!this.progressive) return 0
    // Every source of the next one says it of one that ended early.
    const next = window.place(block + 1)
    return state[next] !== UNKNOWN && sources[next] > 0 ? k : 0
  }

  /** How many sources the repairs that came of a block cover, at most. */
  private covered(window: BlockWindow, place: number): number {
    const from = place * window.stride + window.k
    let most = 0
    for (let at = from; at < from + window.r; at++) most = Math.max(most, window.shapes[at] & 0xff)
    return most
  }

  /** How many of the first `sources` of a block have neither come nor been recovered. */
  missing(window: BlockWindow, place: number, sources: number): number {
    const from = place * window.stride
    let count = 0
    for (let at = from; at < from + sources; at++) if (window.symbols[at] === UNSEEN) count++
    return count
  }

  /** Releases copies of sources, and repairs, which `counter` counts. */
  letGo(window: BlockWindow, place: number, counter: Counter): void {
    const kept = window.kept[place]
    if (kept === 0) return
    const { symbols, stride, k } = window
    const at = place * stride
    let left = kept
    let repairs = 0
    for (let n = stride - 1; left > 0; n--) {
      const packet = symbols[at + n] - 1
      if (packet < 0) continue
      symbols[at + n] = SEEN
      this.packets.release(packet)
      if (n >= k) repairs++
      left--
    }
    this.keep(window, place, -kept)
    counter.add(repairs)
    this.counters.held_packets.add(-repairs)
    this.forget(window, place)
  }
}
