/** What comes over connections: a batch at a time into the graph, and when not to read. */
import { BATCH_CAPACITY, Batch } from '../../engine/batch.ts'
import { NS_PER_MS } from '../../engine/clock.ts'
import type { ConnectionIo } from '../../engine/io.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Timer } from '../../engine/timers.ts'
import {
  type Connection,
  type ConnectionContext,
  type ConnectionOwner,
  type Framing,
  MAX_QUEUE_BYTES,
} from './connection.ts'

/** Bytes of a stream that are one packet. */
export const MAX_PIECE_BYTES = 1200
/** Time between two looks for a free slot. */
const SLOT_WAIT_NS = NS_PER_MS

export class ConnectionReceiving {
  private readonly context: ConnectionContext
  private readonly framing: Framing
  private readonly outlet: Outlet | undefined
  private readonly owner: ConnectionOwner
  private readonly received: Batch
  /** Streams that wait for free slots. */
  private readonly starved: Connection[] = []
  private readonly slotTimer: Timer

  constructor(context: ConnectionContext, framing: Framing, outlet: Outlet | undefined, owner: ConnectionOwner) {
    this.context = context
    this.framing = framing
    this.outlet = outlet
    this.owner = owner
    this.received = new Batch(context.packets)
    this.slotTimer = context.timer(() => this.resumeStarved())
  }

  /** Takes one batch of what an open connection has. */
  receive(connection: Connection): void {
    const { received, outlet, framing } = this
    const { packets, metrics } = this.context
    const io = connection.io as ConnectionIo
    const stream = framing === 'stream'
    const room = stream ? Math.floor((MAX_QUEUE_BYTES - connection.queue.bytes) / MAX_PIECE_BYTES) : BATCH_CAPACITY
    if (room < 1) {
      this.pause(connection)
      return
    }
    const count = io.receive(received, room)
    if (count > 0) {
      metrics.received_packets.add(count)
      const { client } = connection
      for (let i = 0; i < count; i++) packets.client[received.handles[i]] = client
      if (outlet) outlet.send(received)
      else {
        packets.releaseAll(received)
        metrics.ignored_packets.add(count)
      }
    } else if (count < 0) this.owner.over(connection, -count)
    else if (stream && packets.available === 0) this.starve(connection)
  }

  private pause(connection: Connection): void {
    connection.paused = true
    connection.io?.reading(false)
  }

  private resume(connection: Connection): void {
    if (!connection.paused || connection.half) return
    connection.paused = false
    connection.io?.reading(true)
  }

  /** What waits for a connection has become less: it is read again once that is half of what may. */
  sent(connection: Connection): void {
    if (connection.paused && connection.queue.bytes <= MAX_QUEUE_BYTES / 2 && !this.starved.includes(connection))
      this.resume(connection)
  }

  private starve(connection: Connection): void {
    this.pause(connection)
    this.starved.push(connection)
    if (!this.slotTimer.armed) this.slotTimer.at(this.context.clock.now + SLOT_WAIT_NS)
  }

  private resumeStarved(): void {
    const { starved, slotTimer } = this
    const { packets, clock } = this.context
    if (packets.available === 0) {
      slotTimer.at(clock.now + SLOT_WAIT_NS)
      return
    }
    for (const connection of starved.splice(0)) if (connection.io) this.resume(connection)
  }

  /** The connection has ended. */
  forget(connection: Connection): void {
    const at = this.starved.indexOf(connection)
    if (at >= 0) this.starved.splice(at, 1)
  }
}
