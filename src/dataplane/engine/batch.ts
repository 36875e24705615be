/** A reusable list of packet handles, at most 256, that travels through the graph. */
import type { Counter } from './metrics.ts'
import type { Packets } from './packets.ts'

export const BATCH_CAPACITY = 256

/**
 * The receiver of a batch owns its packets from the call on; the batch object itself stays the sender's and is empty
 * again when the call returns, so a receiver may rearrange it in place but must not keep it.
 */
export class Batch {
  readonly handles = new Int32Array(BATCH_CAPACITY)
  length = 0
  /** Sum of the packets' lengths as of the `send` that brought the batch; whoever passes it on with `passes` keeps it true. */
  bytes = 0
  readonly packets: Packets

  constructor(packets: Packets) {
    this.packets = packets
  }

  get full(): boolean {
    return this.length === BATCH_CAPACITY
  }

  /** Adds a packet; the batch must not be full. */
  push(packet: number): void {
    this.handles[this.length++] = packet
  }

  /** Releases one of this batch's packets; the caller closes the gap and counts it. */
  discard(packet: number): void {
    this.bytes -= this.packets.length[packet]
    this.packets.release(packet)
  }

  /** Keeps the packets `keep` says true for, in order; releases the others and counts them as `dropped`. */
  filter(keep: (packet: number) => boolean, dropped: Counter): void {
    const { handles, length } = this
    let kept = 0
    for (let i = 0; i < length; i++) {
      const packet = handles[i]
      if (keep(packet)) handles[kept++] = packet
      else this.discard(packet)
    }
    if (kept !== length) dropped.add(length - kept)
    this.length = kept
  }
}
