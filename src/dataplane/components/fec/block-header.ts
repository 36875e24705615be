/** The headers of the packets of block codes, as docs/wire-formats.md draws them. */
import { MAX_SYMBOLS } from '../../codes/cauchy.ts'
import { BATCH_CAPACITY, type Batch } from '../../engine/batch.ts'
import { native } from '../../native/native.ts'

/** Of a source packet before the protected symbol, which begins with the two bytes of its payload's length. */
export const SYMBOL_AT = 12
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

/** Of each run of packets in the words of the headers, as `native.blockHeaders` writes them. */
export const RUN_SESSION = 1
export const RUN_BLOCK = 2
/** How many sources its block has, where enough of them and of its repairs are there in their order; 0 otherwise. */
export const RUN_WANTED = 5
export const RUN_LONGEST = 6
export const RUN_WORDS = 8

/** The headers of the packets of a batch. */
export class BlockHeaders {
  readonly format: BlockFormat
  /** What `native.blockHeaders` writes. */
  readonly words = new Int32Array((1 + RUN_WORDS) * BATCH_CAPACITY)
  private readonly memory: number
  /** The format as `native.blockHeaders` has it. */
  readonly shape: Int32Array

  /** Of packets of this format in the slab that the addon knows as `memory`. */
  constructor(memory: number, format: BlockFormat) {
    const { source, repair, repairSymbolAt, mostSymbols, progressive } = format
    this.memory = memory
    this.format = format
    this.shape = Int32Array.of(source, repair, repairSymbolAt, mostSymbols, progressive ? 1 : 0)
  }

  /** Reads the headers and cuts off those that can have been sent, so that their packets begin with their symbols. */
  read({ handles, length }: Batch): void {
    native.blockHeaders(this.memory, handles, length, this.shape, this.words)
  }
}
