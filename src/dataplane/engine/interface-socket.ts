/** A UDP socket bound to a network interface, which it follows: an interface made anew under the old name is another one. */
import { networkInterfaces } from 'node:os'
import { native } from '../native/native.ts'
import { formatSocketAddress } from './address.ts'
import type { UdpOptions, UdpTuning } from './io.ts'
import type { Log } from './log.ts'
import { type NativeIoParts, UdpSocket } from './native-packet-io.ts'

export type InterfaceOptions = UdpOptions & { interface: string }

export class InterfaceSocket extends UdpSocket {
  private options: InterfaceOptions
  private readonly openSocket: (options: UdpOptions) => number
  private readonly token: number
  /** There was no interface of that name when last looked. */
  private gone = false
  /** Binding to the new interface has failed, and the log says so. */
  private refused = false
  /** The interface's addresses when last looked. */
  private addresses = ''

  /** `handle` was opened by `openSocket(options)` and is watched under `token`, as those opened later will be. */
  constructor(
    io: NativeIoParts,
    handle: number,
    options: InterfaceOptions,
    openSocket: (options: UdpOptions) => number,
    token: number,
  ) {
    super(io, handle)
    this.options = options
    this.openSocket = openSocket
    this.token = token
    this.readdressed()
  }

  override tune(tuning: UdpTuning): void {
    super.tune(tuning)
    this.options = { ...this.options, ...tuning }
  }

  follow(log: Log): boolean {
    const { interface: name, multicastGroup } = this.options
    const { bound, present } = native.udpInterface(this.handle)
    if (present === 0) {
      if (this.gone) return false
      this.gone = true
      const text = `interface ${name} is gone: nothing is sent or received until there is one of that name again`
      log('WARN', text, { interface: name })
      return false
    }
    const back = this.gone
    this.gone = false
    // Under its old number the interface needs no new socket, but it has forgotten which groups were joined.
    const stale = bound !== present || (back && multicastGroup !== undefined)
    if (!this.readdressed() && !stale && !this.refused) return false
    try {
      this.reopen()
    } catch (error) {
      // Its addresses may be on their way: the next look tries again.
      if (!this.refused)
        log('WARN', `not bound to interface ${name} yet: ${(error as Error).message}`, { interface: name })
      this.refused = true
      return false
    }
    this.refused = false
    const { name: address, backend } = this
    log('INFO', `bound to ${address} (${backend}) again: interface ${name} is another than before`, {
      address,
      backend,
      interface: name,
    })
    return true
  }

  /**
   * Whether the interface's addresses have changed and the socket's is none of them any more: a connected socket that was given
   * no local address keeps the one it got when it was connected.
   */
  private readdressed(): boolean {
    const { local, remote, interface: name } = this.options
    if (local || !remote) return false
    const family = `IPv${remote.family}`
    const own = (networkInterfaces()[name] ?? []).filter((at) => at.family === family).map(({ address }) => address)
    const addresses = own.join()
    if (addresses === this.addresses) return false
    this.addresses = addresses
    const [address] = native.udpAddress(this.handle).address.split('%')
    return own.length > 0 && !own.includes(address)
  }

  /** A new socket in place of the old one, at its port where that is possible; when it cannot be opened the old one stays. */
  private reopen(): void {
    const { io, options, handle, token } = this
    const { local, remote } = options
    const { port } = native.udpAddress(handle)
    const any = { address: remote?.family === 6 ? '::' : '0.0.0.0', port: 0, family: remote?.family ?? 4 }
    let fresh: number
    try {
      fresh = this.openSocket({ ...options, local: { ...(local ?? any), port } })
    } catch (error) {
      // Two sockets on one interface cannot share a port; one that nobody chose can be another.
      if ((local && local.port !== 0) || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
      fresh = this.openSocket(options)
    }
    native.pollerAdd(io.poller, fresh, token)
    native.close(handle)
    this.handle = fresh
    this.blocked = false
    this.name = formatSocketAddress(native.udpAddress(fresh))
  }
}
