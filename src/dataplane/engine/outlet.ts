/** The sending end of a connection: counts what leaves and calls the one receiver directly. */
import { BATCH_CAPACITY, Batch } from './batch.ts'
import type { Blame } from './component-error.ts'
import type { Notification, Receiver } from './flow.ts'
import type { Packets } from './packets.ts'

export class Outlet {
  private readonly pending: Batch
  private readonly packets: Packets
  private readonly values: Float64Array
  private readonly index: number
  /** Batches sent are those received, and say their bytes already. */
  private readonly passes: boolean
  private receiver: Receiver
  /** What the receiver is when nobody looks on. */
  private plain: Receiver
  private onlookers: readonly ((batch: Batch) => void)[] = []
  private listener: (notification: Notification) => void = () => {}
  /** Names the receiving component in what it throws. */
  private blame: Blame = (thrown) => {
    throw thrown
  }

  /** `values[index]` counts packets, `values[index + 1]` bytes; they serve as the input's counters too. */
  constructor(packets: Packets, values: Float64Array, index: number, passes = false) {
    this.packets = packets
    this.values = values
    this.index = index
    this.passes = passes
    this.pending = new Batch(packets)
    this.plain = (batch) => packets.releaseAll(batch)
    this.receiver = this.plain
  }

  connect(receiver: Receiver, listener: (notification: Notification) => void, blame: Blame): void {
    this.plain = receiver
    this.receiver = receiver
    this.listener = listener
    this.blame = blame
  }

  /** Shows `look` every batch from now on, before its receiver has it; returns what ends that. Without onlookers nothing is paid. */
  show(look: (batch: Batch) => void): () => void {
    this.watch([...this.onlookers, look])
    return () => this.watch(this.onlookers.filter((other) => other !== look))
  }

  private watch(onlookers: readonly ((batch: Batch) => void)[]): void {
    this.onlookers = onlookers
    const { plain } = this
    if (onlookers.length === 0) this.receiver = plain
    else {
      this.receiver = (batch) => {
        for (let i = 0; i < onlookers.length; i++) onlookers[i](batch)
        plain(batch)
      }
    }
  }

  /** Hands over every packet of `batch`, which is empty afterwards. */
  send(batch: Batch): void {
    this.sendOf(batch, this.passes ? batch.bytes : this.packets.bytesOf(batch))
  }

  /** As `send` of packets whose lengths the caller knows to add up to `bytes`. */
  sendOf(batch: Batch, bytes: number): void {
    if (this.pending.length > 0) this.flush()
    const count = batch.length
    if (count === 0) return
    const { values, index } = this
    batch.bytes = bytes
    values[index] += count
    values[index + 1] += bytes
    try {
      this.receiver(batch)
    } catch (error) {
      throw this.blame(error)
    }
    batch.length = 0
  }

  /** Gathers one packet; it leaves when 256 are there or at `flush`, which the caller owes before it returns. */
  push(packet: number): void {
    const { pending } = this
    pending.handles[pending.length++] = packet
    if (pending.length === BATCH_CAPACITY) this.flush()
  }

  /** As `push` of each of `packets` from index `from` up to `to`. */
  pushAll(packets: Int32Array, from: number, to: number): void {
    const { pending } = this
    const { handles } = pending
    for (let at = from; at < to; ) {
      let { length } = pending
      const end = Math.min(to, at + BATCH_CAPACITY - length)
      // Four at a time, without a view of them, which would be an object to be collected.
      for (; at + 4 <= end; at += 4) {
        handles[length] = packets[at]
        handles[length + 1] = packets[at + 1]
        handles[length + 2] = packets[at + 2]
        handles[length + 3] = packets[at + 3]
        length += 4
      }
      while (at < end) handles[length++] = packets[at++]
      pending.length = length
      if (length === BATCH_CAPACITY) this.flush()
    }
  }

  /** Hands over what `push` gathered. */
  flush(): void {
    const { pending } = this
    const count = pending.length
    if (count === 0) return
    const { values, index } = this
    values[index] += count
    pending.bytes = this.packets.bytesOf(pending)
    values[index + 1] += pending.bytes
    try {
      this.receiver(pending)
    } catch (error) {
      throw this.blame(error)
    }
    pending.length = 0
  }

  /** Sends a notification behind the packets sent so far. */
  notify(notification: Notification): void {
    this.flush()
    try {
      this.listener(notification)
    } catch (error) {
      throw this.blame(error)
    }
  }
}
