/** Computes the missing sources of a Reed-Solomon block when as many symbols are at hand as it has sources. */
import { MAX_SYMBOLS } from '../../codes/cauchy.ts'
import { native } from '../../native/native.ts'
import { LENGTH_BYTES } from './block-header.ts'
import { BlockRecovery, CONTRADICTED, NO_MORE, NO_SLOT, WHOLE } from './block-recovery.ts'
import { type BlockWindow, SEEN, UNSEEN } from './block-window.ts'

/** Kinds of repairs of one block that are weighed against each other. */
const MAX_SHAPES = 4

export class CauchyRecovery extends BlockRecovery {
  readonly mostShapes = MAX_SHAPES
  /** Of each source computed its index, its packet, and its length. */
  private readonly made = new Int32Array(3 * MAX_SYMBOLS)
  /** Symbols of a block of which some repairs do not count. */
  private readonly picked = new Int32Array(MAX_SYMBOLS)
  private readonly shapes = new Int32Array(MAX_SHAPES)

  forget(): void {}

  run(window: BlockWindow, place: number, like: number): number {
    const bytes = window.repairBytes[place]
    if (window.mixed[place] === 0) {
      const closing = window.closing[place]
      return window.kept[place] < closing ? NO_MORE : this.decode(window, place, closing, bytes, like)
    }
    // The repairs contradict each other: those of one shape that suffice count, if there are.
    const count = window.shapesOf(place, 0, this.shapes)
    for (let n = 0; n < count; n++) {
      const shape = this.shapes[n]
      const closing = shape & 255
      const atHand = window.kept[place] - this.othersThan(window, place, shape)
      if (window.sources[place] >= closing || atHand < closing) continue
      return this.decode(window, place, closing, shape >> 8, like)
    }
    return NO_MORE
  }

  /** How many repairs of other shapes are at hand. */
  private othersThan(window: BlockWindow, place: number, shape: number): number {
    const from = place * window.stride + window.k
    let others = 0
    for (let at = from; at < from + window.r; at++) {
      if (window.symbols[at] > UNSEEN && window.shapes[at] !== shape) others++
    }
    return others
  }

  /**
   * Recovers the missing of the `wanted` sources of a block with repairs of `bytes` bytes that say it has that many. There are enough symbols
   * at hand.
   */
  private decode(window: BlockWindow, place: number, wanted: number, bytes: number, like: number): number {
    const { made, memory } = this
    const { k, r } = window
    const shape = bytes * 256 + wanted
    this.count = 0
    let symbols = window.symbols
    let from = place * window.stride
    if (window.mixed[place] !== 0) {
      this.pick(window, from, shape)
      symbols = this.picked
      from = 0
    }
    const count = native.gfRecover(memory, symbols, from, k, r, wanted, bytes, like, made)
    if (count < 0) return NO_SLOT
    // Repairs are as long as their block's longest symbol: none is longer, and with all of them there one is as long.
    let most = window.longest[place] - LENGTH_BYTES
    for (let n = 0; n < count; n++) if (made[3 * n + 2] > most) most = made[3 * n + 2]
    if (most !== bytes - LENGTH_BYTES) {
      for (let n = 0; n < count; n++) this.packets.release(made[3 * n + 1])
      this.wrongShape = shape
      return CONTRADICTED
    }
    for (let n = 0; n < count; n++) this.finish(window, place, made[3 * n], made[3 * n + 1], made[3 * n + 2])
    window.repairBytes[place] = bytes
    window.closing[place] = wanted
    return WHOLE
  }

  /** Copies the symbols of a block from `from` on, its repairs only if they have this shape. */
  private pick(window: BlockWindow, from: number, shape: number): void {
    const { picked } = this
    const { k, stride, symbols, shapes } = window
    for (let n = 0; n < stride; n++) picked[n] = n < k || shapes[from + n] === shape ? symbols[from + n] : UNSEEN
  }

  /** Delivers the source `index` of `bytes` bytes, unless it came and there was no slot to keep it. */
  private finish(window: BlockWindow, place: number, index: number, packet: number, bytes: number): void {
    const { packets } = this
    if (window.symbols[place * window.stride + index] === SEEN) packets.release(packet)
    else this.deliver(window, place, index, packet, packets.offset[packet] + LENGTH_BYTES, bytes)
  }
}
