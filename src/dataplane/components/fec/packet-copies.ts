/** Copies of packets that are still needed when these have left, in slots of their own. */
import { native } from '../../native/native.ts'
import { MAX_BLOCK } from './block-header.ts'

export class PacketCopies {
  /** The copies that the last `make` made. */
  readonly handles = new Int32Array(MAX_BLOCK)
  private readonly memory: number

  /** Of packets in the slab that the addon knows as `memory`. */
  constructor(memory: number) {
    this.memory = memory
  }

  /** Copies packets `from` to `end` (not included), at most MAX_BLOCK, with their annotations; returns how many, fewer where slots run out. */
  make(packets: Int32Array, from: number, end: number): number {
    return native.packetsCopy(this.memory, packets, from, end, this.handles)
  }
}
