/** What is to be sent over connections: waits in the queue of each until the end of the breath, or until the kernel has room. */
import { constants } from 'node:os'
import { BATCH_CAPACITY } from '../../engine/batch.ts'
import type { ConnectionIo } from '../../engine/io.ts'
import { IO_COUNTERS } from '../../native/socket-calls.ts'
import {
  type Connection,
  type ConnectionContext,
  type ConnectionOwner,
  type Framing,
  MAX_QUEUE_BYTES,
} from './connection.ts'
import { SendQueue, type Successors } from './send-queue.ts'

const { EAGAIN } = constants.errno
const SEND_ERRORS = IO_COUNTERS.indexOf('sendErrors')

interface SendingOwner extends ConnectionOwner {
  /** What waits for `connection` has become less. */
  sent(connection: Connection): void
}

/** Owns the packets given to `enqueue` until they are sent or dropped. */
export class ConnectionSending {
  /** Packets that wait. */
  queued = 0
  private readonly context: ConnectionContext
  private readonly framing: Framing
  private readonly owner: SendingOwner
  private readonly successors: Successors
  private readonly handles = new Int32Array(BATCH_CAPACITY)
  private readonly lengths = new Int32Array(BATCH_CAPACITY)
  private flushing: Connection[] = []
  private spareFlushing: Connection[] = []

  constructor(context: ConnectionContext, framing: Framing, owner: SendingOwner) {
    this.context = context
    this.framing = framing
    this.owner = owner
    this.successors = new Int32Array(context.packets.slots)
  }

  /** An empty queue for a connection. */
  queue(): SendQueue {
    return new SendQueue(this.context.packets, this.successors)
  }

  /** Queues a packet that leaves at the end of the breath; `waits`: also where there is no connection yet. */
  enqueue(connection: Connection, packet: number, waits: boolean): void {
    const { packets, metrics } = this.context
    const { queue } = connection
    const bytes = packets.length[packet]
    if (queue.bytes + bytes > MAX_QUEUE_BYTES && connection.up) this.sendQueued(connection)
    if (queue.bytes + bytes <= MAX_QUEUE_BYTES && (connection.io || waits)) {
      queue.push(packet)
      this.queued++
      this.wantFlush(connection)
      return
    }
    packets.release(packet)
    metrics.send_queue_drops.add(1)
    // What comes after would pass as the continuation of what came before.
    if (this.framing === 'stream') this.owner.breakOff(connection)
  }

  /** Has what waits sent at the end of the breath. */
  wantFlush(connection: Connection): void {
    if (connection.flushing || !connection.up) return
    connection.flushing = true
    this.flushing.push(connection)
  }

  /** End of a breath. */
  flush(): void {
    const { flushing } = this
    if (flushing.length === 0) return
    this.flushing = this.spareFlushing
    this.spareFlushing = flushing
    for (let i = 0; i < flushing.length; i++) {
      const connection = flushing[i] as Connection
      connection.flushing = false
      if (connection.up) this.sendQueued(connection)
    }
    flushing.length = 0
  }

  /** Sends what the kernel takes; ends the connection when it says that nothing can be sent any more. */
  sendQueued(connection: Connection): void {
    const { handles, lengths } = this
    const { metrics, clock } = this.context
    const { queue } = connection
    while (queue.length > 0) {
      const io = connection.io as ConnectionIo
      const count = queue.peek(handles, lengths)
      const done = io.send(handles, 0, count)
      if (done < 0) {
        if (done === -EAGAIN) return
        this.owner.over(connection, -done)
        return
      }
      const refused = io.counters[SEND_ERRORS]
      io.counters[SEND_ERRORS] = 0
      metrics.sent_packets.add(done - refused)
      metrics.refused_packets.add(refused)
      queue.shift(done, handles, lengths)
      this.queued -= done
      if (done > 0) connection.since = clock.now
      if (done < count) break
    }
    this.owner.sent(connection)
  }

  /** Gives back what waits for a connection. */
  drop(connection: Connection): void {
    this.context.metrics.unsent_packets.add(this.clear(connection))
  }

  /** Releases what waits for a connection; returns how many packets that were. */
  clear(connection: Connection): number {
    const count = connection.queue.clear()
    this.queued -= count
    return count
  }
}
