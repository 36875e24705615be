/** A listener: takes the connections that come, and refuses those that are too many or of somebody who may not. */
import { NS_PER_MS } from '../../engine/clock.ts'
import type { ConnectionEvents, ConnectionIo, ConnectionOptions, ListenerIo } from '../../engine/io.ts'
import { cureOf } from '../../engine/scarcity.ts'
import type { Timer } from '../../engine/timers.ts'
import { Connection, type ConnectionContext, type ConnectionOwner, type Peers } from './connection.ts'
import { FOLLOW_NS } from './followed-record.ts'
import type { SendQueue } from './send-queue.ts'
import { ToldErrors } from './told-errors.ts'

/** Connections of one listener. */
const MAX_CONNECTIONS = 1024
/** Connections accepted in one breath. */
const MAX_ACCEPTED_AT_ONCE = 64
/** Time between two attempts to accept when the system gives no connection, though one waits. */
const ACCEPT_WAIT_NS = 100 * NS_PER_MS

const NONE_ACCEPTED = 'no connection can be accepted'
const WAIT = 'those that come wait until one can'

interface ListeningOwner extends ConnectionOwner {
  /** Connections there are now. */
  readonly open: number
}

export class Accepting {
  private readonly context: ConnectionContext
  private readonly owner: ListeningOwner
  private readonly peers: Peers
  private readonly queue: () => SendQueue
  private readonly listener: ListenerIo
  private readonly acceptTimer: Timer
  private readonly refusals: ToldErrors

  /** `queue` makes the queue of a connection. Throws when it cannot listen. */
  constructor(
    context: ConnectionContext,
    { socket, peers }: { socket: ConnectionOptions; peers: Peers },
    events: ConnectionEvents,
    queue: () => SendQueue,
    owner: ListeningOwner,
  ) {
    this.context = context
    this.owner = owner
    this.peers = peers
    this.queue = queue
    this.refusals = new ToldErrors(context.clock, context.log, NONE_ACCEPTED, 'socket_errors')
    this.acceptTimer = context.timer(() => this.listener.accepting(true))
    this.listener = context.io.listen(socket, () => this.accept(), events)
    if (this.listener.follow) this.follow(context)
  }

  /** Has the listener follow its interface. */
  private follow({ clock, log, timer }: ConnectionContext): void {
    const look = timer(() => {
      this.listener.follow?.(log)
      look.at(clock.now + FOLLOW_NS)
    })
    look.at(clock.now + FOLLOW_NS)
  }

  /** What it listens at. */
  get name(): string {
    return this.listener.name
  }

  private accept(): void {
    const { context, owner, peers, listener } = this
    for (let i = 0; i < MAX_ACCEPTED_AT_ONCE; i++) {
      let io: ConnectionIo | null
      try {
        io = listener.accept()
      } catch (error) {
        context.metrics.socket_errors.add(1)
        listener.accepting(false)
        this.acceptTimer.at(context.clock.now + ACCEPT_WAIT_NS)
        this.refusals.tell(-((error as NodeJS.ErrnoException).errno ?? 0), NONE_ACCEPTED, cureOf(error) ?? WAIT, {})
        return
      }
      if (io === null) return
      const connection = new Connection(io, this.queue())
      if (owner.open === MAX_CONNECTIONS) {
        owner.tell('most', `has ${MAX_CONNECTIONS} connections: others are closed at once`)
        this.refuse(io)
      } else if (peers.add(connection)) owner.opened(connection, io)
      else this.refuse(io)
    }
  }

  private refuse(io: ConnectionIo): void {
    this.context.metrics.refused_connections.add(1)
    io.close(true)
  }

  close(): void {
    this.listener.close()
  }
}
