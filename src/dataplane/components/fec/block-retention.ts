/** What a decoder keeps of unfinished blocks, bounded for all its sessions together, and how blocks are given up. */
import type { Counter } from '../../engine/metrics.ts'
import type { Packets } from '../../engine/packets.ts'
import { type BlockDecoderCounters, LossShare } from './block-counters.ts'
import { type BlockWindow, DONE, OPEN, SEEN, SPENT, UNKNOWN } from './block-window.ts'

export class BlockRetention {
  /** Share of packets, sources and repairs, that did not come before their block left the window. */
  readonly loss = new LossShare()
  /** Packets kept of all sessions, and how many may be: they are slots that the run's other components go without. */
  held = 0
  private readonly mostHeld: number
  private readonly packets: Packets
  private readonly counters: BlockDecoderCounters
  /** Those of all sessions, in use or not. */
  private readonly windows: readonly BlockWindow[]

  constructor(packets: Packets, counters: BlockDecoderCounters, windows: readonly BlockWindow[]) {
    this.packets = packets
    this.counters = counters
    this.windows = windows
    this.mostHeld = packets.slots >> 2
  }

  /** Keeps a repair that came; it is this block's from now on. */
  keepRepair(window: BlockWindow, place: number, symbol: number, packet: number): void {
    window.symbols[symbol] = packet + 1
    window.kept[place]++
    window.held++
    this.held++
    this.counters.held_packets.add(1)
  }

  /** Drops a kept repair, its symbol being as `state` says from now on. */
  dropRepair(window: BlockWindow, place: number, symbol: number, state: number, counter: Counter): void {
    const packet = window.symbols[symbol] - 1
    window.symbols[symbol] = state
    window.kept[place]--
    window.held--
    this.held--
    this.counters.held_packets.add(-1)
    this.packets.release(packet)
    counter.add(1)
  }

  /** Gives up blocks, where too many packets are kept, the oldest of the session silent longest first, until an eighth of what may be is free. */
  makeRoom(): void {
    if (this.held <= this.mostHeld) return
    const goal = this.mostHeld - (this.mostHeld >> 3)
    while (this.held > goal) {
      let window: BlockWindow | null = null
      for (const other of this.windows) {
        if (other.held > 0 && (!window || other.used < window.used)) window = other
      }
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
      this.giveUp(window, window.place(window.newest - window.span), true, this.counters.spent_packets)
      window.begin(window.newest)
    }
  }

  /** Gives up every block of the window and closes it; `kept` counts the repairs that were still kept. */
  leave(window: BlockWindow, kept: Counter): void {
    // Of the newest block more may be on its way, so nothing is counted as lost there.
    for (let n = 0; n < window.places; n++) {
      const block = window.newest - n
      this.giveUp(window, window.place(block), window.proven && n > 0 && n < window.span, kept)
    }
    window.active = false
  }

  /** Counts what a block lacks, when that is to be `counted`, and lets go of its packets. */
  private giveUp(window: BlockWindow, place: number, counted: boolean, kept: Counter): void {
    const state = window.state[place]
    if (state === UNKNOWN) return
    if (counted && (state === OPEN || state === SPENT || state === DONE)) {
      const sources = window.closing[place] || window.k
      const expected = sources + window.r
      this.loss.add(expected, Math.max(0, expected - window.sources[place] - window.repairs[place]))
      if (state !== DONE) this.counters.unrecovered_packets.add(Math.max(0, sources - window.sources[place]))
    }
    this.letGo(window, place, kept)
    window.state[place] = UNKNOWN
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
    window.kept[place] = 0
    window.held -= kept
    this.held -= kept
    counter.add(repairs)
    this.counters.held_packets.add(-repairs)
  }
}
