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
import { Flow } from './connection-flow.ts'
import { SendQueue, type Successors } from './send-queue.ts'
import { forgetEnded, MAX_WINDOWS_SHARE, runStreams, type Streams } from './streams.ts'

const { EAGAIN } = constants.errno
/** Streams that an endpoint knows at once. */
const MAX_FLOWS = 4096
const QUEUE_FULL = `more came than was taken: its queue of ${MAX_QUEUE_BYTES >> 10} KiB was full`
const HOLE = 'packets of the stream were lost or reordered on their way through the pipeline'
const ENDED_BEFORE = 'what it said was to go to a connection that has ended before'
const FRAMES_DROPPED = `frames are dropped: more come than are taken, and the queue of ${MAX_QUEUE_BYTES >> 10} KiB is full (send_queue_drops)`
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
  /** Of the packets in `handles`: their streams, 0 for none, and their numbers. */
  private readonly streamIds = new Int32Array(BATCH_CAPACITY)
  private readonly numbers = new Int32Array(BATCH_CAPACITY)
  private readonly streams: Streams
  /** The streams of which something came, by id. */
  private readonly flows = new Map<number, Flow>()
  private lastFlow: Flow | null = null
  /** Packets that may wait for one connection whose stream is numbered: all that those who read may have on its way. */
  private readonly mostNumbered: number
  private flushing: Connection[] = []
  private spareFlushing: Connection[] = []

  constructor(context: ConnectionContext, framing: Framing, owner: SendingOwner) {
    this.context = context
    this.framing = framing
    this.owner = owner
    this.streams = runStreams(context)
    this.mostNumbered = Math.floor(context.packets.slots * MAX_WINDOWS_SHARE)
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
    const flow = this.flowOf(packet)
    if (flow && !this.continues(flow, connection, packet, waits)) return
    const bytes = packets.length[packet]
    if (connection.up && this.isFull(queue, bytes, flow)) this.sendQueued(connection)
    // Sending may have found out that the connection is over.
    if (flow?.broken) {
      this.discard(packet)
      return
    }
    if (!this.isFull(queue, bytes, flow) && (connection.io || waits)) {
      queue.push(packet)
      this.queued++
      this.wantFlush(connection)
      return
    }
    packets.release(packet)
    metrics.send_queue_drops.add(1)
    // What comes after would pass as the continuation of what came before.
    if (this.framing === 'stream') this.owner.breakOff(connection, QUEUE_FULL)
    if (flow?.isWhole) this.break(flow, QUEUE_FULL)
    else if (this.framing === 'frames') this.owner.tell('frames', FRAMES_DROPPED)
  }

  /** Whether a queue has no room for `bytes` more. Whoever reads a numbered stream waits for what is here: no more of it comes than may be on its way. */
  private isFull(queue: SendQueue, bytes: number, flow: Flow | null): boolean {
    return flow === null ? queue.bytes + bytes > MAX_QUEUE_BYTES : queue.length >= this.mostNumbered
  }

  /** The stream that a packet is a numbered part of, null for none. */
  private flowOf(packet: number): Flow | null {
    const id = this.context.packets.streamOf(packet)
    if (id === 0) return null
    if (this.lastFlow?.stream.id === id) return this.lastFlow
    const flow = this.flows.get(id) ?? this.newFlow(id)
    if (flow) this.lastFlow = flow
    return flow
  }

  private newFlow(id: number): Flow | null {
    const { flows } = this
    const stream = this.streams.of(id)
    if (!stream) return null
    const flow = new Flow(stream, this.framing !== 'packets')
    if (flow.isWhole) stream.ends.push((why) => this.breakAtBothEnds(flow, why))
    if (flows.size >= MAX_FLOWS) forgetEnded(flows, (one) => one.stream.ended)
    flows.set(id, flow)
    return flow
  }

  /** Whether a packet is to be sent: of a stream that a packet is missing of nothing more is, and its two ends are told. */
  private continues(flow: Flow, connection: Connection, packet: number, waits: boolean): boolean {
    const { packets } = this.context
    const number = packets.numberOf(packet)
    // Who connects to a listener hears what is said from then on.
    if (flow.connection !== connection && !waits) flow.next = number
    flow.connection = connection
    const isNext = number === flow.next
    if (!flow.broken && (isNext || !flow.isWhole)) {
      flow.next = (number + 1) | 0
      return true
    }
    this.discard(packet)
    if (flow.broken) this.break(flow, ENDED_BEFORE)
    else this.breakAtBothEnds(flow, HOLE)
    return false
  }

  private discard(packet: number): void {
    this.context.packets.release(packet)
    this.context.metrics.broken_stream_packets.add(1)
  }

  private breakAtBothEnds(flow: Flow, why: string): void {
    if (this.framing === 'stream' && flow.connection) this.owner.breakOff(flow.connection, why)
    this.break(flow, why)
  }

  /** Nothing more of a stream is sent, and whoever sends it here is told. */
  private break(flow: Flow, why: string): void {
    flow.broken = true
    flow.stream.break(why)
    flow.stream.takenTo(flow.stream.read)
  }

  /** There is no connection for a packet, which the caller keeps: its stream need not wait for it. */
  passedBy(packet: number): void {
    const flow = this.flowOf(packet)
    if (!flow) return
    if (flow.broken) this.break(flow, ENDED_BEFORE)
    else flow.stream.takenTo((this.context.packets.numberOf(packet) + 1) | 0)
  }

  /**
   * A connection has ended: of a stream that is still on its way there the rest would pass as the beginning of what comes next. `why`: bytes
   * were lost; without, those who send here are told once more comes of them, and until then can hear the answer.
   */
  ended(connection: Connection, why?: string): void {
    for (const flow of this.flows.values()) {
      if (flow.connection !== connection || flow.broken) continue
      const { stream } = flow
      if (!flow.isWhole || stream.underWay === 0) stream.takenTo(flow.next)
      else if (why === undefined) flow.broken = true
      else this.break(flow, why)
    }
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
      if (this.flows.size > 0) this.noteNumbers(count)
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
      if (this.flows.size > 0) this.numbersSent(done)
      if (done > 0) connection.since = clock.now
      if (done < count) break
    }
    this.owner.sent(connection)
  }

  /** Keeps the numbers of the first packets of a queue: once sent, they are not the caller's. */
  private noteNumbers(count: number): void {
    const { handles, streamIds, numbers } = this
    const { packets } = this.context
    for (let i = 0; i < count; i++) {
      streamIds[i] = packets.streamOf(handles[i])
      numbers[i] = packets.numberOf(handles[i])
    }
  }

  /** Says to the streams of the first `count` that these have been taken, to each once for those of it that follow each other. */
  private numbersSent(count: number): void {
    const { streamIds, numbers, flows } = this
    for (let i = 0; i < count; i++) {
      if (streamIds[i] === 0 || (i + 1 < count && streamIds[i + 1] === streamIds[i])) continue
      flows.get(streamIds[i])?.stream.takenTo((numbers[i] + 1) | 0)
    }
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
