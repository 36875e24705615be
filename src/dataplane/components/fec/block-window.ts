/** The newest blocks of one encoder's session: which symbols have come, and where those lie that decoding may need. */

/** Symbols that a window spans, about; it is at least `MIN_BLOCKS` blocks, at most `MAX_BLOCKS`. */
const WINDOW_SYMBOLS = 1024
const MIN_BLOCKS = 4
const MAX_BLOCKS = 256

/** Values of `BlockWindow.symbols`; above 0 it is the packet that holds the symbol, plus 1. */
export const UNSEEN = 0
/** Has come and is not kept. */
export const SEEN = -1
/** Has been recovered. */
export const RECOVERED = -2

/** Block states: not of this session as far as is known, collecting, all sources there or given up. */
export const UNKNOWN = 0
export const OPEN = 1
export const DONE = 2

function windowBlocks(stride: number): number {
  let blocks = MIN_BLOCKS
  while (blocks < MAX_BLOCKS && blocks * stride < WINDOW_SYMBOLS) blocks *= 2
  return blocks
}

/**
 * A ring of blocks, made once and used for one session after another; a block's place is its id modulo the number of
 * blocks, a power of two, so that ids wrap around at 2^32. Arrays are indexed by place, `symbols` by place · (k + r) + index, where
 * sources come first.
 */
export class BlockWindow {
  /** In use. */
  active = false
  /** Has had enough packets to be believed. */
  confirmed = false
  /** Was once confirmed. */
  proven = false
  session = 0
  k = 0
  r = 0
  stride = 0
  blocks = 0
  newest = 0
  /** Packets taken, and when the last was, by the decoder's count of runs. */
  packets = 0
  used = 0
  readonly symbols = new Int32Array(2 * WINDOW_SYMBOLS)
  readonly state = new Uint8Array(MAX_BLOCKS)
  /** Sources that came. */
  readonly sources = new Uint8Array(MAX_BLOCKS)
  /** Repairs that came. */
  readonly repairs = new Uint8Array(MAX_BLOCKS)
  /** Symbols at hand for decoding. */
  readonly kept = new Uint8Array(MAX_BLOCKS)
  /** Sources of the block as its repairs say, 0 before the first. */
  readonly closing = new Uint8Array(MAX_BLOCKS)
  /** Highest index of a source that came, plus 1. */
  readonly top = new Uint8Array(MAX_BLOCKS)
  /** Bytes of the longest source symbol. */
  readonly longest = new Int32Array(MAX_BLOCKS)
  /** Bytes of the repair symbols, 0 before the first. */
  readonly repairBytes = new Int32Array(MAX_BLOCKS)

  /** Takes up a session; its window begins with `block`. */
  open(session: number, k: number, r: number, block: number): void {
    this.active = true
    this.confirmed = false
    this.proven = false
    this.session = session
    this.k = k
    this.r = r
    this.stride = k + r
    this.blocks = windowBlocks(this.stride)
    this.newest = block
    this.packets = 0
    this.state.fill(UNKNOWN)
    this.beginBlock(this.place(block))
  }

  place(block: number): number {
    return block & (this.blocks - 1)
  }

  /** How far `block` is ahead of the newest, in serial arithmetic (RFC 1982). */
  ahead(block: number): number {
    return (block - this.newest) | 0
  }

  /** Whether `block` is in the window, or at most as far ahead as the window is long. */
  reaches(block: number): boolean {
    const ahead = this.ahead(block)
    return ahead > -this.blocks && ahead <= this.blocks
  }

  /** Clears a place, which holds no packet any more, for the block that comes there. */
  beginBlock(place: number): void {
    const at = place * this.stride
    this.symbols.fill(UNSEEN, at, at + this.stride)
    this.state[place] = OPEN
    this.sources[place] = 0
    this.repairs[place] = 0
    this.kept[place] = 0
    this.closing[place] = 0
    this.top[place] = 0
    this.longest[place] = 0
    this.repairBytes[place] = 0
  }
}
