/** How the repair packets of a block are made: by a Cauchy matrix, or with random coefficients. */
import { cauchyMatrix } from '../../codes/cauchy.ts'
import { native } from '../../native/native.ts'
import { SEED_BYTES, SYMBOL_AT } from './block-header.ts'

export interface RepairMaker {
  /**
   * Makes `repairs` repair packets of each of `blocks` blocks. `symbols` has, block by block, the handles of `sources` source packets and room
   * for those of its repairs. `header` has the three words of the header of the first repair of the first block. Returns how many there are, those of
   * the first blocks first; fewer than wanted when slots have run out. With `framed` the packets that the last call of `blockFrame` has put into `symbols` are
   * where it left them.
   */
  make(
    symbols: Int32Array,
    blocks: number,
    sources: number,
    repairs: number,
    header: Int32Array,
    framed: boolean,
  ): number
}

/** Reed-Solomon's: repair j of a block is that of row j of the Cauchy matrix. */
export class CauchyRepairs implements RepairMaker {
  private readonly memory: number
  private readonly k: number
  private readonly matrix: Uint8Array
  private readonly shortMatrix: Uint8Array

  /** For blocks of up to `k` sources. */
  constructor(memory: number, k: number, r: number) {
    this.memory = memory
    this.k = k
    this.matrix = cauchyMatrix(k, r)
    this.shortMatrix = new Uint8Array(k * r)
  }

  make(
    symbols: Int32Array,
    blocks: number,
    sources: number,
    repairs: number,
    header: Int32Array,
    framed: boolean,
  ): number {
    const { memory } = this
    const matrix = sources === this.k ? this.matrix : this.shortened(sources, repairs)
    return native.gfMultiplyPackets(memory, matrix, symbols, blocks, sources, repairs, SYMBOL_AT, 0, -1, header, framed)
  }

  /** The encoding matrix for as many sources. */
  private shortened(sources: number, repairs: number): Uint8Array {
    const { k, matrix, shortMatrix } = this
    for (let j = 0; j < repairs; j++) {
      for (let i = 0; i < sources; i++) shortMatrix[j * sources + i] = matrix[j * k + i]
    }
    return shortMatrix
  }
}

/**
 * Random linear combinations; each has the seed of its coefficients in front of its symbol. It is one more than that of the combination before, so that both ends can
 * draw the coefficients of sixteen at once, however few a block has.
 */
export class RandomRepairs implements RepairMaker {
  private readonly memory: number
  private seed: number

  /** The first repair has this seed. */
  constructor(memory: number, seed: number) {
    this.memory = memory
    this.seed = seed >>> 0
  }

  make(
    symbols: Int32Array,
    blocks: number,
    sources: number,
    repairs: number,
    header: Int32Array,
    framed: boolean,
  ): number {
    const { memory, seed } = this
    this.seed = (seed + blocks * repairs) >>> 0
    return native.gfRandomPackets(
      memory,
      seed,
      symbols,
      blocks,
      sources,
      repairs,
      SYMBOL_AT,
      SEED_BYTES,
      header,
      framed,
    )
  }
}
