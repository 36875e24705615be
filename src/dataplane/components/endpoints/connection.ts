/** One connection of an endpoint, what is known of it, and what the parts of the endpoint are made of. */
import type { RunClock } from '../../engine/clock.ts'
import type { ConnectionIo, ConnectionOptions, Io } from '../../engine/io.ts'
import type { Log } from '../../engine/log.ts'
import type { Metrics } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Timer } from '../../engine/timers.ts'
import type { CONNECTION_METRICS } from './connection-metrics.ts'
import type { SendQueue } from './send-queue.ts'
import type { Stream } from './streams.ts'

/** Payload that waits for one connection. */
export const MAX_QUEUE_BYTES = 256 << 10

/** What a packet is: a piece of a stream, a frame, or what the kernel keeps apart. */
export type Framing = 'stream' | 'frames' | 'packets'

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
  /** Among those with its address, at a TCP listener: received packets carry it. */
  ordinal = 0
  /** What is received from it, where that is numbered. */
  stream: Stream | null = null
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

export interface ConnectionContext {
  packets: Packets
  clock: RunClock
  io: Io
  log: Log
  timer(fire: () => void): Timer
  shared<T>(name: string, make: () => T): T
  metrics: Metrics<typeof CONNECTION_METRICS>
}

export interface ConnectionEndpointOptions {
  outlet: Outlet | undefined
  /** Whether packets are sent, so that one whose other end has finished is of use still. */
  sends: boolean
  framing: Framing
  /** Whether what is received ends at connections of the same run, so that it is numbered and waits for them. */
  numbered: boolean
  /** What to listen at, or to connect to. */
  socket: ConnectionOptions
  /** There for a listener. */
  peers?: Peers
  /** Whether the other end of a connection made here may be spoken to. */
  trusts?(io: ConnectionIo): boolean
}

/** What the parts of an endpoint ask of it. */
export interface ConnectionOwner {
  /** From now on the events of `io` are those of `connection`. */
  adopt(connection: Connection, io: ConnectionIo): void
  /** Packets can be sent. */
  opened(connection: Connection, io: ConnectionIo): void
  /** Nothing can be received any more: the other end has finished (ENODATA), or `errno` says what happened. */
  over(connection: Connection, errno: number): void
  /** Ends a connection, with a reset where a stream's bytes would be missing. */
  close(connection: Connection, reset: boolean): void
  /** Gives back what belongs to a connection. */
  forget(connection: Connection): void
  /** Bytes are missing in what was to be sent: `why` says to the log what has happened. */
  breakOff(connection: Connection, why: string): void
  /** A WARN about `subject`, once until a connection is made anew. */
  tell(subject: string, message: string): void
}
