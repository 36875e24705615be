/** What tun and tap have in common: a network interface of the machine, its fields and their rules, and the packets through it. */
import { isIPv4, isIPv6 } from 'node:net'
import { ipv6Bytes } from '../../../text/ipv6-bytes.ts'
import { NS_PER_MS, type RunClock } from '../../engine/clock.ts'
import type { Fault, WarnedGraph } from '../../engine/component.ts'
import type { Io } from '../../engine/io.ts'
import type { Log } from '../../engine/log.ts'
import { Bool, Input, InterfaceName, Optional, Output, Text } from '../../engine/schema.ts'
import { errorText } from '../../engine/system-errors.ts'
import type { Timer } from '../../engine/timers.ts'
import type { InterfaceState } from '../../native/socket-calls.ts'
import { Endpoint, type EndpointOptions } from './endpoint.ts'
import { runInterfaces } from './own-tunnels.ts'

export const DEFAULT_MTU = 1280

/** How often an interface that the run made is looked at, whether it still has what it was given. */
const KEEP_NS = 250 * NS_PER_MS

/** The fields of an interface that carries `what`, such as IP packets. */
export const interfaceFields = (what: string) => ({
  input: Input(`Connection point whose ${what} the machine receives.`),
  output: Output(`Connection point that gets the ${what} the machine sends.`),
  interface_name: InterfaceName('Name of the interface.'),
  ip: Text('Address of the interface, IPv4 or IPv6.', { format: 'ip', maxLength: 45 }),
  netmask: Optional(Text('Network the address is in: 255.255.255.0 or a prefix length.', { maxLength: 45 })),
  is_default_route: Bool('Route everything through the interface.', { default: false }),
})

/** For the pages of both: how an interface comes and goes. */
export const INTERFACE_LIFE =
  'The interface is made at start, gets its address and MTU, and goes away when the run ends. It takes the capability CAP_NET_ADMIN (root has it). netmask is 255.255.255.0 or 24, for IPv6 64; unset it is 24 for IPv4 and 64 for IPv6. With is_default_route all traffic of the machine that has no better route goes through it; the peer of a tunnel, to which its own packets go, needs a route of its own then (ip route add PEER via GATEWAY), or they go into the tunnel again and again: a udp with remote_address warns of that in the run log. A default route that is there already needs a higher metric: beside one of the same, for IPv4 one without, for IPv6 one of 1024, the run does not start. Each interface needs a network of its own: where another one has the same address, what is sent there goes through one of the two only, and the run log says so. Linux takes the routes of an interface that is set down, and its IPv6 addresses: when this one is up again it gets its address and default route again within a quarter of a second, as it does when somebody removes them. The log says that it is down, and what was put back. Other routes through it are for who made them to make again. In another network namespace, where Linux moves it without addresses and routes, it still carries packets once somebody has set it up there; it is looked after again when it is back, and the log says both.'

/** For the pages of both: an interface of `ip tuntap add … mode <kind>`. */
export const interfaceFound = (kind: 'tun' | 'tap') =>
  `An interface of that name that was made to last (ip tuntap add${kind === 'tap' ? ' mode tap' : ''}, also for a user without the capability) is used as it is: the run changes neither its address nor its MTU nor whether it is up, says in its log what differs, and leaves it there.`

/** For the pages of both: what the kernel drops. */
export const unreadPackets = (places: string) =>
  `What the machine sends while the queue of the interface is full (${places} packets), since the run was kept from reading, the kernel drops: it is asked once a second at most, and at the end of the run, how many these were, which \`kernel_dropped_packets\` counts, without those from before the run, and the run log says so, the first time and once a minute while it goes on. \`ip -s link show NAME\` has all of them as dropped under TX; \`ip link set NAME txqueuelen 5000\` makes the queue longer.`

interface InterfaceConfig {
  interface_name: string
  ip: string
  netmask?: string
  is_default_route: boolean
  mtu: number
}

/**
 * Prefix length of a netmask for `ip`: '24', '/24', '255.255.255.0', 'ffff:ffff::'; unset: 24 for IPv4, 64 for IPv6.
 * Null when it is none of these.
 */
export function prefixLength(ip: string, netmask: string | undefined): number | null {
  const bits = isIPv4(ip) ? 32 : 128
  if (netmask === undefined) return bits === 32 ? 24 : 64
  const plain = /^\/?(\d{1,3})$/.exec(netmask)
  if (plain) return Number(plain[1]) <= bits ? Number(plain[1]) : null
  let mask: Uint8Array
  if (isIPv4(netmask) && bits === 32) mask = Uint8Array.from(netmask.split('.').map(Number))
  else if (bits === 128 && isIPv6(netmask)) mask = ipv6Bytes(netmask)
  else return null
  const text = [...mask].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return /^1*0*$/.test(text) ? text.lastIndexOf('1') + 1 : null
}

function isSame(one: string, other: string): boolean {
  if (isIPv4(one) || isIPv4(other)) return one === other
  // A link-local one comes with its scope.
  return Buffer.compare(ipv6Bytes(one), ipv6Bytes(other)) === 0
}

/** The rules over an interface's fields. */
export function interfaceFaults({ ip, netmask, mtu }: InterfaceConfig): Fault[] {
  const faults: Fault[] = []
  if (isUnspecified(ip)) {
    faults.push({ pointer: '/ip', message: `${ip} is no address of an interface: write one that is to be this end's` })
  }
  if (prefixLength(ip, netmask) === null) {
    faults.push({
      pointer: '/netmask',
      message: isIPv4(ip)
        ? `"${netmask}" is no netmask: write 255.255.255.0 or 24`
        : `"${netmask}" is no IPv6 prefix length: write 64`,
    })
  }
  if (!isIPv4(ip) && mtu < 1280) {
    faults.push({ pointer: '/mtu', message: `${mtu} is below 1280, the least that IPv6 takes (RFC 8200)` })
  }
  return faults
}

const isUnspecified = (ip: string): boolean =>
  isIPv4(ip) ? ip === '0.0.0.0' : ipv6Bytes(ip).every((byte) => byte === 0)

/** Whether what the machine sends is dropped on its way for its length: its packets have `header` bytes besides what the MTU counts. */
export function interfaceWarnings(
  { output, mtu }: Pick<InterfaceConfig, 'mtu'> & { output?: string | undefined },
  header: number,
  { longestFrom }: Pick<WarnedGraph, 'longestFrom'>,
): Fault[] {
  const most = output === undefined ? Number.POSITIVE_INFINITY : longestFrom(output) - header
  if (most >= mtu) return []
  const message = `the machine sends packets of up to ${mtu} bytes, of which those of more than ${most} are too long for what they go through, with what that adds: they are dropped; set mtu to ${most} here, or a longer one there, or let a fragmentizer cut them`
  return [{ pointer: '/mtu', message }]
}

/** An interface that somebody has made to last is theirs: what it lacks for this configuration is said, not changed. */
function sayFound(
  found: InterfaceState,
  { interface_name: name, ip, mtu, is_default_route }: InterfaceConfig,
  log: Log,
): void {
  const text = `interface ${name} was there already: it is used as it is and left as it is, at the end too`
  if (found.error !== 0) {
    const why = errorText(found.error)
    log('WARN', `${text}; whether it fits the configuration cannot be found out (${why})`, { interface: name })
    return
  }
  const lacks = [
    found.up ? '' : 'it is down',
    found.addresses.some((address) => isSame(address, ip)) ? '' : `it has not the address ${ip}`,
    found.mtu === mtu ? '' : `its MTU is ${found.mtu}, not ${mtu}`,
    is_default_route ? 'is_default_route is not applied' : '',
  ].filter((lack) => lack !== '')
  const message = lacks.length === 0 ? text : `${text}, though ${lacks.join(', ')}`
  log(lacks.length === 0 ? 'INFO' : 'WARN', message, { interface: name, mtu: found.mtu, up: found.up })
}

interface InterfaceOptions {
  kind: 'tun' | 'tap'
  config: InterfaceConfig
  /** Exchange large packets with the machine. */
  offload: boolean
  context: InterfaceContext
}

/** The parts of a component's context that an interface needs. */
interface InterfaceContext {
  readonly name: string
  clock: RunClock
  io: Io
  shared<T>(name: string, make: () => T): T
  timer(fire: () => void): Timer
  log: Log
}

/** Makes or takes the interface and says so; `options.mtu` is the longest packet or frame. Throws when the system refuses. */
export function openInterface(
  options: Omit<EndpointOptions, 'timer' | 'unreadCure'>,
  { kind, config, offload, context }: InterfaceOptions,
): Endpoint {
  const { clock, io, timer, log } = context
  const { interface_name: name, ip, mtu } = config
  const device = {
    kind,
    name,
    address: ip,
    prefix: prefixLength(ip, config.netmask) as number,
    mtu,
    defaultRoute: config.is_default_route,
    offload,
  }
  const unreadCure = 'make the queue of the interface longer (ip link set NAME txqueuelen 5000)'
  const endpoint = new Endpoint({ ...options, timer, unreadCure }, (events) => io.tun(device, events))
  runInterfaces(context).set(context.name, endpoint.io)
  const { found, alsoAt } = endpoint.io
  if (found === undefined) {
    log('INFO', `interface ${endpoint.io.name} is up with ${ip}`, { interface: endpoint.io.name, mtu })
  } else sayFound(found, config, log)
  if (alsoAt !== undefined) {
    const message = `interface ${alsoAt} has the address ${ip} too: what the machine sends to that network goes through one of the two only, mostly the one that was there first (ip route); give ${endpoint.io.name} an address in a network of its own`
    log('WARN', message, { interface: endpoint.io.name, other: alsoAt })
  }
  if (endpoint.io.follow) {
    const look = timer(() => {
      endpoint.io.follow?.(log)
      look.at(clock.now + KEEP_NS)
    })
    look.at(clock.now + KEEP_NS)
  }
  return endpoint
}
