/** Which network interface a UDP socket depends on: made anew under its name it is another one, and the socket has to follow. */
import { networkInterfaces } from 'node:os'
import { isIPv4 } from '../../text/ip-family.ts'
import { native } from '../native/native.ts'
import { formatSocketAddress, isLinkLocal, zoneOf } from './address.ts'
import type { FollowedInterface } from './interface-socket.ts'
import type { SocketAddress, UdpOptions } from './io.ts'

/**
 * The kernel's number of the interface that an address is on, 0 where it names none. A zone may be the number itself (RFC 4007, section 11.2).
 * Throws ENODEV when there is none of that name.
 */
export function scopeOf(address: Pick<SocketAddress, 'address' | 'port'>): number {
  const zone = zoneOf(address.address)
  if (zone === '') return 0
  const scope = indexOf(zone) || (/^\d{1,9}$/.test(zone) ? Number(zone) : 0)
  if (scope !== 0) return scope
  const message = `there is no network interface "${zone}", which the address ${formatSocketAddress(address)} names: make it first, or correct the address (ip link lists those there are)`
  throw Object.assign(new Error(message), { code: 'ENODEV' })
}

/** The interface that an address of one link names, by its name; undefined: it is no such address. Throws as `scopeOf` does. */
export function linkOf(address: Pick<SocketAddress, 'address' | 'port'>): FollowedInterface | undefined {
  const index = scopeOf(address)
  const name = nameOf(address.address)
  return name !== undefined && isLinkLocal(address.address) ? { name, index } : undefined
}

/** The interface that the zone of one of the socket's own two addresses names: the kernel binds the socket to it. */
export function interfaceOfZone({ local, remote }: UdpOptions): string | undefined {
  return [local, remote].map((address) => nameOf(address?.address)).find((name) => name !== undefined)
}

/**
 * The interface on which the kernel joins the socket's group when nobody names one: that of the socket's address, or the one that routes to the group
 * leave by, asked for with a socket that `connect` connects there. undefined: there is no group, or the interface is not known.
 */
export function interfaceOfGroup(
  { multicastGroup, local }: UdpOptions,
  connect: (remote: SocketAddress) => number,
): string | undefined {
  if (multicastGroup === undefined) return undefined
  const own = local !== undefined && isIPv4(local.address) ? withAddress(local.address) : undefined
  const named = nameOf(multicastGroup) ?? own
  if (named !== undefined) return named
  try {
    const probe = connect({ address: multicastGroup, port: 9, family: isIPv4(multicastGroup) ? 4 : 6 })
    const { address } = native.udpAddress(probe)
    native.close(probe)
    return nameOf(address) ?? withAddress(address)
  } catch {
    // Opening the socket itself says why.
    return undefined
  }
}

/** Longest name of an interface, bytes. */
const MAX_NAME_BYTES = 15

/** The kernel's number of the interface of that name, 0 where there is none. */
function indexOf(name: string): number {
  return Buffer.byteLength(name) > MAX_NAME_BYTES ? 0 : native.interfaceIndex(name)
}

/** Of the interface that an address names by its zone. */
function nameOf(address = ''): string | undefined {
  const zone = zoneOf(address)
  return zone !== '' && indexOf(zone) !== 0 ? zone : undefined
}

/** The name of the interface that has an address. */
function withAddress(address: string): string | undefined {
  return Object.entries(networkInterfaces()).find(([, own = []]) => own.some((at) => at.address === address))?.[0]
}
