/** The headers of the packets of block codes, as docs/wire-formats.md draws them. */
import { MAX_SYMBOLS } from '../../codes/cauchy.ts'

/** Of a source packet before the protected symbol, which begins with the two bytes of its payload's length. */
export const SYMBOL_AT = 12
/** With the length, which is part of the symbol. */
export const BLOCK_HEADER_BYTES = 14
export const LENGTH_BYTES = 2
/** Before the symbol of a random linear combination stands its seed. */
export const SEED_BYTES = 4
/** Most sources of a block, and most repairs: both have 8 bits. */
export const MAX_BLOCK = 255

/** How the packets of one code differ from those of the others. */
export interface BlockFormat {
  /** Their first bytes. */
  readonly source: number
  readonly repair: number
  /** Of a repair packet before its symbol. */
  readonly repairSymbolAt: number
  /** Most sources and repairs of a block together. */
  readonly mostSymbols: number
  /**
   * Whether repairs are over the first sources of a block, not all over the whole of it. Then a source packet says in its closing byte
   * how many sources the block before has, which otherwise its repairs say.
   */
  readonly progressive: boolean
}

const COMBINATION = { repairSymbolAt: SYMBOL_AT + SEED_BYTES, mostSymbols: 2 * MAX_BLOCK }

export const REED_SOLOMON: BlockFormat = {
  source: 0xb0,
  repair: 0xb1,
  repairSymbolAt: SYMBOL_AT,
  mostSymbols: MAX_SYMBOLS,
  progressive: false,
}
export const RLNC: BlockFormat = { source: 0xb2, repair: 0xb3, ...COMBINATION, progressive: false }
export const KODOK: BlockFormat = { source: 0xb4, repair: 0xb5, ...COMBINATION, progressive: true }

/** Most bytes that a code's header takes in front of a payload. */
export function headerBytes({ repairSymbolAt }: BlockFormat): number {
  return repairSymbolAt + LENGTH_BYTES
}

/**
 * Writes the bytes before the symbol, or the seed, at `at`: kind, k, r, index, and the session (24 bits) with the closing byte (in a repair
 * packet the number of sources that it is over), then the block.
 */
export function writeBlockHeader(
  view: DataView,
  at: number,
  kind: number,
  k: number,
  r: number,
  index: number,
  session: number,
  closing: number,
  block: number,
): void {
  view.setInt32(at, (kind << 24) | (k << 16) | (r << 8) | index)
  view.setInt32(at + 4, (session << 8) | closing)
  view.setInt32(at + 8, block)
}

/** What the header of a packet says. */
export class BlockHeader {
  isSource = false
  k = 0
  r = 0
  index = 0
  session = 0
  closing = 0
  block = 0
  /** The bytes before the index of the header read last and those behind it up to the block, when they are right; -1: they are not. */
  private shape = -1
  private sender = 0

  /** Reads the header at `at` of a packet of `bytes` bytes. False: it is none of this format, or cannot have been sent. */
  read(view: DataView, at: number, bytes: number, format: BlockFormat): boolean {
    if (bytes < BLOCK_HEADER_BYTES) return false
    const first = view.getInt32(at)
    const sender = view.getInt32(at + 4)
    const index = first & 255
    this.index = index
    this.block = view.getInt32(at + 8)
    // Most follow one of their own kind and block.
    if ((first >>> 8 !== this.shape || sender !== this.sender) && !this.readSender(first >>> 8, sender, format))
      return false
    if (this.isSource) return index < this.k && view.getUint16(at + SYMBOL_AT) === bytes - BLOCK_HEADER_BYTES
    return index < this.r && bytes >= format.repairSymbolAt + LENGTH_BYTES
  }

  private readSender(shape: number, sender: number, format: BlockFormat): boolean {
    const kind = shape >>> 16
    const k = (shape >>> 8) & 255
    const r = shape & 255
    const closing = sender & 255
    const isSource = kind === format.source
    this.isSource = isSource
    this.k = k
    this.r = r
    this.session = sender >>> 8
    this.closing = closing
    this.shape = -1
    if (k + r > format.mostSymbols) return false
    if (isSource ? closing > (format.progressive ? k : 0) : kind !== format.repair || closing === 0 || closing > k)
      return false
    this.shape = shape
    this.sender = sender
    return true
  }
}
