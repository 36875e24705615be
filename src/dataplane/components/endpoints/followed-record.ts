/** The remote record of an address: where that names an interface, with the number that the interface has now. */
import { zoneOf } from '../../engine/address.ts'
import { NS_PER_MS, type RunClock } from '../../engine/clock.ts'
import type { Io, SocketAddress } from '../../engine/io.ts'
import type { Timer } from '../../engine/timers.ts'

/** How often it is looked whether an interface has been made anew, at most; and how long after a change of addresses, routes or interfaces. */
export const FOLLOW_NS = 250 * NS_PER_MS

/** The parts of a component's context that are needed for it. */
interface FollowingContext {
  readonly io: Io
  readonly clock: RunClock
  timer(fire: () => void): Timer
}

export class FollowedRecord {
  record: Int32Array
  private address: SocketAddress
  private readonly context: FollowingContext
  private look: Timer | undefined

  /** Throws when there is no interface of that name. */
  constructor(address: SocketAddress, context: FollowingContext) {
    this.context = context
    this.address = address
    this.record = context.io.remote(address)
    this.follow()
  }

  /** Becomes that of another address; throws as the constructor does, and stays as it is then. */
  change(address: SocketAddress): void {
    this.record = this.context.io.remote(address)
    this.address = address
    this.follow()
  }

  private follow(): void {
    const { io, clock, timer } = this.context
    if (this.look !== undefined || io.rescope === undefined || zoneOf(this.address.address) === '') return
    const look = timer(() => {
      io.rescope?.(this.address, this.record)
      look.at(clock.now + FOLLOW_NS)
    })
    this.look = look
    look.at(clock.now + FOLLOW_NS)
  }
}
