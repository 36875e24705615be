/** Moves packets between a graph and connections, those that a listener takes or the one it makes: what tcp and unix_socket share. */
import { constants } from 'node:os'
import type { Batch } from '../../engine/batch.ts'
import type { ConnectionEvents, ConnectionIo } from '../../engine/io.ts'
import { IO_COUNTERS } from '../../native/socket-calls.ts'
import { Accepting } from './accepting.ts'
import { Connecting } from './connecting.ts'
import type { Connection, ConnectionContext, ConnectionEndpointOptions, ConnectionOwner, Peers } from './connection.ts'
import { ConnectionReceiving } from './connection-receiving.ts'
import { ConnectionSending } from './connection-sending.ts'
import { HalfClosed } from './half-closed.ts'
import { slotlessUntaken, type Untaken } from './untaken.ts'

const { ENODATA, EPROTO, ECONNRESET, EPIPE } = constants.errno
const OVERSIZE = IO_COUNTERS.indexOf('oversize')
const NO_SLOT = IO_COUNTERS.indexOf('noSlot')
const SEND_BLOCKED = IO_COUNTERS.indexOf('sendBlocked')
const MALFORMED = IO_COUNTERS.indexOf('malformed')

/** Owns the packets given to `send` until they are sent, and listener and connections until `stop`. */
export class ConnectionEndpoint implements ConnectionOwner {
  /** Packets longer than is taken, so far; of a Unix socket. */
  oversize = 0
  /** Connections that sent a length no frame has, so far. */
  malformed = 0
  /** Connections there are now. */
  open = 0
  private readonly context: ConnectionContext
  private readonly options: ConnectionEndpointOptions
  private readonly sending: ConnectionSending
  private readonly receiving: ConnectionReceiving
  private readonly half: HalfClosed
  private readonly untakenSlotless: Untaken
  private readonly accepting: Accepting | null = null
  private readonly connecting: Connecting | null = null
  private readonly own: Connection | null = null
  /** By tag; null where it is free. */
  private readonly connections: (Connection | null)[] = []
  private readonly freeTags: number[] = []
  /** What the log has been told of since the last connection. */
  private readonly told = new Set<string>()

  /** Throws when it cannot listen, or when the own name cannot be had; a server that is not there is tried again. */
  constructor(context: ConnectionContext, options: ConnectionEndpointOptions) {
    const { framing, outlet, socket, peers } = options
    this.context = context
    this.options = options
    this.untakenSlotless = slotlessUntaken(context.metrics, context.log, context.packets.slots)
    this.sending = new ConnectionSending(context, framing, this)
    this.receiving = new ConnectionReceiving(context, framing, outlet, this)
    this.half = new HalfClosed(context, (connection) => this.close(connection, false))
    const events: ConnectionEvents = {
      readable: ({ tag }) => {
        const connection = this.connections[tag]
        if (connection) this.readable(connection)
      },
      writable: ({ tag }) => {
        const connection = this.connections[tag]
        if (connection) this.writable(connection)
      },
    }
    const queue = () => this.sending.queue()
    if (peers) this.accepting = new Accepting(context, { socket, peers }, events, queue, this)
    else {
      this.connecting = new Connecting(context, options, events, queue(), this)
      this.own = this.connecting.own
      this.connecting.connect()
    }
  }

  /** What a listener listens at. */
  get name(): string {
    return this.accepting?.name ?? ''
  }

  /** As long as somebody reads, packets may come. */
  get active(): boolean {
    return this.options.outlet !== undefined
  }

  tell(subject: string, message: string): void {
    if (this.told.has(subject)) return
    this.told.add(subject)
    this.context.log('WARN', message)
  }

  opened(connection: Connection, io: ConnectionIo): void {
    const { context, accepting } = this
    if (io.tag < 0) this.adopt(connection, io)
    connection.up = true
    connection.opened = context.clock.now
    this.open++
    context.metrics.opened_connections.add(1)
    if (!accepting) this.told.clear()
    const who = io.name || 'a client without a name'
    if (this.options.numbered) this.receiving.opened(connection)
    context.log(accepting ? 'DEBUG' : 'INFO', `connected ${accepting ? 'by' : 'to'} ${who}`)
    if (!accepting) this.sending.wantFlush(connection)
  }

  adopt(connection: Connection, io: ConnectionIo): void {
    io.tag = this.freeTags.pop() ?? this.connections.length
    this.connections[io.tag] = connection
    connection.io = io
    connection.paused = false
    connection.half = false
  }

  private readable(connection: Connection): void {
    if (!connection.up) this.writable(connection)
    // Not read for now, so that what is told is its end: sending finds out.
    else if (connection.paused || connection.half) this.sending.sendQueued(connection)
    else {
      const count = this.receiving.receive(connection)
      // Of one that can be read it is not told that it can be written: where there is always more to read, never.
      if (count > 0 && connection.queue.length > 0) this.sending.wantFlush(connection)
    }
  }

  private writable(connection: Connection): void {
    if (connection.up || this.connecting?.finish()) this.sending.sendQueued(connection)
  }

  sent(connection: Connection): void {
    this.receiving.sent(connection)
  }

  over(connection: Connection, errno: number): void {
    const { options, sending, context } = this
    if (errno === ENODATA) {
      this.receiving.watch(connection)
      if (options.framing === 'stream' && options.sends && this.accepting) this.half.add(connection)
      else {
        sending.sendQueued(connection)
        if (connection.io) this.close(connection, false)
      }
      return
    }
    if (errno === EPROTO) {
      const who = connection.io?.name
      this.tell('malformed', `${who} sent a length that no frame has: it is no penstock with application_facing false`)
      this.close(connection, true)
      return
    }
    context.metrics.socket_errors.add(1)
    this.close(connection, errno === ECONNRESET || errno === EPIPE)
  }

  /** Queues a batch's packets for the connections they belong to; they leave at the end of the breath. */
  send(batch: Batch): void {
    const { own, sending } = this
    const { packets, metrics } = this.context
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
      if (connection) sending.enqueue(connection, packet, connection === own)
      else {
        sending.passedBy(packet)
        packets.release(packet)
        metrics.unconnected_packets.add(1)
      }
    }
    batch.length = 0
  }

  breakOff(connection: Connection, why: string): void {
    const { io } = connection
    const whose = this.accepting ? 'the connection of' : 'the connection to'
    if (io && connection.up) {
      this.context.log('WARN', `reset ${whose} ${io.name || 'a client without a name'}: ${why}`)
      this.close(connection, true, why)
    } else {
      // An attempt to connect goes on: nothing has been sent over what comes of it, and another would take as long.
      if (connection.queue.length > 0) {
        this.tell('waits', `what waited for the connection to come about was dropped: ${why}`)
      }
      this.sending.drop(connection)
      this.sending.ended(connection, why)
    }
  }

  /** End of a breath. */
  flush(): void {
    this.sending.flush()
  }

  close(connection: Connection, reset: boolean, why = 'the connection that it led to has ended'): void {
    const { options, context, connecting, sending } = this
    const isLost = reset || connection.queue.length > 0
    const breaks = reset || (options.framing === 'stream' && connection.queue.length > 0)
    if (breaks) context.metrics.reset_connections.add(1)
    const lasted = context.clock.now - connection.opened
    const was = connection.up
    this.forget(connection, breaks)
    if (was) this.open--
    if (connecting) connecting.lost(was ? lasted : 0)
    else options.peers?.remove(connection)
    sending.ended(connection, isLost ? why : undefined)
  }

  forget(connection: Connection, reset = false): void {
    const io = connection.io as ConnectionIo
    this.collect(io)
    this.connections[io.tag] = null
    this.freeTags.push(io.tag)
    io.close(reset)
    connection.io = null
    const attempt = !connection.up
    connection.up = false
    this.half.forget(connection)
    this.receiving.forget(connection)
    // What waits for an attempt waits for the next one, too.
    if (!attempt || reset) this.sending.drop(connection)
  }

  /** Takes over what a connection has counted. */
  private collect({ counters }: ConnectionIo): void {
    const { metrics } = this.context
    this.untakenSlotless.add(counters[NO_SLOT])
    metrics.send_blocked.add(counters[SEND_BLOCKED])
    this.oversize += counters[OVERSIZE]
    this.malformed += counters[MALFORMED]
    counters.fill(0)
  }

  observe(): void {
    const { connections, sending, context } = this
    for (let i = 0; i < connections.length; i++) {
      const io = connections[i]?.io
      if (io) this.collect(io)
    }
    context.metrics.queued_packets.set(sending.queued)
    context.metrics.connections.set(this.open)
  }

  /** Sends what the kernel still takes, gives the rest back and closes everything. */
  stop(): void {
    const { sending, own, options } = this
    this.connecting?.stop()
    this.flush()
    this.accepting?.close()
    let left = 0
    for (const connection of this.connections) {
      const io = connection?.io
      if (!connection || !io) continue
      const rest = sending.clear(connection)
      left += rest
      this.collect(io)
      io.close(rest > 0 && options.framing === 'stream')
      connection.io = null
    }
    if (own) left += sending.clear(own)
    this.context.metrics.held_at_end_packets.add(left)
    this.observe()
  }
}
