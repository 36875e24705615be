/** The one connection of an endpoint that connects: made, and made again when it has ended. */
import { constants } from 'node:os'
import { NS_PER_MS, NS_PER_S } from '../../engine/clock.ts'
import type { ConnectionEvents, ConnectionIo, ConnectionOptions } from '../../engine/io.ts'
import { withCure } from '../../engine/scarcity.ts'
import { errorName } from '../../engine/system-errors.ts'
import type { Timer } from '../../engine/timers.ts'
import { Connection, type ConnectionContext, type ConnectionOwner } from './connection.ts'
import type { SendQueue } from './send-queue.ts'

/** Wait before the second attempt to connect; it doubles. */
const MIN_BACK_OFF_NS = 10 * NS_PER_MS
const MAX_BACK_OFF_NS = 10 * NS_PER_S
/** A connection that lasted so long makes the next wait a short one again. */
const HEALTHY_NS = 10 * NS_PER_S
/** Time to connect. */
const MAX_CONNECT_NS = 10 * NS_PER_S

const { EINPROGRESS } = constants.errno

interface ConnectingOptions {
  socket: ConnectionOptions
  /** Whether the other end may be spoken to. */
  trusts?(io: ConnectionIo): boolean
}

export class Connecting {
  /** The place of the connection that is made again and again. */
  readonly own: Connection
  private readonly context: ConnectionContext
  private readonly options: ConnectingOptions
  private readonly events: ConnectionEvents
  private readonly owner: ConnectionOwner
  /** Next attempt to connect, or the end of the present one. */
  private readonly connectTimer: Timer
  private backOff = MIN_BACK_OFF_NS
  private stopped = false

  /** `queue` is what waits for the connection. */
  constructor(
    context: ConnectionContext,
    options: ConnectingOptions,
    events: ConnectionEvents,
    queue: SendQueue,
    owner: ConnectionOwner,
  ) {
    this.context = context
    this.options = options
    this.events = events
    this.owner = owner
    this.own = new Connection(null, queue)
    this.connectTimer = context.timer(() => this.connectAgain())
  }

  /** Begins. Throws when the own name cannot be had; a server that is not there is tried again. */
  connect(): void {
    const { io, clock } = this.context
    const { socket, trusts } = this.options
    const { own } = this
    let made: ConnectionIo
    try {
      made = io.connect(socket, this.events)
    } catch (error) {
      const { code, syscall } = error as NodeJS.ErrnoException & { syscall?: string }
      if (syscall === 'bind' && code === 'EADDRINUSE') throw error
      this.failed(withCure(error as Error))
      return
    }
    if (trusts && !trusts(made)) {
      made.close(false)
      const who = `the server is of another user (${made.user}), who could be anybody`
      this.failed(`${who}: use a path in place of an abstract name`, 'user')
      return
    }
    this.owner.adopt(own, made)
    this.connectTimer.at(clock.now + MAX_CONNECT_NS)
    this.finish()
  }

  private connectAgain(): void {
    const { own } = this
    if (own.up) return
    if (own.io) this.failedToConnect(own, `no answer within ${MAX_CONNECT_NS / NS_PER_S} s`)
    else this.connect()
  }

  /** Whether the connection stands; an attempt that has failed is put off. */
  finish(): boolean {
    const { own } = this
    const made = own.io as ConnectionIo
    const state = made.connected()
    if (state === -EINPROGRESS) return false
    if (state < 0) {
      this.failedToConnect(own, `${made.name} cannot be reached (${errorName(-state)})`)
      return false
    }
    this.connectTimer.cancel()
    this.owner.opened(own, made)
    return true
  }

  private failedToConnect(own: Connection, why: string): void {
    this.owner.forget(own)
    this.failed(why)
  }

  private failed(why: string, subject = 'connect'): void {
    this.context.metrics.socket_errors.add(1)
    this.owner.tell(subject, `not connected: ${why}; tried again until it is`)
    this.putOff()
  }

  private putOff(): void {
    if (this.stopped) return
    this.connectTimer.at(this.context.clock.now + this.backOff)
    this.backOff = Math.min(2 * this.backOff, MAX_BACK_OFF_NS)
  }

  /** The connection, which stood for `lasted` ns or, 0, never did, has ended: it is made again. */
  lost(lasted: number): void {
    if (lasted >= HEALTHY_NS) this.backOff = MIN_BACK_OFF_NS
    this.owner.tell('connect', 'the connection has ended; it is made again')
    this.putOff()
  }

  stop(): void {
    this.stopped = true
    this.connectTimer.cancel()
  }
}
