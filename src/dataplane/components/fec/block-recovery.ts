/** What every recovery of the missing sources of a block has in common: what it says, what it has made, how that is known again. */
import type { Packets } from '../../engine/packets.ts'
import { native } from '../../native/native.ts'
import { LENGTH_BYTES, MAX_BLOCK } from './block-header.ts'
import { type BlockWindow, RECOVERED, REPLACED } from './block-window.ts'

/** What came of it: what follows was recovered, which may be nothing; so the block is whole; the repairs contradict what arrived, or each other; or slots have run out. */
export const NO_MORE = 0
export const WHOLE = 1
export const CONTRADICTED = 2
export const NO_SLOT = 3

export abstract class BlockRecovery {
  /** Recovered packets, the first `count`, in the order of their sources. */
  readonly recovered = new Int32Array(MAX_BLOCK)
  count = 0
  /** When the outcome is CONTRADICTED: the shape of the repairs that are wrong, 0 where that is not known. */
  wrongShape = 0
  /** Most shapes of repairs of one block that it weighs against each other. */
  abstract readonly mostShapes: number
  protected readonly packets: Packets
  protected readonly memory: number

  constructor(packets: Packets, memory: number) {
    this.packets = packets
    this.memory = memory
  }

  /**
   * Looks what follows from the sources and repairs at hand of a block, of which sources are missing and repairs are at hand; what does is
   * in `recovered`, with the annotations of `like`. Returns NO_MORE, WHOLE, CONTRADICTED or NO_SLOT.
   */
  abstract run(window: BlockWindow, place: number, like: number): number

  /** Symbols of a block are no longer at hand. */
  abstract forget(window: BlockWindow, place: number): void

  /** Puts the recovered source `index` of a block, whose payload of `bytes` bytes lies at `at`, among the recovered. */
  protected deliver(
    window: BlockWindow,
    place: number,
    index: number,
    packet: number,
    at: number,
    bytes: number,
  ): void {
    const symbol = place * window.stride + index
    // A sum costs a third of the recovery. One that others have overtaken, where nothing is ever overtaken, is lost.
    if (window.orderly && index < window.top[place]) window.symbols[symbol] = REPLACED
    else {
      window.symbols[symbol] = RECOVERED
      window.sums[symbol] = native.crc32c(this.memory, at, bytes)
    }
    this.packets.offset[packet] = at
    this.packets.length[packet] = bytes
    this.recovered[this.count++] = packet
  }

  /** Whether `packet`, which begins with its symbol, holds what was recovered in its place. */
  matches(window: BlockWindow, symbol: number, packet: number): boolean {
    const from = this.packets.offset[packet] + LENGTH_BYTES
    const payload = this.packets.length[packet] - LENGTH_BYTES
    return native.crc32c(this.memory, from, payload) === window.sums[symbol]
  }
}
