/** Word of the kernel's that addresses, routes or interfaces of the machine have changed, for the sockets of a run that follow them. */
import { native } from '../native/native.ts'

export class RouteWatch {
  private readonly poller: number
  private readonly handle: number
  private readonly listeners: (() => void)[] = []
  private told = false

  /** `handle` is of `routesOpen` and watched by `poller`, which calls `tell`. */
  constructor(poller: number, handle: number) {
    this.poller = poller
    this.handle = handle
  }

  add(listener: () => void): void {
    this.listeners.push(listener)
  }

  /** Something has changed. What changes next is told after `again` only: a machine whose routes change all the time wakes nobody for each of them. */
  tell(): void {
    this.told = true
    native.pollerWatchRead(this.poller, this.handle, false)
    for (const listener of this.listeners) listener()
  }

  /** Called before one looks: what changes from now on is told again. */
  again(): void {
    if (!this.told) return
    this.told = false
    native.routesClear(this.handle)
    native.pollerWatchRead(this.poller, this.handle, true)
  }
}
