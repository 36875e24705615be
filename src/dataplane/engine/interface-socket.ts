/** A UDP socket that depends on a network interface, which it follows: an interface made anew under the old name is another one. */
import { native } from '../native/native.ts'
import { formatSocketAddress } from './address.ts'
import { InterfaceName, indexNow } from './interface-name.ts'
import type { UdpOptions, UdpTuning } from './io.ts'
import { isJoined } from './joined-groups.ts'
import type { Log } from './log.ts'
import type { NativeIoParts } from './native-packet-io.ts'
import { RoutedSocket } from './routed-socket.ts'
import { watchOpened } from './watch-opened.ts'

/** The interface, and its number before the socket was opened: one that is replaced in between is noticed later. */
export interface FollowedInterface {
  readonly name: string
  readonly index: number
}

export class InterfaceSocket extends RoutedSocket {
  private options: UdpOptions
  private readonly interface: string
  private readonly called: InterfaceName
  /** The number of the interface that the socket is on. */
  private index: number
  private readonly openSocket: (options: UdpOptions) => number
  private readonly token: number
  /** The kernel lists the group of the socket on the interface that it is on. */
  private listed: boolean
  /** There was no interface of that name when last looked. */
  private gone = false
  /** Going to the new interface has failed, and the log says so. */
  private refused = false

  /**
   * `handle` was opened by `openSocket(options)` and is watched under `token`, as those opened later will be. Where `options` name no interface the
   * socket is not bound to it: it has joined its group there.
   */
  constructor(
    io: NativeIoParts,
    handle: number,
    options: UdpOptions,
    { name, index }: FollowedInterface,
    openSocket: (options: UdpOptions) => number,
    token: number,
  ) {
    super(io, handle, options)
    this.options = options
    this.interface = name
    this.called = new InterfaceName(name)
    this.index = index
    this.openSocket = openSocket
    this.token = token
    this.listed = this.isJoined()
  }

  override tune(tuning: UdpTuning): void {
    super.tune(tuning)
    this.options = { ...this.options, ...tuning }
  }

  override follow(log: Log): boolean {
    const { interface: name } = this
    const { interface: boundTo, multicastGroup } = this.options
    const present = indexNow(name)
    const renamed = present !== undefined && !this.gone && this.called.isOther(this.index, present, log)
    // Nothing is known of it: the next look finds out.
    if (present === undefined || renamed === undefined) return false
    if (renamed) return super.follow(log)
    if (present === 0) {
      if (this.gone) return false
      this.gone = true
      this.leave()
      const [where, what] =
        boundTo === undefined
          ? [`, on which the group ${multicastGroup} was joined,`, 'nothing of the group is received']
          : ['', 'nothing is sent or received']
      log('WARN', `interface ${name}${where} is gone: ${what} until there is one of that name again`, {
        interface: name,
      })
      return false
    }
    const back = this.gone
    this.gone = false
    // Under its old number the interface needs no new socket, but it has forgotten which groups were joined.
    const replaced = this.index !== present
    const renewed = replaced || this.refused || (back && multicastGroup !== undefined)
    // It may have gone and come between two looks, or have had an MTU for a moment that the family has not (1280 bytes are IPv6's least).
    const forgotten = !renewed && this.listed && !this.isJoined()
    if (!renewed && !forgotten) {
      if (back) this.tellAgain(log, 'is there again')
      return super.follow(log)
    }
    try {
      this.reopen()
    } catch (error) {
      // Its addresses may be on their way: the next look tries again.
      const what = boundTo === undefined ? `group ${multicastGroup} not joined on` : 'not bound to'
      if (!this.refused) log('WARN', `${what} interface ${name} yet: ${(error as Error).message}`, { interface: name })
      this.refused = true
      return false
    }
    this.refused = false
    const why = forgotten ? 'had forgotten its groups' : replaced ? 'is another than before' : 'is there again'
    this.tellAgain(log, why)
    return true
  }

  /** The socket is where it should be: the interface `why`. */
  private tellAgain(log: Log, why: string): void {
    const { name: address, backend, interface: name } = this
    const { interface: boundTo, multicastGroup } = this.options
    const what = boundTo === undefined ? `joined the group ${multicastGroup}` : `bound to ${address} (${backend})`
    log('INFO', `${what} again: interface ${name} ${why}`, { address, backend, interface: name })
  }

  private isJoined(): boolean {
    const { multicastGroup } = this.options
    return multicastGroup !== undefined && isJoined(multicastGroup, this.index)
  }

  /** Before anybody joins anew: the old membership, ended later, would take the new one with it. */
  private leave(): void {
    native.udpLeave(this.handle, this.index)
  }

  /** A new socket in place of the old one, at its port where that is possible; when it cannot be opened the old one stays, without its group. */
  private reopen(): void {
    const { io, handle, token } = this
    const index = native.interfaceIndex(this.interface)
    // The routes that have led to the interface may come later, or not at all.
    const options = { ...this.options, groupInterface: this.interface }
    const { local, remote } = options
    const { port } = native.udpAddress(handle)
    const chosenPort = local === undefined || local.port === 0
    const any = { address: remote?.family === 6 ? '::' : '0.0.0.0', port: 0, family: remote?.family ?? 4 }
    this.leave()
    let fresh: number
    try {
      fresh = this.openSocket({ ...options, local: { ...(local ?? any), port }, chosenPort })
    } catch (error) {
      // Two sockets on one interface cannot share a port; one that nobody chose can be another.
      if (!chosenPort || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
      fresh = this.openSocket(options)
    }
    watchOpened(io.poller, fresh, token)
    this.replace(fresh)
    this.index = index
    this.listed = this.isJoined()
    this.blocked = false
    this.cutOff = 0
    this.name = formatSocketAddress(native.udpAddress(fresh))
  }
}
