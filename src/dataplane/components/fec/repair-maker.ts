/** How the repair packets of a block are made: by a Cauchy matrix, or with random coefficients. */
import { cauchyMatrix } from '../../codes/cauchy.ts'
import { Random } from '../../engine/random.ts'
import { native } from '../../native/native.ts'
import { SEED_BYTES, SYMBOL_AT } from './block-header.ts'

export interface RepairMaker {
  /**
   * Makes `repairs` repair packets of each of `blocks` blocks. `symbols` has, block by block, the handles of `sources` source packets and room
   * for those of its repairs. `header` has the three words of the header of the first repair of the first block. Returns how many there are, those of
   * the first blocks first; fewer than wanted when slots have run out.
   */
  make(symbols: Int32Array, blocks: number, sources: number, repairs: number, header: Int32Array): number
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

  make(symbols: Int32Array, blocks: number, sources: number, repairs: number, header: Int32Array): number {
    const matrix = sources === this.k ? this.matrix : this.shortened(sources, repairs)
    return native.gfMultiplyPackets(this.memory, matrix, symbols, blocks, sources, repairs, SYMBOL_AT, 0, -1, header)
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

/** Random linear combinations; each has the seed of its coefficients in front of its symbol. */
export class RandomRepairs implements RepairMaker {
  private readonly memory: number
  private readonly random: Random
  private readonly seeds: Int32Array

  /** For at most `most` repairs at once; their seeds are drawn from the stream of `seed`. */
  constructor(memory: number, seed: number, most: number) {
    this.memory = memory
    this.random = new Random(seed)
    this.seeds = new Int32Array(most)
  }

  make(symbols: Int32Array, blocks: number, sources: number, repairs: number, header: Int32Array): number {
    const { memory, seeds, random } = this
    for (let n = 0; n < blocks * repairs; n++) seeds[n] = random.bits()
    return native.gfRandomPackets(memory, seeds, symbols, blocks, sources, repairs, SYMBOL_AT, SEED_BYTES, header)
  }
}
