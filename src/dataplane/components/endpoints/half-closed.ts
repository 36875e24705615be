/** Streams whose other end has finished sending, and can still be answered. */
import { NS_PER_S, type RunClock } from '../../engine/clock.ts'
import type { Timer } from '../../engine/timers.ts'
import type { Connection } from './connection.ts'

/** A stream whose other end has finished is kept so long after the last byte sent. */
const MAX_HALF_CLOSED_NS = 10 * NS_PER_S

export class HalfClosed {
  private readonly clock: RunClock
  private readonly connections: Connection[] = []
  private readonly timer: Timer
  private readonly close: (connection: Connection) => void

  /** `close` ends a connection, which is then forgotten here. */
  constructor(
    { clock, timer }: { clock: RunClock; timer: (fire: () => void) => Timer },
    close: (connection: Connection) => void,
  ) {
    this.clock = clock
    this.close = close
    this.timer = timer(() => this.closeFinished())
  }

  add(connection: Connection): void {
    const { clock, timer, connections } = this
    connection.half = true
    connection.io?.reading(false)
    connection.since = clock.now
    connections.push(connection)
    if (!timer.armed) timer.at(clock.now + MAX_HALF_CLOSED_NS)
  }

  forget(connection: Connection): void {
    const at = this.connections.indexOf(connection)
    if (at >= 0) this.connections.splice(at, 1)
  }

  /** Closes those to which nothing has been sent for a while. */
  private closeFinished(): void {
    const { connections, clock, timer } = this
    for (const connection of connections.filter(({ since }) => since + MAX_HALF_CLOSED_NS <= clock.now)) {
      // Its end may have been that of others, of which bytes were on their way there.
      if (connections.includes(connection)) this.close(connection)
    }
    let next = Number.POSITIVE_INFINITY
    for (const { since } of connections) next = Math.min(next, since + MAX_HALF_CLOSED_NS)
    if (next < Number.POSITIVE_INFINITY) timer.at(next)
  }
}
