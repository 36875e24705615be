/** What the packets of random linear block codes have beyond a Reed-Solomon block's, as docs/wire-formats.md draws it. */
import { BLOCK_HEADER_BYTES, SYMBOL_AT } from './block-header.ts'

/** A repair packet has its seed before the symbol, which a source packet has not. */
export const SEED_AT = SYMBOL_AT
export const SEED_BYTES = 4
/** Of a repair packet before its symbol; with the length. */
export const COMBINATION_AT = SEED_AT + SEED_BYTES
export const COMBINATION_HEADER_BYTES = COMBINATION_AT + 2

/** The first bytes that the packets of one code have. */
export interface Kinds {
  readonly source: number
  readonly repair: number
  /** Whether a source packet says in its closing byte how many sources the block before has. */
  readonly tellsPrevious: boolean
}

export const RLNC: Kinds = { source: 0xb2, repair: 0xb3, tellsPrevious: false }
export const KODOK: Kinds = { source: 0xb4, repair: 0xb5, tellsPrevious: true }

/** What the header of a packet says. */
export class CombinationHeader {
  isSource = false
  k = 0
  r = 0
  index = 0
  session = 0
  closing = 0
  block = 0

  /** Reads the header at `at` of a packet of `bytes` bytes. False: it is none of these kinds, or cannot have been sent. */
  read(view: DataView, at: number, bytes: number, kinds: Kinds): boolean {
    if (bytes < BLOCK_HEADER_BYTES) return false
    const shape = view.getInt32(at)
    const sender = view.getInt32(at + 4)
    const kind = shape >>> 24
    const closing = sender & 255
    this.isSource = kind === kinds.source
    this.k = (shape >>> 16) & 255
    this.r = (shape >>> 8) & 255
    this.index = shape & 255
    this.session = sender >>> 8
    this.closing = closing
    this.block = view.getInt32(at + 8)
    if (!this.isSource) {
      const isRepair = kind === kinds.repair && bytes >= COMBINATION_HEADER_BYTES
      return isRepair && this.index < this.r && closing > 0 && closing <= this.k
    }
    if (this.index >= this.k || closing > (kinds.tellsPrevious ? this.k : 0)) return false
    return view.getUint16(at + SYMBOL_AT) === bytes - BLOCK_HEADER_BYTES
  }
}
