/** Packets that wait for their connection: any number of lists over one table of successors. */
import type { Packets } from '../../engine/packets.ts'

const NONE = -1

/** The table: the packet behind each, by handle. A packet is in one list at most. */
export type Successors = Int32Array

/** Owns the packets given to `push` until `shift` or `clear`. */
export class SendQueue {
  /** How many packets wait. */
  length = 0
  /** Sum of their lengths. */
  bytes = 0
  private first = NONE
  private last = NONE
  private readonly packets: Packets
  private readonly successors: Successors

  constructor(packets: Packets, successors: Successors) {
    this.packets = packets
    this.successors = successors
  }

  push(packet: number): void {
    if (this.length === 0) this.first = packet
    else this.successors[this.last] = packet
    this.last = packet
    this.length++
    this.bytes += this.packets.length[packet]
  }

  /** Writes the first packets to `handles`, as many as it holds, and their lengths to `lengths`; returns how many. They stay. */
  peek(handles: Int32Array, lengths: Int32Array): number {
    const { packets, successors } = this
    const count = Math.min(this.length, handles.length)
    for (let i = 0, packet = this.first; i < count; i++, packet = successors[packet]) {
      handles[i] = packet
      lengths[i] = packets.length[packet]
    }
    return count
  }

  /** The first `count` of those last peeked at have been given away. */
  shift(count: number, handles: Int32Array, lengths: Int32Array): void {
    if (count === 0) return
    this.first = this.successors[handles[count - 1]]
    this.length -= count
    for (let i = 0; i < count; i++) this.bytes -= lengths[i]
  }

  /** Releases every packet; returns how many there were. */
  clear(): number {
    const { length, packets, successors } = this
    for (let i = 0, packet = this.first; i < length; i++) {
      const next = successors[packet]
      packets.release(packet)
      packet = next
    }
    this.length = 0
    this.bytes = 0
    return length
  }
}
