/** Computes the missing sources of a Reed-Solomon block when as many symbols are at hand as it has sources. */
import { DecodingMatrices, MAX_SYMBOLS, repairPoint } from '../../codes/cauchy.ts'
import { native } from '../../native/native.ts'
import { LENGTH_BYTES } from './block-header.ts'
import { BlockRecovery, CONTRADICTED, NO_MORE, NO_SLOT, WHOLE } from './block-recovery.ts'
import { type BlockWindow, SEEN, UNSEEN } from './block-window.ts'

/** Kinds of repairs of one block that are weighed against each other. */
const MAX_SHAPES = 4

export class CauchyRecovery extends BlockRecovery {
  readonly mostShapes = MAX_SHAPES
  private readonly matrices = new DecodingMatrices()
  private readonly points = new Uint8Array(MAX_SYMBOLS)
  private readonly missing = new Uint8Array(MAX_SYMBOLS)
  /** Packets of the symbols at hand, then of those computed. */
  private readonly list = new Int32Array(2 * MAX_SYMBOLS)
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
    const { packets, points, missing, list, memory } = this
    const { k, symbols, shapes } = window
    const base = place * window.stride
    const shape = bytes * 256 + wanted
    const isMixed = window.mixed[place] !== 0
    let columns = 0
    let erasures = 0
    this.count = 0
    for (let i = 0; i < wanted; i++) {
      // 1 where it is at hand. Which are is anyone's guess: a branch would be mispredicted at every second gap.
      const kept = symbols[base + i]
      const isAtHand = (UNSEEN - kept) >>> 31
      points[columns] = i
      list[columns] = kept - 1
      missing[erasures] = i
      columns += isAtHand
      erasures += 1 - isAtHand
    }
    for (let j = 0; columns < wanted; j++) {
      const at = base + k + j
      if (symbols[at] <= UNSEEN || (isMixed && shapes[at] !== shape)) continue
      points[columns] = repairPoint(j)
      list[columns++] = symbols[at] - 1
    }
    const matrix = this.matrices.get(points, wanted, missing, erasures)
    const made = native.gfMultiplyPackets(memory, matrix, list, 1, wanted, erasures, 0, bytes, like)
    if (made < erasures || !this.isPossible(window.longest[place], wanted, erasures, bytes)) {
      for (let m = 0; m < made; m++) packets.release(list[wanted + m])
      this.wrongShape = shape
      return made < erasures ? NO_SLOT : CONTRADICTED
    }
    for (let m = 0; m < erasures; m++) this.finish(window, place, missing[m], list[wanted + m])
    window.repairBytes[place] = bytes
    window.closing[place] = wanted
    return WHOLE
  }

  /** Repairs are as long as their block's longest symbol: none is longer, and with all of them there one is as long. */
  private isPossible(longest: number, wanted: number, erasures: number, bytes: number): boolean {
    const { list } = this
    const { view, offset } = this.packets
    let most = longest - LENGTH_BYTES
    for (let m = 0; m < erasures; m++) {
      const payload = view.getUint16(offset[list[wanted + m]])
      if (payload > most) most = payload
    }
    return most === bytes - LENGTH_BYTES
  }

  /** Delivers the source `index`, unless it came and there was no slot to keep it. */
  private finish(window: BlockWindow, place: number, index: number, packet: number): void {
    const { packets } = this
    if (window.symbols[place * window.stride + index] === SEEN) {
      packets.release(packet)
      return
    }
    const at = packets.offset[packet]
    this.deliver(window, place, index, packet, at + LENGTH_BYTES, packets.view.getUint16(at))
  }
}
