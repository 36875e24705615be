/** A UDP socket as an endpoint: whom packets go to, and whose datagrams are heard. */

import { isIPv4, isIPv6 } from '../../../text/ip-family.ts'
import { ipv6Bytes } from '../../../text/ipv6-bytes.ts'
import {
  formatRemote,
  formatSocketAddress,
  isAnyAddress,
  parseSocketAddress,
  portOfAddress,
  remoteRecord,
} from '../../engine/address.ts'
import type { Batch } from '../../engine/batch.ts'
import type { RunClock } from '../../engine/clock.ts'
import type { Fault } from '../../engine/component.ts'
import type { Io, SocketAddress } from '../../engine/io.ts'
import type { Log } from '../../engine/log.ts'
import { counter, drop, gauge, type Metrics } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import { Enumeration } from '../../engine/schema.ts'
import type { Timer } from '../../engine/timers.ts'
import { REMOTE_BYTES } from '../../native/native.ts'
import { IO_COUNTERS, SOCKET_BUFFER_BYTES, type UdpBackendCode } from '../../native/socket-calls.ts'
import { datagramMtu } from './datagram-mtu.ts'
import { ENDPOINT_METRICS, Endpoint } from './endpoint.ts'
import { FOLLOW_NS, FollowedRecord } from './followed-record.ts'
import { OwnTunnels } from './own-tunnels.ts'
import { TELL_AGAIN_NS, ToldErrors } from './told-errors.ts'

/** For the pages of what sends from sockets that have no one peer. */
export const UNHEARD_ERRORS =
  'What the network reports of packets that were sent, such as that nobody listens at their port (ICMP), Linux tells only a socket with one peer: a udp with remote_address counts it in socket_errors and says it in the run log; udp without it, udp_local and udp_remote, whose packets may have been given their address by peer_writer, never hear of it.'

/** For the pages of datagram sockets: what the kernel drops. */
export const UNREAD_DATAGRAMS =
  'What comes while the buffer of the socket is full, since the run was kept from reading, the kernel drops: it is asked once a second at most, and at the end of the run, how many these were, which `kernel_dropped_packets` counts, and the run log says so, the first time and once a minute while it goes on. Datagrams that the kernel has joined to one train (UDP_GRO) it drops, and counts, as one; a datagram whose checksum is wrong is among them. What waits unread when the socket is closed is in no figure.'

/** For the pages of datagram sockets. */
export const PATH_MTU =
  'A datagram longer than the path MTU (a tunnel of the provider on the path, say) is fragmented by routers over IPv4: none is sent with DF (do not fragment), and one is lost with any of its fragments. Over IPv6 routers drop it and say so (ICMPv6 Packet Too Big), whereupon the kernel fragments; where a firewall drops that too, long datagrams are lost while short ones get through, and nothing tells of it. `ping -M do -s 1400 PEER`, with other sizes, finds the path MTU: 28 bytes more than the largest size that passes over IPv4, 48 over IPv6. The MTU of the tun, or of whatever packets come from, is to be smaller by the headers that come on top.'

/** What makes the buffer of a socket larger that has no setting for it: the kernel grants the unprivileged less than is asked for. */
export const LARGER_LIMIT =
  'have the kernel grant the whole buffer of 8 MiB that is asked for, with CAP_NET_ADMIN or a larger net.core.rmem_max (sysctl)'

export const DATAGRAM_METRICS = {
  ...ENDPOINT_METRICS,
  unaddressed_packets: drop('Packets to send that had no address to go to.'),
  ignored_packets: drop('Datagrams heard from somebody else than the peer, or with no output to go to.'),
  socket_errors: counter(
    'Errors the network reported, such as a refused connection (ICMP); the log says which. Linux reports them to a socket with one peer only, that of a udp with remote_address.',
  ),
  local_port: gauge('Port the socket is bound to.'),
} as const

const UDP_BACKENDS = { GENERIC: 0, LINUX_NO_GRO: 1, LINUX: 2 } as const

export const UdpBackend = () =>
  Enumeration(
    'How the kernel is talked to: GENERIC one datagram a call, LINUX_NO_GRO many datagrams a call (recvmmsg, sendmmsg), LINUX also joins datagrams of equal size (UDP_GRO, UDP_SEGMENT) where the kernel can.',
    'UdpBackend',
    UDP_BACKENDS,
    { default: 'LINUX' },
  )

/** For the pages of what has an address. */
export const HOST_NAMES =
  'A host name in place of an IP address is looked up once, when the run starts, with the resolver of the system; the run log says which address it has become: the first that fits the ' +
  'other address of the socket. A name without one fails the start. A simulation takes addresses only.'

/** For the pages of the sockets that answer. */
export const SEVERAL_CLIENTS =
  'Several clients: a socket that answers whoever sent (udp_local; udp without remote_address and lock_to_first_peer) serves any number at once, as long as the answers are ' +
  'made on this machine out of the packets that they answer, which keep the address they came from. Packets of another origin, such as ' +
  'IP packets from a TUN device, carry no address: they need a peer_writer for one client, or the peer_router, which knows clients by ' +
  'their inner IP addresses.'

/**
 * Most bytes of payload that every packet of a socket can have, whoever it goes to; `address` is the peer's or its own as configured: one that
 * is none, or a host name, may be of either family.
 */
export function datagramLimit(mtu: number | undefined, address: string | undefined): number {
  const known = address === undefined ? null : parseSocketAddress(address)
  return datagramMtu(mtu, known?.family === 4 ? 4 : 6)
}

/** Whether an IP address is one of a group (224.0.0.0/4, ff00::/8); false also for what is no address. */
export function isMulticast(address: string): boolean {
  if (isIPv6(address)) return ipv6Bytes(address)[0] === 0xff
  if (!isIPv4(address)) return false
  return Number(address.split('.')[0]) >> 4 === 14
}

/** The address without a port, as bytes that are equal where addresses are, however they are written. */
function addressBytes(address: string): string {
  return String(remoteRecord({ address, port: 0, family: address.includes(':') ? 6 : 4 }))
}

/** What to warn of where the address in the field at `pointer` is that of a group and the socket joins another, `joined`, or none: it hears nothing. */
export function unjoinedGroup(pointer: string, bound: string | undefined, joined?: string): Fault[] {
  const address = bound === undefined ? undefined : parseSocketAddress(bound)?.address
  if (address === undefined || !isMulticast(address)) return []
  if (joined !== undefined && addressBytes(joined) === addressBytes(address)) return []
  const what = `${address} is the address of a multicast group that the socket does not join, so nothing comes in`
  return [{ pointer, message: `${what}; udp joins the group that multicast_group names` }]
}

/**
 * What to warn of where a socket joins a group and hears nothing of it: to one that is at an address of the machine, which connecting it to a peer makes of
 * any, Linux gives only what is sent to that.
 */
export function unheardGroup(group: string, local: string | undefined, remote: string | undefined): Fault[] {
  const address = local === undefined ? undefined : parseSocketAddress(local)?.address
  if (address === undefined || isMulticast(address)) return []
  const peer = remote === undefined ? undefined : parseSocketAddress(remote)?.address
  const isConnected = peer !== undefined && !isMulticast(peer)
  if (isAnyAddress(address) && !isConnected) return []
  const why = isAnyAddress(address)
    ? `with remote_address ${remote} the socket is at the address it sends from`
    : `the socket is at ${address}`
  const port = portOfAddress(local as string) as number
  const cure = `make local_address that of the group, ${formatSocketAddress({ address: group, port })}, and say with interface where to join it`
  return [
    {
      pointer: '/multicast_group',
      message: `${why} and gets only what is sent to that, nothing of the group: ${cure}`,
    },
  ]
}

/** What the kernel gives datagrams to a group when nothing else is said. */
const MULTICAST_TTL = 1

const SOCKET_ERRORS = IO_COUNTERS.indexOf('socketErrors')
const SOCKET_ERRNO = IO_COUNTERS.indexOf('socketErrno')
const SEND_ERRNO = IO_COUNTERS.indexOf('sendErrno')
const SEND_ERRORS = IO_COUNTERS.indexOf('sendErrors')

export interface DatagramOptions {
  mtu: number | undefined
  local: SocketAddress | undefined
  /** Every packet goes here; absent: to its remote annotation. */
  remote?: SocketAddress | undefined
  /** Without `remote`: the first address heard becomes the peer, the only one heard and answered. */
  lock?: boolean
  backend?: keyof typeof UDP_BACKENDS
  interface?: string | undefined
  bufferBytes?: number | undefined
  multicastGroup?: string | undefined
  multicastTtl?: number | undefined
  /** What makes the buffer of the socket larger. */
  largerBuffer: string
}

/** The parts of a component's context that a socket needs. */
export interface DatagramContext {
  packets: Packets
  clock: RunClock
  io: Io
  timer(fire: () => void): Timer
  shared<T>(name: string, make: () => T): T
  /** Whether packets that leave the component `name` reach this one inside the graph. */
  follows(name: string): boolean
  grows(): boolean
  log: Log
  metrics: Metrics<typeof DATAGRAM_METRICS>
}

/** The families an unconnected socket speaks: bound to `::` it is both. */
function familyOf(local: SocketAddress | undefined): 0 | 4 | 6 {
  if (!local) return 4
  return local.family === 6 && isAnyAddress(local.address) ? 0 : local.family
}

export class DatagramEndpoint extends Endpoint {
  private readonly counts: Metrics<typeof DATAGRAM_METRICS>
  /** Packets carry their own address into the kernel. */
  private readonly connected: boolean
  private lock: boolean
  /** Remote record of whom all packets go to. */
  private peer: Int32Array | null
  private readonly mtuV6: number
  private readonly reports: ToldErrors
  /** Packets that the kernel had refused when last looked. */
  private refusedSoFar = 0
  private readonly clock: RunClock
  /** From when on the log says again who is ignored. */
  private tellAgain = 0
  /** A packet came that nobody had given an address. */
  private unaddressed = false
  private isUnaddressedTold = false

  constructor(context: DatagramContext, outlet: Outlet | undefined, options: DatagramOptions) {
    const { packets, clock, io, timer, grows, log, metrics } = context
    const { local, remote, multicastGroup, multicastTtl, bufferBytes } = options
    // A socket connected to a group would hear nobody: members answer from their own addresses.
    const connected = remote !== undefined && !isMulticast(remote.address)
    const mtu = datagramMtu(options.mtu, remote ? remote.family : familyOf(local))
    super({ packets, clock, timer, log, metrics, outlet, mtu, unreadCure: options.largerBuffer }, (events) =>
      io.udp(
        {
          backend: UDP_BACKENDS[options.backend ?? 'LINUX'] as UdpBackendCode,
          mtu,
          grows: grows(),
          ...(local && { local }),
          ...(!local && remote && !connected && { local: { address: anyOf(remote), port: 0, family: remote.family } }),
          ...(connected && { remote }),
          ...(options.interface !== undefined && { interface: options.interface }),
          bufferBytes: bufferBytes ?? SOCKET_BUFFER_BYTES,
          ...(multicastGroup !== undefined && { multicastGroup }),
          ...(multicastTtl !== undefined && { multicastTtl }),
        },
        events,
      ),
    )
    this.counts = metrics
    this.clock = clock
    this.reports = new ToldErrors(clock, log, 'the network reports errors of packets that were sent', 'socket_errors')
    this.connected = connected
    this.lock = options.lock === true && !remote
    this.peer = remote && !connected ? new FollowedRecord(remote, { io, clock, timer }).record : null
    this.mtuV6 = datagramMtu(options.mtu, 6)
    const { name, backend } = this.io
    metrics.local_port.set(portOf(name))
    log('INFO', `bound to ${name} (${backend})`, { address: name, backend })
    const tunnels = connected ? new OwnTunnels(context, remote) : undefined
    const follow = () => this.follow(context, remote, tunnels)
    if (this.io.follow) follow()
    else if (tunnels && this.io.leavesBy) {
      // Only now that all is open it is known whether the run has interfaces.
      timer(() => {
        if (tunnels.possible) follow()
      }).at(clock.now)
    }
  }

  /**
   * Has the socket follow its interface and the way to `peer`, and tells if that leads through one of `tunnels`: looks a while after something has changed,
   * and again and again while something is wanting.
   */
  private follow(
    { io, clock, timer }: DatagramContext,
    peer: SocketAddress | undefined,
    tunnels: OwnTunnels | undefined,
  ): void {
    const look = timer(() => {
      routes?.again()
      const { name, cutOff = 0 } = this.io
      const well = this.io.follow?.(this.log) ?? true
      if (this.io.name !== name) this.counts.local_port.set(portOf(this.io.name))
      if (this.io.name !== name || (this.io.cutOff ?? 0) !== cutOff) this.tellWay(peer)
      tunnels?.look(this.io)
      if (!well || !routes) look.at(clock.now + FOLLOW_NS)
    })
    const routes = io.routes?.(() => {
      if (!look.armed) look.at(clock.now + FOLLOW_NS)
    })
    // What has changed since the socket was opened.
    look.at(clock.now + FOLLOW_NS)
  }

  /** The way to `peer` is another, or there is none any more, or one again. */
  private tellWay(peer: SocketAddress | undefined): void {
    const { cutOff = 0 } = this.io
    if (cutOff === 0) {
      // What was refused until now belongs to what was told.
      this.observe()
      this.refusals.forget()
    } else if (peer) {
      const remote = formatSocketAddress(peer)
      this.refusals.tell(cutOff, `no way leads to ${remote}`, 'nothing gets there until one does', { remote })
    }
  }

  /** Takes over what can be changed of an open socket. A lock that is set locks to the first peer heard from then on. */
  tune({
    bufferBytes,
    multicastTtl,
    lock = false,
  }: Pick<DatagramOptions, 'bufferBytes' | 'multicastTtl' | 'lock'>): void {
    this.io.tune?.({ bufferBytes: bufferBytes ?? SOCKET_BUFFER_BYTES, multicastTtl: multicastTtl ?? MULTICAST_TTL })
    if (lock === this.lock) return
    this.lock = lock
    this.peer = null
    this.tellAgain = 0
  }

  /** Addresses a batch's packets and queues them for sending. */
  input(batch: Batch): void {
    if (this.peer) this.addressAll(batch, this.peer)
    else if (!this.connected) this.checkAddresses(batch)
    this.enqueue(batch)
  }

  private addressAll(batch: Batch, peer: Int32Array): void {
    const { packets, mtuV6 } = this
    const { handles, length: count } = batch
    let kept = 0
    for (let i = 0; i < count; i++) {
      const packet = handles[i]
      packets.setRemote(packet, peer)
      if (packets.length[packet] > mtuV6 && packets.remote[packet * REMOTE_BYTES] === 6)
        this.dropOversize(packet, mtuV6)
      else handles[kept++] = packet
    }
    batch.length = kept
  }

  /** Keeps the packets that know where to go. */
  private checkAddresses(batch: Batch): void {
    const { packets, mtuV6, counts, lock } = this
    const { handles, length: count } = batch
    let kept = 0
    for (let i = 0; i < count; i++) {
      const packet = handles[i]
      const family = lock ? 0 : packets.remote[packet * REMOTE_BYTES]
      if (family === 4 || (family === 6 && packets.length[packet] <= mtuV6)) handles[kept++] = packet
      else if (family === 6) this.dropOversize(packet, mtuV6)
      else {
        packets.release(packet)
        counts.unaddressed_packets.add(1)
        // With a lock it is that nobody has been heard yet.
        if (!lock) this.unaddressed = true
      }
    }
    batch.length = kept
  }

  protected override accept(batch: Batch): void {
    if (!this.lock) return
    const { packets } = this
    const { handles, length: count } = batch
    if (!this.peer) {
      this.peer = new Int32Array(REMOTE_BYTES / 4)
      packets.readRemote(handles[0], this.peer)
    }
    let kept = 0
    for (let i = 0; i < count; i++) {
      if (packets.remoteIs(handles[i], this.peer)) handles[kept++] = handles[i]
      else {
        if (this.clock.now >= this.tellAgain) {
          const first = `it is set, and ${formatRemote(this.peer)} was first`
          const cure = 'if the peer has moved, set it to false and back; in place of it a peer_router follows who moves'
          this.tellIgnored(handles[i], 'lock_to_first_peer', `${first}; ${cure}`)
        }
        batch.discard(handles[i])
      }
    }
    if (kept < count) this.counts.ignored_packets.add(count - kept)
    batch.length = kept
  }

  /** Says who is not heard and which setting is why, and has the log say it again in a minute at the earliest. */
  private tellIgnored(packet: number, setting: string, why: string): void {
    this.tellAgain = this.clock.now + TELL_AGAIN_NS
    const record = new Int32Array(REMOTE_BYTES / 4)
    this.packets.readRemote(packet, record)
    const address = formatRemote(record)
    const message = `ignores datagrams from ${address}, and from whoever else sends, because of ${setting}: ${why}`
    this.log('WARN', message, { address, setting })
  }

  protected override unread(batch: Batch): void {
    if (this.clock.now >= this.tellAgain) {
      this.tellIgnored(batch.handles[0], 'output', 'it is not set, so nobody reads what comes in')
      // Nothing that happens while it runs changes that.
      this.tellAgain = Number.POSITIVE_INFINITY
    }
    this.counts.ignored_packets.add(batch.length)
    super.unread(batch)
  }

  override observe(): void {
    super.observe()
    const { counters } = this.io
    const errno = counters[SOCKET_ERRNO]
    // Of a packet without a route the kernel says so twice, and refuses it the second time: that is told.
    const isRefusal = errno === counters[SEND_ERRNO] && counters[SEND_ERRORS] > this.refusedSoFar
    this.refusedSoFar = counters[SEND_ERRORS]
    this.reports.look(counters[SOCKET_ERRORS], isRefusal ? 0 : errno)
    this.counts.socket_errors.add(this.grown(SOCKET_ERRORS))
    if (this.unaddressed && !this.isUnaddressedTold) this.tellUnaddressed()
  }

  /** Once in a run: a tunnel end that answers whoever sent, and does not know who that was, looks like one whose peer is not there. */
  private tellUnaddressed(): void {
    this.isUnaddressedTold = true
    const what = 'packets have no address to go to and are dropped, counted as unaddressed_packets'
    const why = 'this socket has no remote_address, and they are no answers to what a socket of the run has heard'
    const cure = 'a peer_writer in front of it gives them one, a peer_router those of its peers'
    this.log('WARN', `${what}: ${why}; ${cure}`, {})
  }
}

const ANY_V6: SocketAddress = { address: '::', port: 0, family: 6 }
const ANY_V4: SocketAddress = { address: '0.0.0.0', port: 0, family: 4 }

/** Opens a socket at a port of the system's choice that serves IPv4 and IPv6; on a machine without IPv6, IPv4 only. */
export function openForBothFamilies(open: (local: SocketAddress) => DatagramEndpoint): DatagramEndpoint {
  try {
    return open(ANY_V6)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EAFNOSUPPORT' && code !== 'EADDRNOTAVAIL') throw error
    return open(ANY_V4)
  }
}

function portOf(name: string): number {
  return Number(name.slice(name.lastIndexOf(':') + 1))
}

function anyOf({ family }: SocketAddress): string {
  return family === 6 ? '::' : '0.0.0.0'
}
