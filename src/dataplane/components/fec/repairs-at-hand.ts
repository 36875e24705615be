/** The repairs that a block has at hand: what they say of it, and which of them go when they contradict the sources or each other. */
import type { Counter } from '../../engine/metrics.ts'
import type { Packets } from '../../engine/packets.ts'
import type { BlockKeeper } from './block-keeper.ts'
import { type BlockWindow, UNSEEN } from './block-window.ts'

/**
 * `repairBytes` of a window has the length of the shortest repair of each block, 0 without one. With `saysEnd` every repair covers
 * its whole block, and `closing` has the most sources that one says there are.
 */
export class RepairsAtHand {
  private readonly packets: Packets
  private readonly keeper: BlockKeeper
  private readonly saysEnd: boolean
  private readonly malformed: Counter
  private readonly forget: (window: BlockWindow, place: number) => void

  /** `forget` is called when repairs of a block no longer count, `malformed` counts them. */
  constructor(
    packets: Packets,
    keeper: BlockKeeper,
    saysEnd: boolean,
    malformed: Counter,
    forget: (window: BlockWindow, place: number) => void,
  ) {
    this.packets = packets
    this.keeper = keeper
    this.saysEnd = saysEnd
    this.malformed = malformed
    this.forget = forget
  }

  /** Whether a repair of `bytes` bytes over `closing` sources can be one of a block of which these sources have come. */
  fits(window: BlockWindow, place: number, bytes: number, closing: number): boolean {
    return closing >= window.top[place] ? bytes >= window.longest[place] : !this.saysEnd
  }

  /** Keeps a repair, whose place in `window.symbols` nobody has. */
  add(window: BlockWindow, place: number, symbol: number, packet: number, closing: number): void {
    const bytes = this.packets.length[packet]
    window.symbols[symbol] = packet + 1
    window.closings[symbol] = closing
    this.keeper.keep(window, place, 1)
    const least = window.repairBytes[place]
    if (least === 0 || bytes < least) window.repairBytes[place] = bytes
    if (this.saysEnd && closing > window.closing[place]) window.closing[place] = closing
  }

  /** A source of `bytes` bytes has come: drops those that know of no such source. */
  dropContradicted(window: BlockWindow, place: number, index: number, bytes: number): void {
    const least = window.repairBytes[place]
    if (least === 0 || (bytes <= least && (!this.saysEnd || index < window.closing[place]))) return
    const from = place * window.stride + window.k
    for (let at = from; at < from + window.r; at++) {
      const kept = window.symbols[at]
      if (kept <= UNSEEN) continue
      const covers = window.closings[at] > index
      if (covers ? this.packets.length[kept - 1] < bytes : this.saysEnd) this.drop(window, place, at)
    }
    this.learn(window, place)
  }

  /** They cannot all be right: drops those of one length and number of sources, of which there are fewest. */
  dropFewest(window: BlockWindow, place: number): void {
    const { length } = this.packets
    const from = place * window.stride + window.k
    const to = from + window.r
    let chosen = 0
    let fewest = window.r + 1
    for (let at = from; at < to; at++) {
      const shape = window.shapeAt(at, length)
      if (shape === 0) continue
      let count = 0
      for (let other = from; other < to; other++) if (window.shapeAt(other, length) === shape) count++
      if (count >= fewest) continue
      fewest = count
      chosen = shape
    }
    for (let at = from; at < to; at++)
      if (chosen !== 0 && window.shapeAt(at, length) === chosen) this.drop(window, place, at)
    this.learn(window, place)
  }

  private drop(window: BlockWindow, place: number, symbol: number): void {
    window.repairs[place]--
    this.keeper.dropRepair(window, place, symbol, this.malformed)
    this.forget(window, place)
  }

  /** Finds out anew what the repairs at hand say of the block. */
  private learn(window: BlockWindow, place: number): void {
    const { length } = this.packets
    const from = place * window.stride + window.k
    let least = 0
    let most = 0
    for (let at = from; at < from + window.r; at++) {
      const kept = window.symbols[at]
      if (kept <= UNSEEN) continue
      if (least === 0 || length[kept - 1] < least) least = length[kept - 1]
      most = Math.max(most, window.closings[at])
    }
    window.repairBytes[place] = least
    if (this.saysEnd) window.closing[place] = most
  }
}
