/** A connected UDP socket that was given no particular address: it goes where the way to its peer begins, when the machine's addresses or routes change. */
import { native } from '../native/native.ts'
import { formatSocketAddress, isAnyAddress } from './address.ts'
import type { UdpOptions } from './io.ts'
import type { Log } from './log.ts'
import { type NativeIoParts, UdpSocket } from './native-packet-io.ts'

/** Whether the kernel chooses the address of such a socket when it is connected. */
export function isRouted({ local, remote }: UdpOptions): boolean {
  return remote !== undefined && (local === undefined || isAnyAddress(local.address))
}

export class RoutedSocket extends UdpSocket {
  /** Address and port of whom it is connected to; '' of one that stays where it is. */
  private readonly peer: string
  cutOff = 0

  /** `handle` was opened with `options`. */
  constructor(io: NativeIoParts, handle: number, options: UdpOptions) {
    super(io, handle)
    this.peer = isRouted(options) && options.remote ? formatSocketAddress(options.remote) : ''
  }

  follow(log: Log): boolean {
    const { peer, name: before, backend, cutOff } = this
    if (peer === '') return true
    const found = native.udpFollow(this.handle)
    this.cutOff = Math.max(0, -found)
    if (found < 0) return false
    const name = formatSocketAddress(native.udpAddress(this.handle))
    this.name = name
    const fields = { address: name, backend }
    if (name !== before)
      log('INFO', `bound to ${name} (${backend}) in place of ${before}: the way to ${peer} begins there now`, fields)
    else if (cutOff > 0) log('INFO', `${peer} can be reached from ${name} again`, fields)
    return found === 0
  }
}
