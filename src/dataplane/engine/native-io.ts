/** The real I/O face: kernel sockets and TUN devices through the addon, watched by one poller per run. */
import { native } from '../native/native.ts'
import type { TunOpenOptions } from '../native/socket-calls.ts'
import { formatSocketAddress, remoteRecord, setScope, zoneOf } from './address.ts'
import type { MonotonicClock } from './clock.ts'
import { interfaceOfGroup, interfaceOfZone, linkOf, scopeOf } from './followed-interface.ts'
import { indexNow } from './interface-name.ts'
import { InterfaceSocket } from './interface-socket.ts'
import type {
  ConnectionEvents,
  ConnectionIo,
  ConnectionOptions,
  Io,
  IoEvents,
  ListenerIo,
  PacketIo,
  SocketAddress,
  UdpOptions,
} from './io.ts'
import { connectionFault, tunFault, udpFault } from './io-faults.ts'
import { LinkListener } from './link-listener.ts'
import { NativeConnection, NativeListener } from './native-connection.ts'
import { type NativeIoParts, type NativePacketIo, TunDevice, UdpSocket } from './native-packet-io.ts'
import { type NetworkOptions, type NetworkPlace, type NetworkPort, RunNetworks } from './network.ts'
import { OwnInterface } from './own-interface.ts'
import type { Packets } from './packets.ts'
import { RouteWatch } from './route-watch.ts'
import { isRouted, RoutedSocket } from './routed-socket.ts'
import { watchOpened } from './watch-opened.ts'

const COMMAND_TOKEN = 0

/** How often in turn what has brought packets is asked for more before everything else is looked at. */
const MAX_REPEATS = 4

/** What `open` gives; what it throws goes through `explain`. */
function opened(open: () => number, explain: (error: unknown) => unknown): number {
  try {
    return open()
  } catch (error) {
    throw explain(error)
  }
}

/** What is watched under a token. */
interface Watched {
  readable: () => void
  writable: () => void
}

export class NativeIo implements Io, NativeIoParts {
  readonly simulated = false
  readonly clock: MonotonicClock
  readonly poller: number
  /** Set once the packets exist, before anything is opened. */
  memory = -1
  private readonly owner: number
  private readonly command: number
  private readonly watched: (Watched | null)[] = [null]
  /** Tokens of what was closed, for what is opened next. */
  private readonly freeTokens: number[] = []
  private readonly ready = new Int32Array(64)
  /** Opened for the first who asks. */
  private routeWatch: RouteWatch | undefined
  /** How many of the first in `ready` brought packets when they were last asked, and how often in turn they were asked again. */
  private lively = 0
  private repeats = 0
  /** Packets were taken since it was last reset. */
  private taken = false
  private arrival: Float64Array = new Float64Array(0)
  private arrivalTimes = false
  readonly networks: RunNetworks
  /** By `networks.ports`. */
  private readonly readers: (IoEvents['readable'] | undefined)[] = []

  /** `place.event` is an eventfd that wakes the poller. */
  constructor(owner: number, place: NetworkPlace, clock: MonotonicClock) {
    this.owner = owner
    this.command = place.event
    this.clock = clock
    this.networks = new RunNetworks(place, () => {
      clock.tick()
      return clock.stamp()
    })
    this.poller = native.pollerOpen(owner)
    native.pollerAdd(this.poller, this.command, COMMAND_TOKEN)
  }

  attach(packets: Packets, arrivalTimes: boolean): void {
    this.arrivalTimes = arrivalTimes
    this.memory = native.memoryOpen(packets)
    this.arrival = packets.arrival
    this.networks.packets = packets
  }

  /**
   * The first `count` of `handles` were received. From now on the clock says that they have arrived: what a component counts from `now`, a delay for
   * one, never begins before the arrival of the packet it is counted for.
   */
  took(handles: Int32Array, count: number): void {
    if (count === 0) return
    this.taken = true
    const { arrival, clock } = this
    // With the kernel's times those of a train, which has none, may lie behind the one that follows it.
    for (let i = this.arrivalTimes ? 0 : count - 1; i < count; i++) clock.arrived(arrival[handles[i]])
  }

  remote(address: SocketAddress): Int32Array {
    return remoteRecord(address, scopeOf(address))
  }

  rescope(address: SocketAddress, record: Int32Array): void {
    const scope = indexNow(zoneOf(address.address))
    if (scope) setScope(record, scope)
  }

  udp(options: UdpOptions, events: IoEvents): PacketIo {
    for (const address of [options.local, options.remote]) if (address !== undefined) scopeOf(address)
    const zone = options.interface === undefined ? interfaceOfZone(options) : undefined
    if (zone !== undefined) {
      try {
        return this.openFollowing({ ...options, interface: zone }, zone, events)
      } catch (error) {
        // Before Linux 5.7 it takes a capability to bind to an interface by name: the zone is enough, but cannot be followed.
        if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error
      }
    }
    const { backend, mtu, grows } = options
    const connect = (remote: SocketAddress) => this.openUdp({ backend, mtu, grows, remote })
    const name = options.interface ?? interfaceOfGroup(options, connect)
    if (name !== undefined) return this.openFollowing(options, name, events)
    const handle = this.openUdp(options)
    const io = isRouted(options) ? new RoutedSocket(this, handle, options) : new UdpSocket(this, handle)
    return this.watch(io, handle, events)
  }

  /** A socket that follows the interface of that name. */
  private openFollowing(options: UdpOptions, name: string, events: IoEvents): PacketIo {
    const open = (changed: UdpOptions) => this.openUdp(changed)
    const index = native.interfaceIndex(name)
    const handle = open(options)
    const io = new InterfaceSocket(this, handle, options, { name, index }, open, this.nextToken)
    return this.watch(io, handle, events)
  }

  routes(changed: () => void): RouteWatch | undefined {
    try {
      this.routeWatch ??= this.watchRoutes()
    } catch {
      // A sandbox without netlink: who follows something looks now and then.
      return undefined
    }
    this.routeWatch.add(changed)
    return this.routeWatch
  }

  private watchRoutes(): RouteWatch {
    const handle = native.routesOpen(this.owner)
    const routeWatch = new RouteWatch(this.poller, handle)
    const readable = () => routeWatch.tell()
    this.add(handle, { readable, writable: readable })
    return routeWatch
  }

  private openUdp(options: UdpOptions): number {
    const { backend, local, remote, mtu } = options
    return opened(
      () =>
        native.udpOpen(this.owner, {
          backend,
          mtu,
          arrivalTimes: this.arrivalTimes,
          trains: !options.grows,
          family: local?.family ?? remote?.family ?? 4,
          ...(local && { local: { address: local.address, port: local.port } }),
          ...(remote && { remote: { address: remote.address, port: remote.port } }),
          ...(options.chosenPort === true && { chosenPort: true }),
          ...(options.interface !== undefined && { interface: options.interface }),
          ...(options.groupInterface !== undefined && { groupInterface: options.groupInterface }),
          ...(options.bufferBytes !== undefined && { bufferBytes: options.bufferBytes }),
          ...(options.multicastGroup !== undefined && { multicastGroup: options.multicastGroup }),
          ...(options.multicastTtl !== undefined && { multicastTtl: options.multicastTtl }),
        }),
      (error) => udpFault(error, options),
    )
  }

  tun(options: TunOpenOptions, events: IoEvents): PacketIo {
    const handle = opened(
      () => native.tunOpen(this.owner, options),
      (error) => tunFault(error, options),
    )
    const { name, found, ...state } = native.tunState(handle)
    if (!found) return this.watch(new OwnInterface(this, handle, name, options), handle, events)
    const io = new TunDevice(this, handle, name, options.kind, true)
    io.found = state
    return this.watch(io, handle, events)
  }

  network(options: NetworkOptions, { readable }: IoEvents): NetworkPort {
    this.readers.push(readable)
    return this.networks.open(options)
  }

  /** Lets the ports of simulated networks take what waits; false when nothing did, and then the next packet wakes the poller. */
  receiveFromNetworks(): boolean {
    const { ports } = this.networks
    let any = false
    for (let i = 0; i < ports.length; i++) {
      if (!ports[i].pending) continue
      any = true
      this.readers[i]?.()
    }
    return any
  }

  private watch(io: NativePacketIo, handle: number, { readable, writable }: IoEvents): PacketIo {
    this.add(handle, {
      readable: () => readable?.(),
      writable: () => {
        io.unblocked()
        writable?.()
      },
    })
    return io
  }

  /** Under which the next is watched. */
  private get nextToken(): number {
    return this.freeTokens.at(-1) ?? this.watched.length
  }

  private add(handle: number, watched: Watched): number {
    const token = this.nextToken
    watchOpened(this.poller, handle, token)
    this.freeTokens.pop()
    this.watched[token] = watched
    return token
  }

  /** What was watched under `token` is closed. */
  forget(token: number): void {
    this.watched[token] = null
    this.freeTokens.push(token)
  }

  listen(options: ConnectionOptions, acceptable: () => void, events: ConnectionEvents): ListenerIo {
    const { kind } = options
    const link = kind === 'tcp' ? linkOf(options) : undefined
    const handle = this.openListener(options)
    const token = this.add(handle, { readable: acceptable, writable: acceptable })
    const accept = (listener: number) => {
      const accepted = native.listenerAccept(this.owner, listener)
      return accepted < 0 ? accepted : this.connection(accepted, kind, events)
    }
    if (kind !== 'tcp') return new NativeListener(this, handle, token, options.name, accept)
    const own = native.tcpAddress(handle)
    const name = formatSocketAddress(own)
    if (link === undefined) return new NativeListener(this, handle, token, name, accept)
    const again = () => this.openListener({ ...options, port: own.port })
    return new LinkListener(this, handle, token, name, accept, link, again)
  }

  private openListener(options: ConnectionOptions): number {
    return opened(
      () => (options.kind === 'tcp' ? native.tcpListen(this.owner, options) : native.unixListen(this.owner, options)),
      (error) => connectionFault(error, options),
    )
  }

  connect(options: ConnectionOptions, events: ConnectionEvents): ConnectionIo {
    if (options.kind === 'tcp') scopeOf(options)
    const handle = opened(
      () => (options.kind === 'tcp' ? native.tcpConnect(this.owner, options) : native.unixConnect(this.owner, options)),
      (error) => connectionFault(error, options),
    )
    const connection = this.connection(handle, options.kind, events)
    connection.writing(true)
    return connection
  }

  private connection(handle: number, kind: 'tcp' | 'unix', { readable, writable }: ConnectionEvents): NativeConnection {
    const connection: NativeConnection = new NativeConnection(this, handle, kind)
    connection.token = this.add(handle, {
      readable: () => readable(connection),
      writable: () => {
        connection.unblocked()
        writable(connection)
      },
    })
    return connection
  }

  /** Sleeps until something is ready or `timeoutNs` are over (negative: no limit); returns how many things are ready. */
  wait(timeoutNs: number): number {
    // Under load what has just brought packets has more: asking it is cheaper than asking what is ready.
    if (timeoutNs === 0 && this.lively > 0 && this.repeats < MAX_REPEATS) {
      this.repeats++
      return this.lively
    }
    this.repeats = 0
    return native.pollerWait(this.poller, timeoutNs, this.ready)
  }

  /** Calls whoever waits for the first `count` ready tokens; clears the command event when it is among them. */
  dispatch(count: number): void {
    const { ready } = this
    let lively = 0
    for (let i = 0; i < count; i++) {
      const token = ready[i]
      if (token === COMMAND_TOKEN) {
        native.eventClear(this.command)
        continue
      }
      const entry = this.watched[token < 0 ? -token - 1 : token]
      if (!entry) continue
      if (token < 0) {
        entry.writable()
        continue
      }
      this.taken = false
      entry.readable()
      if (this.taken) ready[lively++] = token
    }
    this.lively = lively
  }

  detach(): void {
    if (this.memory >= 0) native.memoryClose(this.memory)
    this.memory = -1
  }
}
