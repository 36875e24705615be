/** Computes the missing sources of a Reed-Solomon block when as many symbols are at hand as it has sources. */
import { MAX_SYMBOLS } from '../../codes/cauchy.ts'
import { native } from '../../native/native.ts'
import { BlockRecovery, NO_MORE, NO_SLOT } from './block-recovery.ts'
import { type BlockWindow, UNSEEN } from './block-window.ts'

/** Kinds of repairs of one block that are weighed against each other. */
const MAX_SHAPES = 4

export class CauchyRecovery extends BlockRecovery {
  readonly random = false
  readonly mostShapes = MAX_SHAPES
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
    let symbols = window.symbols
    let from = place * window.stride
    if (window.mixed[place] !== 0) {
      this.pick(window, from, bytes * 256 + wanted)
      symbols = this.picked
      from = 0
    }
    const count = native.gfRecover(memory, symbols, from, k, r, wanted, bytes, like, made)
    return count < 0 ? NO_SLOT : this.takeMade(window, place, count, wanted, bytes)
  }

  /** Copies the symbols of a block from `from` on, its repairs only if they have this shape. */
  private pick(window: BlockWindow, from: number, shape: number): void {
    const { picked } = this
    const { k, stride, symbols, shapes } = window
    for (let n = 0; n < stride; n++) picked[n] = n < k || shapes[from + n] === shape ? symbols[from + n] : UNSEEN
  }
}
