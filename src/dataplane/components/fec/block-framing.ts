/** The headers of source packets, those of a batch in one call into the addon. */
import { native } from '../../native/native.ts'
import { type BlockFormat, headerBytes, MAX_BLOCK } from './block-header.ts'

/** Words of the state that `native.blockFrame` goes on from. */
const FIRST_WORD = 0
const SENDER = 1
const BLOCK = 2
const INDEX = 3
const FRONT = 4
const SOURCES = 5
const AT = 6
const STRIDE = 7
const BLOCKS = 8
const PREVIOUS = 9
const NO_ROOM = 10
const LAST = 11
const COPIED = 12
const WORDS = 13

export class BlockFraming {
  private readonly memory: number
  private readonly format: BlockFormat
  private readonly session: number
  private readonly words = new Int32Array(WORDS)

  /** For blocks of k sources and r repairs, `stride` apart in lists of their packets. */
  constructor(memory: number, format: BlockFormat, session: number, k: number, r: number, stride: number) {
    this.memory = memory
    this.format = format
    this.session = session
    this.words[FIRST_WORD] = (format.source << 24) | (k << 16) | (r << 8)
    this.words[FRONT] = headerBytes(format)
    this.words[STRIDE] = stride
    this.words[PREVIOUS] = format.progressive ? k : 0
    // Without repairs nobody needs them once they have left.
    this.words[LAST] = r > 0 ? k : 0
  }

  /** Copies of the sources that the last `frame` has added to the block at hand, where that goes on: the first `copied`. */
  readonly copies = new Int32Array(MAX_BLOCK)

  /** The block at hand, how many sources it has, and how many packets were released for want of room, as of the last `frame`. */
  get block(): number {
    return this.words[BLOCK]
  }
  get count(): number {
    return this.words[INDEX]
  }
  get refused(): number {
    return this.words[NO_ROOM]
  }
  /** How many of them there are: fewer than sources where slots have run out. */
  get copied(): number {
    return this.words[COPIED]
  }

  /** The next source is number `count` of `block`, behind `waiting` other blocks; the block before has `previous`. */
  goOn(block: number, count: number, previous: number, waiting: number): void {
    const { words } = this
    words[SENDER] = (this.session << 8) | (this.format.progressive ? previous : 0)
    words[BLOCK] = block
    words[INDEX] = count
    words[AT] = waiting * words[STRIDE]
  }

  /**
   * Frames packets from the `i`th on and puts them into `symbols`, until they end or `blocks` blocks have `sources` sources; of these the last stays at
   * hand. Returns how far it came.
   */
  frame(handles: Int32Array, i: number, length: number, sources: number, blocks: number, symbols: Int32Array): number {
    this.words[SOURCES] = sources
    this.words[BLOCKS] = blocks
    return native.blockFrame(this.memory, handles, i, length, this.words, symbols, this.copies)
  }
}
