/** What every recovery of the missing sources of a block has in common: what it says, what it has made, how that is known again. */
import type { Packets } from '../../engine/packets.ts'
import { native } from '../../native/native.ts'
import { type BlockFormat, LENGTH_BYTES, MAX_BLOCK } from './block-header.ts'
import { type BlockWindow, RECOVERED, REPLACED, UNSEEN } from './block-window.ts'

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
  readonly memory: number
  /** Whether repairs are random combinations. */
  abstract readonly random: boolean
  /** Whether repairs are over the first sources of their block, not all over the whole of it. */
  protected readonly progressive: boolean
  /** Of each source that was computed its index, its packet, and its payload's length: what `native.gfRecover` writes. */
  protected readonly made = new Int32Array(3 * MAX_BLOCK)

  constructor(packets: Packets, memory: number, { progressive }: BlockFormat) {
    this.packets = packets
    this.memory = memory
    this.progressive = progressive
  }

  /**
   * Looks what follows from the sources and repairs at hand of a block, of which sources are missing and repairs are at hand; what does is
   * in `recovered`, with the annotations of `like`. Returns NO_MORE, WHOLE, CONTRADICTED or NO_SLOT.
   */
  abstract run(window: BlockWindow, place: number, like: number): number

  /** Symbols of a block are no longer at hand. */
  abstract forget(window: BlockWindow, place: number): void

  /**
   * All that is missing of the `wanted` sources of a block was computed, `count` packets, from repairs of `bytes` bytes that say it has that
   * many: delivers them, unless that cannot be. Returns WHOLE or CONTRADICTED.
   */
  protected takeMade(window: BlockWindow, place: number, count: number, wanted: number, bytes: number): number {
    const { made, packets } = this
    this.count = 0
    // Repairs are as long as their block's longest symbol: none is longer, and with all of them there one is as long.
    let most = window.longest[place] - LENGTH_BYTES
    for (let n = 0; n < count; n++) if (made[3 * n + 2] > most) most = made[3 * n + 2]
    if (most !== bytes - LENGTH_BYTES) {
      for (let n = 0; n < count; n++) packets.release(made[3 * n + 1])
      this.wrongShape = bytes * 256 + wanted
      return CONTRADICTED
    }
    for (let n = 0; n < count; n++) {
      const packet = made[3 * n + 1]
      // It came, and there was no slot to keep it, or it followed from fewer symbols.
      if (window.symbols[place * window.stride + made[3 * n]] !== UNSEEN) packets.release(packet)
      else this.deliver(window, place, made[3 * n], packet, packets.offset[packet] + LENGTH_BYTES, made[3 * n + 2])
    }
    window.repairBytes[place] = bytes
    window.closing[place] = wanted
    return WHOLE
  }

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
    return (native.crc32c(this.memory, from, payload) | 0) === window.sums[symbol]
  }
}
