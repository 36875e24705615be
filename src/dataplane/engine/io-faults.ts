/** What a socket or device that could not be opened says to people: besides the system's word, why and what to do. */
import { isIPv6 } from '../../text/ip-family.ts'
import type { TunOpenOptions } from '../native/socket-calls.ts'
import { isLinkLocal } from './address.ts'
import type { ConnectionOptions, UdpOptions } from './io.ts'

const LOW_PORT =
  'ports below net.ipv4.ip_unprivileged_port_start (1024) need the capability CAP_NET_BIND_SERVICE: run as root, grant it, or choose a higher port'
const LINK_LOCAL = 'a link-local address (fe80::) is of one link: name its network interface in the field interface'

const LINK_LOCAL_TCP =
  'a link-local address (fe80::) is of one link: name its network interface in the address, as [fe80::1%eth0]:5000'

const FAR_FROM_OWN =
  'nothing is sent there from the address that the socket is bound to: leave that out, or choose one on the way to the peer'
const NO_WAY_TO_GROUP =
  'no route says on which network the group is to be joined: name its network interface in the field interface'

/** `error` of opening a UDP socket, with the cure where there is one. */
export function udpFault(error: unknown, options: UdpOptions): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException & { syscall?: string }
  const name = `the interface "${options.interface}"`
  const cures: Record<string, string | undefined> = {
    'bind EACCES': LOW_PORT,
    'bind EADDRINUSE': 'another socket has the port (ss -lunp names it): stop that, or choose another port',
    'bind EADDRNOTAVAIL': 'the address is not of this machine (ip address lists those that are)',
    'bind EINVAL': isLinkLocal(options.local?.address ?? '') ? LINK_LOCAL : undefined,
    'setsockopt SO_BINDTODEVICE ENODEV': `there is no interface of that name (ip link lists those there are): make it first, or correct ${name}`,
    'setsockopt SO_BINDTODEVICE EPERM': `binding to ${name} needs the capability CAP_NET_RAW: run as root or grant it`,
    'connect EINVAL': isLinkLocal(options.remote?.address ?? '') ? LINK_LOCAL : FAR_FROM_OWN,
    'connect ENETUNREACH': 'no route leads there (ip route)',
    'setsockopt IP_ADD_MEMBERSHIP ENODEV': NO_WAY_TO_GROUP,
    'setsockopt IPV6_JOIN_GROUP ENODEV': NO_WAY_TO_GROUP,
    'connect EACCES': 'the address is a broadcast or forbidden one: choose another',
  }
  return cured(error, cures[`${syscall} ${code}`])
}

/** `error` of listening or connecting, with the cure where there is one. */
export function connectionFault(error: unknown, options: ConnectionOptions): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException & { syscall?: string }
  const cures =
    options.kind === 'tcp' ? TCP_CURES : options.bind !== undefined && syscall === 'bind' ? ID_CURES : UNIX_CURES
  return cured(error, cures[`${syscall} ${code}`])
}

const TCP_CURES: Readonly<Record<string, string>> = {
  'bind EACCES': LOW_PORT,
  'bind EADDRINUSE': 'another socket has the port (ss -ltnp names it): stop that, or choose another port',
  'bind EADDRNOTAVAIL': 'the address is not of this machine (ip address lists those that are)',
  'bind EINVAL': LINK_LOCAL_TCP,
  'connect EINVAL': LINK_LOCAL_TCP,
  'connect ENETUNREACH': 'no route leads there (ip route)',
}

const STALE_STAYS =
  'the socket there is of a server that is gone, but this user may not remove it: remove it, or choose another listen_address'

const UNIX_CURES: Readonly<Record<string, string>> = {
  'bind EACCES': 'this user may not write in the folder: choose another listen_address, or grant it',
  'bind EADDRINUSE':
    'somebody listens there (ss -lxp names it), or the file is no socket: stop that, remove the file, or choose another listen_address',
  'bind ENOENT': 'there is no such folder: make it first, or choose another listen_address',
  'unlink EACCES': STALE_STAYS,
  'unlink EPERM': STALE_STAYS,
  'connect ECONNREFUSED': 'nobody listens there: start the server',
  'connect ENOENT': 'nobody listens there: start the server',
  'connect EACCES': 'the socket is of another user: run as that one',
  'connect EPROTOTYPE': 'the socket there is not of the type SOCK_SEQPACKET: choose another server_address',
}

const ID_CURES: Readonly<Record<string, string>> = {
  'bind EADDRINUSE': 'another client of that server has the id: choose another bind_address',
}

/** Why /dev/net/tun cannot be opened, by the system's word, with the cure. */
export const TUN_NOT_OPENED: Readonly<Record<string, string>> = {
  EPERM:
    'the container or unit is not allowed the device /dev/net/tun: allow it (LXC lxc.cgroup2.devices.allow = c 10:200 rwm, Docker --device /dev/net/tun, systemd DeviceAllow=/dev/net/tun)',
  EACCES: 'this user may not open /dev/net/tun: let it read and write there (chmod 666 /dev/net/tun)',
}

/** `error` of making a TUN or TAP interface, with the cause and the cure where they are known. */
export function tunFault(error: unknown, { kind, name, address }: TunOpenOptions): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException & { syscall?: string }
  const failed = (why: string) =>
    Object.assign(new Error(`interface "${name}" ${why} (${code})`, { cause: error }), { code })
  if (syscall === 'RTM_NEWADDR' && isIPv6(address) && (code === 'EACCES' || code === 'EOPNOTSUPP')) {
    return failed(
      'cannot have an IPv6 address, for IPv6 is switched off here: switch it on (sysctl net.ipv6.conf.all.disable_ipv6=0 and net.ipv6.conf.default.disable_ipv6=0, for a container with --sysctl), or set ip to an IPv4 address',
    )
  }
  const notOpened = syscall === 'open' ? TUN_NOT_OPENED[code ?? ''] : undefined
  if (notOpened !== undefined) return failed(`cannot be made: ${notOpened}`)
  if (code === 'EPERM' || code === 'EACCES') {
    return failed('cannot be made without the capability CAP_NET_ADMIN: run as root or grant it')
  }
  if (syscall === 'open' && (code === 'ENOENT' || code === 'ENODEV' || code === 'ENXIO')) {
    return failed(
      'cannot be made without /dev/net/tun: load the module (modprobe tun), in a container add --device /dev/net/tun',
    )
  }
  if (syscall === 'TUNSETIFF' && code === 'EBUSY') {
    return failed('is in use by another process or run: stop that, or choose another interface_name')
  }
  if (syscall === 'TUNSETIFF' && (code === 'EINVAL' || code === 'EEXIST')) {
    return failed(
      `is there already and is no ${kind.toUpperCase()} interface that a run can take over (ip -d link show ${name}): choose another interface_name, or delete it`,
    )
  }
  if (syscall === 'RTM_NEWROUTE' && code === 'EEXIST') {
    return failed(
      'cannot have the default route, for there is one of the same metric: give that one a higher metric or remove it (ip route, ip -6 route), or set is_default_route to false',
    )
  }
  return error
}

function cured(error: unknown, cure: string | undefined): unknown {
  if (cure !== undefined) (error as Error).message += `; ${cure}`
  return error
}
