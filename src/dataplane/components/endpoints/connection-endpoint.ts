/** Moves packets between a graph and connections, those that a listener takes or the one it makes: what tcp and unix_socket share. */
import { constants } from 'node:os'
import { BATCH_CAPACITY, Batch } from '../../engine/batch.ts'
import { NS_PER_MS, NS_PER_S, type RunClock } from '../../engine/clock.ts'
import type { ConnectionEvents, ConnectionIo, ConnectionOptions, Io, ListenerIo } from '../../engine/io.ts'
import type { Log } from '../../engine/log.ts'
import { consumed, counter, created, drop, gauge, held, heldAtEnd, type Metrics } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Timer } from '../../engine/timers.ts'
import { IO_COUNTERS } from '../../native/native.ts'
import { SendQueue, type Successors } from './send-queue.ts'

/** Payload that waits for one connection. */
const MAX_QUEUE_BYTES = 256 << 10
/** Bytes of a stream that are one packet. */
export const MAX_PIECE_BYTES = 1200
/** Connections of one listener. */
const MAX_CONNECTIONS = 1024
/** Connections accepted in one breath. */
const MAX_ACCEPTED_AT_ONCE = 64
/** Wait before the second attempt to connect; it doubles. */
const MIN_BACK_OFF_NS = 10 * NS_PER_MS
const MAX_BACK_OFF_NS = 10 * NS_PER_S
/** A connection that lasted so long makes the next wait a short one again. */
const HEALTHY_NS = 10 * NS_PER_S
/** Time to connect. */
const MAX_CONNECT_NS = 10 * NS_PER_S
/** A stream whose other end has finished is kept so long after the last byte sent. */
const MAX_HALF_CLOSED_NS = 10 * NS_PER_S
/** Time between two looks for a free slot. */
const SLOT_WAIT_NS = NS_PER_MS
/** Time between two attempts to accept when the system has no place for a connection. */
const ACCEPT_WAIT_NS = 100 * NS_PER_MS

const { ENODATA, EPROTO, EINPROGRESS, EAGAIN, ECONNRESET, EPIPE } = constants.errno
const OVERSIZE = IO_COUNTERS.indexOf('oversize')
const NO_SLOT = IO_COUNTERS.indexOf('noSlot')
const SEND_ERRORS = IO_COUNTERS.indexOf('sendErrors')
const SEND_BLOCKED = IO_COUNTERS.indexOf('sendBlocked')
const MALFORMED = IO_COUNTERS.indexOf('malformed')

export const CONNECTION_METRICS = {
  received_packets: created('Packets taken from connections.'),
  received_without_slot_packets: counter('Packets not taken because every packet slot was in use.', 'packets'),
  ignored_packets: drop('Packets received with no output to go to.'),
  sent_packets: consumed('Packets handed to the kernel.'),
  unconnected_packets: drop('Packets to send that had no connection to go to.'),
  empty_packets: drop('Packets of no bytes, which cannot be sent.'),
  send_queue_drops: drop('Packets dropped because the queue of their connection was full.'),
  unsent_packets: drop('Packets that waited for a connection when it ended.'),
  refused_packets: drop('Packets that the kernel refused for good: too long.'),
  send_blocked: counter('Times the kernel took no more packets for now.'),
  queued_packets: held('Packets waiting to be sent.'),
  held_at_end_packets: heldAtEnd(),
  connections: gauge('Connections there are now.'),
  opened_connections: counter('Connections that came about.'),
  reset_connections: counter('Connections broken off, by the other end or because bytes would have been missing.'),
  refused_connections: counter('Connections closed at once: too many, or of somebody who may not.'),
  socket_errors: counter('Errors of connecting, accepting, receiving and sending.'),
} as const

/** What a packet is: a piece of a stream, a frame, or what the kernel keeps apart. */
type Framing = 'stream' | 'frames' | 'packets'

/** One connection, or the place of the one that is made again and again. */
export class Connection {
  io: ConnectionIo | null
  /** Packets can be sent. */
  up: boolean
  /** Nothing is read for now. */
  paused = false
  /** The other end has finished. */
  half = false
  /** Client id that received packets carry, -1 for none. */
  client = -1
  /** Among those with something to send at the end of the breath. */
  flushing = false
  /** When it was opened. */
  opened = 0
  /** When the other end finished, or something was last sent. */
  since = 0
  readonly queue: SendQueue

  constructor(io: ConnectionIo | null, queue: SendQueue) {
    this.io = io
    this.up = io !== null
    this.queue = queue
  }
}

/** Which connection a packet goes to, among those of a listener. */
export interface Peers {
  /** A connection has come; false refuses it. */
  add(connection: Connection): boolean
  remove(connection: Connection): void
  /** Where a packet goes, null where there is no connection for it. */
  of(packet: number): Connection | null
}

interface ConnectionContext {
  packets: Packets
  clock: RunClock
  io: Io
  log: Log
  timer(fire: () => void): Timer
  metrics: Metrics<typeof CONNECTION_METRICS>
}

interface ConnectionEndpointOptions {
  outlet: Outlet | undefined
  /** Whether packets are sent, so that one whose other end has finished is of use still. */
  sends: boolean
  framing: Framing
  /** What to listen at, or to connect to. */
  socket: ConnectionOptions
  /** There for a listener. */
  peers?: Peers
  /** Whether the other end of a connection made here may be spoken to. */
  trusts?(io: ConnectionIo): boolean
}

/** Owns the packets given to `send` until they are sent, and listener and connections until `stop`. */
export class ConnectionEndpoint {
  /** Packets longer than is taken, so far; of a Unix socket. */
  oversize = 0
  /** Connections that sent a length no frame has, so far. */
  malformed = 0
  private readonly context: ConnectionContext
  private readonly metrics: Metrics<typeof CONNECTION_METRICS>
  private readonly packets: Packets
  private readonly options: ConnectionEndpointOptions
  private readonly events: ConnectionEvents
  private readonly listener: ListenerIo | null = null
  /** By tag; null where it is free. */
  private readonly connections: (Connection | null)[] = []
  private readonly freeTags: number[] = []
  private readonly received: Batch
  private readonly successors: Successors
  private readonly handles = new Int32Array(BATCH_CAPACITY)
  private readonly lengths = new Int32Array(BATCH_CAPACITY)
  private flushing: Connection[] = []
  private spareFlushing: Connection[] = []
  /** Connections whose other end has finished. */
  private readonly half: Connection[] = []
  /** Streams that wait for free slots. */
  private readonly starved: Connection[] = []
  private readonly slotTimer: Timer
  private readonly halfTimer: Timer
  private readonly acceptTimer: Timer
  /** Next attempt to connect, or the end of the present one. */
  private readonly connectTimer: Timer
  private readonly own: Connection | null = null
  private backOff = MIN_BACK_OFF_NS
  private queued = 0
  private open = 0
  /** What the log has been told of since the last connection. */
  private readonly told = new Set<string>()
  private stopped = false

  /** Throws when it cannot listen, or when the own name cannot be had; a server that is not there is tried again. */
  constructor(context: ConnectionContext, options: ConnectionEndpointOptions) {
    const { packets, metrics, io, timer } = context
    this.context = context
    this.metrics = metrics
    this.packets = packets
    this.options = options
    this.received = new Batch(packets)
    this.successors = new Int32Array(packets.slots)
    this.slotTimer = timer(() => this.resumeStarved())
    this.halfTimer = timer(() => this.closeFinished())
    this.acceptTimer = timer(() => this.listener?.accepting(true))
    this.connectTimer = timer(() => this.connectAgain())
    this.events = {
      readable: ({ tag }) => {
        const connection = this.connections[tag]
        if (connection) this.receive(connection)
      },
      writable: ({ tag }) => {
        const connection = this.connections[tag]
        if (connection) this.writable(connection)
      },
    }
    if (options.peers) this.listener = io.listen(options.socket, () => this.accept(), this.events)
    else {
      this.own = new Connection(null, new SendQueue(packets, this.successors))
      this.connect()
    }
  }

  /** What a listener listens at. */
  get name(): string {
    return this.listener?.name ?? ''
  }

  /** As long as somebody reads, packets may come. */
  get active(): boolean {
    return this.options.outlet !== undefined
  }

  private accept(): void {
    const { metrics, options, context } = this
    for (let i = 0; i < MAX_ACCEPTED_AT_ONCE; i++) {
      let io: ConnectionIo | null
      try {
        io = (this.listener as ListenerIo).accept()
      } catch (error) {
        metrics.socket_errors.add(1)
        this.listener?.accepting(false)
        this.acceptTimer.at(context.clock.now + ACCEPT_WAIT_NS)
        this.tell('accept', `${(error as Error).message}: close some, or raise the limit of open files (ulimit -n)`)
        return
      }
      if (io === null) return
      const connection = new Connection(io, new SendQueue(this.packets, this.successors))
      if (this.open === MAX_CONNECTIONS) {
        this.tell('most', `has ${MAX_CONNECTIONS} connections: others are closed at once`)
        this.refuse(io)
      } else if (options.peers?.add(connection)) this.opened(connection, io)
      else this.refuse(io)
    }
  }

  private refuse(io: ConnectionIo): void {
    this.metrics.refused_connections.add(1)
    io.close(true)
  }

  /** A WARN about `subject`, once until a connection is made anew. */
  private tell(subject: string, message: string): void {
    if (this.told.has(subject)) return
    this.told.add(subject)
    this.context.log('WARN', message)
  }

  private opened(connection: Connection, io: ConnectionIo): void {
    const { metrics, context, listener } = this
    if (io.tag < 0) this.adopt(connection, io)
    connection.up = true
    connection.opened = context.clock.now
    this.open++
    metrics.opened_connections.add(1)
    if (!listener) this.told.clear()
    context.log(
      listener ? 'DEBUG' : 'INFO',
      `connected ${listener ? 'by' : 'to'} ${io.name || 'a client without a name'}`,
    )
  }

  /** From now on the events of `io` are those of `connection`. */
  private adopt(connection: Connection, io: ConnectionIo): void {
    io.tag = this.freeTags.pop() ?? this.connections.length
    this.connections[io.tag] = connection
    connection.io = io
    connection.paused = false
    connection.half = false
  }

  private connect(): void {
    const { io, clock } = this.context
    const { socket, trusts } = this.options
    const own = this.own as Connection
    let made: ConnectionIo
    try {
      made = io.connect(socket, this.events)
    } catch (error) {
      const { code, syscall } = error as NodeJS.ErrnoException & { syscall?: string }
      if (syscall === 'bind' && code === 'EADDRINUSE') throw error
      this.failed((error as Error).message)
      return
    }
    if (trusts && !trusts(made)) {
      made.close(false)
      const who = `the server is of another user (${made.user}), who could be anybody`
      this.failed(`${who}: use a path in place of an abstract name`, 'user')
      return
    }
    this.adopt(own, made)
    this.connectTimer.at(clock.now + MAX_CONNECT_NS)
    this.finishConnecting(own)
  }

  private connectAgain(): void {
    const own = this.own as Connection
    if (own.up) return
    if (own.io) this.failedToConnect(own, `no answer within ${MAX_CONNECT_NS / NS_PER_S} s`)
    else this.connect()
  }

  /** Whether the connection stands; an attempt that has failed is put off. */
  private finishConnecting(own: Connection): boolean {
    const made = own.io as ConnectionIo
    const state = made.connected()
    if (state === -EINPROGRESS) return false
    if (state < 0) {
      this.failedToConnect(own, `${made.name} cannot be reached (${nameOf(-state)})`)
      return false
    }
    this.connectTimer.cancel()
    this.opened(own, made)
    this.wantFlush(own)
    return true
  }

  private failedToConnect(own: Connection, why: string): void {
    this.forget(own)
    this.failed(why)
  }

  private failed(why: string, subject = 'connect'): void {
    this.metrics.socket_errors.add(1)
    this.tell(subject, `not connected: ${why}; tried again until it is`)
    this.putOff()
  }

  private putOff(): void {
    if (this.stopped) return
    this.connectTimer.at(this.context.clock.now + this.backOff)
    this.backOff = Math.min(2 * this.backOff, MAX_BACK_OFF_NS)
  }

  private receive(connection: Connection): void {
    const { packets, received, metrics, options } = this
    const io = connection.io as ConnectionIo
    if (!connection.up) {
      this.writable(connection)
      return
    }
    // Not read for now, so that what is told is its end: sending finds out.
    if (connection.paused || connection.half) {
      this.sendQueued(connection)
      return
    }
    const stream = options.framing === 'stream'
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
      if (options.outlet) options.outlet.send(received)
      else {
        packets.releaseAll(received)
        metrics.ignored_packets.add(count)
      }
    } else if (count < 0) this.over(connection, -count)
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

  private starve(connection: Connection): void {
    this.pause(connection)
    this.starved.push(connection)
    if (!this.slotTimer.armed) this.slotTimer.at(this.context.clock.now + SLOT_WAIT_NS)
  }

  private resumeStarved(): void {
    const { starved, packets, slotTimer, context } = this
    if (packets.available === 0) {
      slotTimer.at(context.clock.now + SLOT_WAIT_NS)
      return
    }
    for (const connection of starved.splice(0)) if (connection.io) this.resume(connection)
  }

  /** Nothing can be received any more: the other end has finished, or `errno` says what happened. */
  private over(connection: Connection, errno: number): void {
    const { options, listener, half, halfTimer, context, metrics } = this
    if (errno === ENODATA) {
      if (options.framing === 'stream' && options.sends && listener) {
        connection.half = true
        connection.io?.reading(false)
        connection.since = context.clock.now
        half.push(connection)
        if (!halfTimer.armed) halfTimer.at(context.clock.now + MAX_HALF_CLOSED_NS)
      } else {
        this.sendQueued(connection)
        if (connection.io) this.close(connection, false)
      }
      return
    }
    if (errno === EPROTO) {
      this.tell(
        'malformed',
        `${connection.io?.name} sent a length that no frame has: it is no penstock with application_facing false`,
      )
      this.close(connection, true)
      return
    }
    metrics.socket_errors.add(1)
    this.close(connection, errno === ECONNRESET || errno === EPIPE)
  }

  /** Closes streams whose other end finished a while ago, and to which nothing has been sent since. */
  private closeFinished(): void {
    const { half, context, halfTimer } = this
    const oldest = context.clock.now - MAX_HALF_CLOSED_NS
    let next = Number.POSITIVE_INFINITY
    for (let i = half.length - 1; i >= 0; i--) {
      const connection = half[i] as Connection
      if (connection.since <= oldest) this.close(connection, false)
      else next = Math.min(next, connection.since + MAX_HALF_CLOSED_NS)
    }
    if (next < Number.POSITIVE_INFINITY) halfTimer.at(next)
  }

  /** Queues a batch's packets for the connections they belong to; they leave at the end of the breath. */
  send(batch: Batch): void {
    const { packets, metrics, own } = this
    const { peers } = this.options
    const { handles, length: count } = batch
    for (let i = 0; i < count; i++) {
      const packet = handles[i]
      if (packets.length[packet] === 0) {
        packets.release(packet)
        metrics.empty_packets.add(1)
        continue
      }
      const connection = own ?? (peers as Peers).of(packet)
      if (connection) this.enqueue(connection, packet)
      else {
        packets.release(packet)
        metrics.unconnected_packets.add(1)
      }
    }
    batch.length = 0
  }

  private enqueue(connection: Connection, packet: number): void {
    const { packets, metrics } = this
    const { queue } = connection
    const bytes = packets.length[packet]
    if (queue.bytes + bytes > MAX_QUEUE_BYTES && connection.up) this.sendQueued(connection)
    if (queue.bytes + bytes <= MAX_QUEUE_BYTES && (connection.io || connection === this.own)) {
      queue.push(packet)
      this.queued++
      this.wantFlush(connection)
      return
    }
    packets.release(packet)
    metrics.send_queue_drops.add(1)
    // What comes after would pass as the continuation of what came before.
    if (this.options.framing === 'stream') this.breakOff(connection)
  }

  private breakOff(connection: Connection): void {
    if (connection.io) this.close(connection, true)
    else this.drop(connection)
  }

  private wantFlush(connection: Connection): void {
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

  private writable(connection: Connection): void {
    if (connection.up || this.finishConnecting(connection)) this.sendQueued(connection)
  }

  /** Sends what the kernel takes; ends the connection when it says that nothing can be sent any more. */
  private sendQueued(connection: Connection): void {
    const { handles, lengths, metrics } = this
    const { queue } = connection
    while (queue.length > 0) {
      const io = connection.io as ConnectionIo
      const count = queue.peek(handles, lengths)
      const done = io.send(handles, 0, count)
      if (done < 0) {
        if (done === -EAGAIN) return
        this.over(connection, -done)
        return
      }
      const refused = io.counters[SEND_ERRORS]
      io.counters[SEND_ERRORS] = 0
      metrics.sent_packets.add(done - refused)
      metrics.refused_packets.add(refused)
      queue.shift(done, handles, lengths)
      this.queued -= done
      if (done > 0) connection.since = this.context.clock.now
      if (done < count) break
    }
    if (connection.paused && queue.bytes <= MAX_QUEUE_BYTES / 2 && !this.starved.includes(connection))
      this.resume(connection)
  }

  /** Ends a connection, with a reset where a stream's bytes would be missing; a connecting end tries anew. */
  private close(connection: Connection, reset: boolean): void {
    const { metrics, options, own, context } = this
    const breaks = reset || (options.framing === 'stream' && connection.queue.length > 0)
    if (breaks) metrics.reset_connections.add(1)
    const lasted = context.clock.now - connection.opened
    const was = connection.up
    this.forget(connection, breaks)
    if (was) this.open--
    if (connection !== own) {
      options.peers?.remove(connection)
      return
    }
    if (was && lasted >= HEALTHY_NS) this.backOff = MIN_BACK_OFF_NS
    this.tell('connect', 'the connection has ended; it is made again')
    this.putOff()
  }

  /** Gives back what belongs to a connection. */
  private forget(connection: Connection, reset = false): void {
    const io = connection.io as ConnectionIo
    this.collect(io)
    this.connections[io.tag] = null
    this.freeTags.push(io.tag)
    io.close(reset)
    connection.io = null
    const attempt = !connection.up
    connection.up = false
    const at = this.half.indexOf(connection)
    if (at >= 0) this.half.splice(at, 1)
    const starved = this.starved.indexOf(connection)
    if (starved >= 0) this.starved.splice(starved, 1)
    // What waits for an attempt waits for the next one, too.
    if (!attempt || reset) this.drop(connection)
  }

  private drop(connection: Connection): void {
    const count = connection.queue.clear()
    this.queued -= count
    this.metrics.unsent_packets.add(count)
  }

  /** Takes over what a connection has counted. */
  private collect({ counters }: ConnectionIo): void {
    const { metrics } = this
    metrics.received_without_slot_packets.add(counters[NO_SLOT])
    metrics.send_blocked.add(counters[SEND_BLOCKED])
    this.oversize += counters[OVERSIZE]
    this.malformed += counters[MALFORMED]
    counters.fill(0)
  }

  observe(): void {
    const { connections, metrics } = this
    for (let i = 0; i < connections.length; i++) {
      const io = connections[i]?.io
      if (io) this.collect(io)
    }
    metrics.queued_packets.set(this.queued)
    metrics.connections.set(this.open)
  }

  /** Sends what the kernel still takes, gives the rest back and closes everything. */
  stop(): void {
    this.stopped = true
    this.flush()
    this.listener?.close()
    this.connectTimer.cancel()
    let left = 0
    for (const connection of this.connections) {
      const io = connection?.io
      if (!connection || !io) continue
      const rest = connection.queue.clear()
      left += rest
      this.collect(io)
      io.close(rest > 0 && this.options.framing === 'stream')
      connection.io = null
    }
    left += this.own?.queue.clear() ?? 0
    this.metrics.held_at_end_packets.add(left)
    this.queued = 0
    this.open = 0
    this.observe()
  }
}

function nameOf(errno: number): string {
  return Object.entries(constants.errno).find(([, value]) => value === errno)?.[0] ?? `errno ${errno}`
}
