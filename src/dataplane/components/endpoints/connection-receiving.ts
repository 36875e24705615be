/** What comes over connections: a batch at a time into the graph, and when not to read. */
import { BATCH_CAPACITY, Batch } from '../../engine/batch.ts'
import { NS_PER_MS, NS_PER_S } from '../../engine/clock.ts'
import type { ConnectionIo } from '../../engine/io.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Timer } from '../../engine/timers.ts'
import { ORDINAL_BYTE, REMOTE_BYTES } from '../../native/native.ts'
import {
  type Connection,
  type ConnectionContext,
  type ConnectionOwner,
  type Framing,
  MAX_QUEUE_BYTES,
} from './connection.ts'
import { MAX_WINDOWS_SHARE, runStreams, type Stream, type Streams, streamsInSlots } from './streams.ts'

/** Bytes of a stream that are one packet. */
export const MAX_PIECE_BYTES = 1200
/** Time between two looks for a free slot. */
const SLOT_WAIT_NS = NS_PER_MS

/** Packets of one stream that may be on their way to the connection that takes them. */
const MAX_WINDOW = 4096
/** Time between two looks for packets that are waited for. */
const WATCH_NS = NS_PER_S
const LOST_END = 'the last packets of a stream were lost on their way through the pipeline'

interface ReceivingOwner extends ConnectionOwner {
  /** Connections there are now. */
  readonly open: number
}

export class ConnectionReceiving {
  private readonly context: ConnectionContext
  private readonly framing: Framing
  private readonly outlet: Outlet | undefined
  private readonly owner: ReceivingOwner
  private readonly streams: Streams
  /** Streams that wait for what is on its way, with what had been taken at the last look. */
  private readonly watched = new Map<Stream, number>()
  private readonly watchTimer: Timer
  private readonly received: Batch
  /** Streams that wait for free slots. */
  private readonly starved: Connection[] = []
  private readonly slotTimer: Timer

  constructor(context: ConnectionContext, framing: Framing, outlet: Outlet | undefined, owner: ReceivingOwner) {
    this.context = context
    this.framing = framing
    this.outlet = outlet
    this.owner = owner
    this.received = new Batch(context.packets)
    this.streams = runStreams(context)
    this.watchTimer = context.timer(() => this.look())
    this.slotTimer = context.timer(() => this.resumeStarved())
  }

  /** Takes one batch of what an open connection has; how many packets. */
  receive(connection: Connection): number {
    const { received, outlet, framing } = this
    const { packets, metrics } = this.context
    const io = connection.io as ConnectionIo
    const stream = framing === 'stream'
    const room = this.room(connection)
    if (room < 1) {
      this.pause(connection)
      this.watch(connection)
      return 0
    }
    const count = io.receive(received, room)
    if (count > 0) {
      metrics.received_packets.add(count)
      const { client, ordinal, stream: numbers } = connection
      for (let i = 0; i < count; i++) packets.client[received.handles[i]] = client
      if (ordinal > 0) {
        for (let i = 0; i < count; i++) packets.remote[received.handles[i] * REMOTE_BYTES + ORDINAL_BYTE] = ordinal
      }
      if (numbers) {
        for (let i = 0; i < count; i++) packets.setStream(received.handles[i], numbers.id, (numbers.read + i) | 0)
        numbers.read = (numbers.read + count) | 0
      }
      if (outlet) outlet.send(received)
      else {
        packets.releaseAll(received)
        metrics.ignored_packets.add(count)
      }
    } else if (count < 0) this.owner.over(connection, -count)
    else if (stream && packets.available === 0) this.starve(connection)
    return Math.max(0, count)
  }

  /** How many packets may be read, 0 or less for none. */
  private room({ stream, queue }: Connection): number {
    if (stream) return Math.min(BATCH_CAPACITY, this.window() - stream.underWay)
    return this.framing === 'stream' ? Math.floor((MAX_QUEUE_BYTES - queue.bytes) / MAX_PIECE_BYTES) : BATCH_CAPACITY
  }

  /** Packets of one stream that may be on their way: all together they are less than what a link of the run lets wait. */
  private window(): number {
    const each = Math.floor((this.context.packets.slots * MAX_WINDOWS_SHARE) / Math.max(1, this.owner.open))
    return Math.max(1, Math.min(MAX_WINDOW, each))
  }

  /** Begins to number what comes from a connection. */
  opened(connection: Connection): void {
    connection.stream = this.streams.open(this.framing === 'stream', {
      taken: () => this.taken(connection),
      broken: (why) => this.owner.breakOff(connection, why),
    })
  }

  private taken(connection: Connection): void {
    if (!connection.paused || this.window() - (connection.stream?.underWay ?? 0) < this.window() / 4) return
    if (!this.starved.includes(connection)) this.resume(connection)
  }

  /** Has it looked whether what is on its way is still there: what was lost would be waited for for ever. */
  watch(connection: Connection): void {
    const { stream } = connection
    if (!stream) return
    this.watched.set(stream, stream.taken - 1)
    if (!this.watchTimer.armed) this.watchTimer.at(this.context.clock.now + WATCH_NS)
  }

  private look(): void {
    const { watched, watchTimer, context } = this
    let inSlots: Set<number> | null = null
    for (const [stream, taken] of watched) {
      if (stream.underWay <= 0) watched.delete(stream)
      else if (stream.taken !== taken) watched.set(stream, stream.taken)
      else {
        inSlots ??= streamsInSlots(context.packets)
        if (inSlots.has(stream.id)) continue
        watched.delete(stream)
        for (const end of stream.ends) end(LOST_END)
        stream.takenTo(stream.read)
      }
    }
    if (watched.size > 0) watchTimer.at(context.clock.now + WATCH_NS)
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
    if (connection.stream) return
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
    const { stream } = connection
    if (stream) {
      stream.ended = true
      if (stream.underWay > 0) this.watch(connection)
      connection.stream = null
    }
    const at = this.starved.indexOf(connection)
    if (at >= 0) this.starved.splice(at, 1)
  }
}
