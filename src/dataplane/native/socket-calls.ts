/** What the addon does with sockets, devices, events and what waits for them. */

/** UDP_GRO/UDP_SEGMENT (2), recvmmsg/sendmmsg (1), recvfrom/sendto one by one (0). */
export type UdpBackendCode = 0 | 1 | 2

interface UdpOpenOptions {
  /** `UdpBackend` of the configuration. */
  backend: UdpBackendCode
  /** Bound here; absent: an ephemeral port of `family`. */
  local?: { address: string; port: number }
  /** The system chose the port of `local` before: what is sent leaves from where the way begins, as it does at port 0, and not from where the peer was heard. */
  chosenPort?: boolean
  /** Connected to this; absent: unconnected, `udpSend` uses each packet's remote record. */
  remote?: { address: string; port: number }
  /** 4 or 6, used when neither address says. */
  family: 4 | 6
  /** SO_BINDTODEVICE. */
  interface?: string
  /** SO_RCVBUF and SO_SNDBUF, bytes (the FORCE twins are tried first). */
  bufferBytes?: number
  multicastGroup?: string
  /** The interface the group is joined on, and sent to by; absent: `interface`; with neither the kernel chooses. */
  groupInterface?: string
  multicastTtl?: number
  /** Longest datagram taken; longer ones are dropped and counted by `udpReceive`. */
  mtu: number
  /** Of the backend 2: packets that come alone carry the time at which the kernel took them in, not that of the call that brings them. */
  arrivalTimes?: boolean
  /** Of the backend 2: whether a train may stay in one piece, where `PacketMemory` has trains. Default true. */
  trains?: boolean
}

export interface TcpOptions {
  /** Numeric. */
  address: string
  port: number
  /** Packets travel as frames: u32 length, big-endian, 1 to 65,535, then as many bytes. Else the bytes are a stream without bounds. */
  framed: boolean
}

export interface UnixOptions {
  /** A path, or `@name` in the abstract namespace; 107 bytes at most. */
  name: string
  /** Longest packet taken; longer ones are dropped and counted. */
  mtu: number
}

export interface TunOpenOptions {
  /** 'tun' carries IP packets, 'tap' Ethernet frames. */
  kind: 'tun' | 'tap'
  name: string
  /** Addresses to put on the interface. */
  address: string
  /** Prefix length; from `netmask`. */
  prefix: number
  mtu: number
  defaultRoute: boolean
  /** IFF_VNET_HDR with checksum, TSO4/6 and USO offloads: GSO frames are split and GRO runs joined in the addon. */
  offload: boolean
}

/** A network interface as it is now. */
export interface InterfaceState {
  /** The errno of why nothing else of it could be found out, else 0. */
  error: number
  mtu: number
  up: boolean
  addresses: string[]
}

/**
 * What a UDP socket asks for in each direction when nothing else is said: room for the bursts of fast links, where the kernel's default holds three
 * GRO trains; it grants less to the unprivileged. Four TCP flows through a tunnel at 8 Gbit/s have more than 4 MiB waiting now and then.
 */
export const SOCKET_BUFFER_BYTES = 8 << 20

/** What has become of what an interface was given: it is there; it was gone and was put back, or put behind another's; negative: the errno of the refusal. */
export const KEPT = { there: 0, putBack: 1, putBehind: 2 } as const

interface Upkeep {
  /** What it is called now. */
  name: string
  /** It is in the network namespace of this process. */
  present: boolean
  up: boolean
  /** By `KEPT`, as `defaultRoute`; looked at only while `up`. */
  address: number
  defaultRoute: number
}

/** Counters a receive or send call adds to, and what its last errors were; a Float64Array of `IO_COUNTERS.length`. */
export const IO_COUNTERS = [
  'oversize', // datagrams longer than the mtu, dropped
  'noSlot', // datagrams dropped because no slot was free
  'socketErrors', // ECONNREFUSED and its like
  'sendErrors', // packets the kernel refused for good (EMSGSIZE, ENETUNREACH, EPERM, no remote address), consumed
  'sendBlocked', // times the kernel's buffer was full (EAGAIN/ENOBUFS): the packets stay with the caller
  'malformed', // frames a TUN device could not split, lengths that no frame of a connection has
  'receivedBytes', // of the packets that were taken
  'socketErrno', // the errno of the last of socketErrors
  'sendErrno', // the errno of the last of sendErrors of UDP sockets and TUN devices; EDESTADDRREQ, EAFNOSUPPORT: no remote address, or one the socket does not speak
] as const

export interface SocketCalls {
  /** eventfd: `eventSignal` from any thread makes the poller it was added to ready until `eventClear`. */
  eventOpen(owner: number): number
  eventSignal(event: number): void
  eventClear(event: number): void

  pollerOpen(owner: number): number
  /**
   * Watches a socket, device or event for reading under `token` (0..2^31-1). One poller each: a second one throws EEXIST.
   * A source whose last receive could not take all of a train is ready too, though the kernel has nothing more.
   */
  pollerAdd(poller: number, source: number, token: number): void
  pollerRemove(poller: number, source: number): void
  /** Also (or no longer) reports `source` when it can be written. */
  pollerWatchWrite(poller: number, source: number, on: boolean): void
  /** Reports `source` when it can be read, as it does from `pollerAdd` on, or no longer: then nothing of it but what is left to write. */
  pollerWatchRead(poller: number, source: number, on: boolean): void
  /**
   * Waits for readiness: `timeoutNs` < 0 without limit, 0 not at all, else that long (epoll_pwait2, timer slack 1 ns).
   * Writes up to `ready.length` tokens (256 at most) and returns how many. The thread cannot be terminated meanwhile: wake it
   * with an event. A token ready for writing only is written as `-token - 1`.
   */
  pollerWait(poller: number, timeoutNs: number, ready: Int32Array): number

  udpOpen(owner: number, options: UdpOpenOptions): number
  /** `{address, port, backend}` really bound and used. */
  udpAddress(socket: number): { address: string; port: number; backend: UdpBackendCode }
  /** Sets the size of the buffers in both directions, as `bufferBytes` of `udpOpen` does, and how many routers multicast datagrams may pass. */
  udpTune(socket: number, bufferBytes: number, multicastTtl: number): void
  /**
   * Ends the socket's membership in its `multicastGroup` on the interface that has or had this number, if there is one. The kernel counts members by that
   * number: a membership of an interface that has gone, left or closed only when the number is there again, takes away that of another socket.
   */
  udpLeave(socket: number, interfaceIndex: number): void
  /**
   * Of a socket that is connected and was given no particular address: looks whether the kernel would choose another address for it now, as it does
   * where the old one is gone or another route leads to the peer, and connects it anew then, at its port where that is possible. What waits in the
   * socket stays, and none but the peer is heard in between. 0: nothing to do. 1: to be called again before long, since it was connected anew, and a
   * filter keeps others out until then, or since nothing could be found out. Negative: the errno of why nothing leads to the peer now; the socket stays
   * as it is.
   */
  udpFollow(socket: number): number
  /** Name of the interface through which what a connected socket sends leaves the machine now, by its routes and their rules; '' where that is not known. */
  udpLeavesBy(socket: number): string
  /**
   * How many datagrams that came to the socket the kernel has dropped, since its buffer was full or their checksum was wrong, modulo 2³²; -1 where it does
   * not say (before Linux 4.12). A train that it has joined (UDP_GRO) counts once, and
   * what others than the peer send in the moment in which `udpFollow` connects the socket anew is among them.
   */
  udpDropped(socket: number): number
  /**
   * Readable, for a poller, once an address, a route, a rule of routing or an interface of the machine has changed, until `routesClear`. Throws where
   * the system does not tell.
   */
  routesOpen(owner: number): number
  routesClear(routes: number): void
  /** The kernel's number of the interface of that name (at most 15 bytes), 0 where there is none. Throws where that cannot be found out for want of a descriptor. */
  interfaceIndex(name: string): number
  /** What the interface of that number is called, '' where there is none. Throws as `interfaceIndex` does. */
  interfaceName(index: number): string
  /**
   * Receives up to `max` datagrams into fresh slots; writes their handles to `handles[0..]`, their `arrival`, which is the time
   * read after the kernel handed them over less `origin` (of `now()`) and never falls within `handles`, their remote record, and
   * that no client id is known. With LINUX one call takes several GRO trains; `max` is at least 64 then. Returns how many packets
   * were taken; more may wait, and then the socket is still readable. Never blocks.
   */
  udpReceive(
    socket: number,
    memory: number,
    handles: Int32Array,
    max: number,
    origin: number,
    counters: Float64Array,
  ): number
  /**
   * Sends `handles[from..from+count)` and frees the slots of what was sent or refused for good; returns how many that
   * were, in order. Fewer than `count`: the kernel's buffer is full, the rest still belongs to the caller. With LINUX,
   * neighbours of equal size (the last may be shorter) and equal destination leave as one UDP_SEGMENT message.
   */
  udpSend(
    socket: number,
    memory: number,
    handles: Int32Array,
    from: number,
    count: number,
    counters: Float64Array,
  ): number

  /** Throws EPERM without CAP_NET_ADMIN. The interface goes away when it is closed, unless it was there before, to last. */
  tunOpen(owner: number, options: TunOpenOptions): number
  /** `found`: somebody else had made it; then nothing of the options but `offload` was applied, and it stays when it is closed. */
  tunState(device: number): { name: string; found: boolean } & InterfaceState
  /**
   * Looks whether an interface that `tunOpen` made is up and still has its address and default route, and gives it again what it lacks. Null of one that
   * was found, and where nothing could be found out. A few system calls: no table is read, and no lock of the kernel's waited for as
   * long as nothing is missing.
   */
  tunKeep(device: number): Upkeep | null
  /**
   * How many packets of the machine's the kernel has dropped at the interface since that was made; -1 where that is not known, while the interface is in
   * another network namespace for one. A piece of several packets counts once.
   */
  tunDropped(device: number): number
  /** As `udpReceive`. */
  tunReceive(
    device: number,
    memory: number,
    handles: Int32Array,
    max: number,
    origin: number,
    counters: Float64Array,
  ): number
  tunSend(
    device: number,
    memory: number,
    handles: Int32Array,
    from: number,
    count: number,
    counters: Float64Array,
  ): number

  /** Bound to the address, port 0 for any, and listening; [::] takes IPv4 too. */
  tcpListen(owner: number, options: TcpOptions): number
  /** Begins to connect and does not wait: writable (or broken) is when `connectionConnected` tells how that went. */
  tcpConnect(owner: number, options: TcpOptions): number
  /** The own address of a listener or connection. */
  tcpAddress(socket: number): { address: string; port: number }
  /**
   * SOCK_SEQPACKET. A path is made with mode 0600 and taken away at the close; a socket file that nobody listens at, as a killed
   * process leaves it, is replaced. EADDRINUSE where somebody does, or the path is no socket.
   */
  unixListen(owner: number, options: UnixOptions): number
  /** `bind`: the abstract name of this end. Connected at once; throws ENOENT or ECONNREFUSED where nobody listens, EAGAIN where too many wait. */
  unixConnect(owner: number, options: UnixOptions & { bind?: string }): number
  /** Name of the other end ('' where it has none) and the user it ran as when it connected or listened (SO_PEERCRED). */
  unixPeer(connection: number): { name: string; user: number }
  /** A connection that waits, or `-errno`: EAGAIN where none does. Throws EMFILE when the table of descriptors is full. */
  listenerAccept(owner: number, listener: number): number
  /** 0 once connected, else `-errno`: EINPROGRESS while that takes its time, ECONNREFUSED of a connection to itself, too. */
  connectionConnected(connection: number): number
  /** Writes the peer's remote record, all zero on a Unix socket. */
  connectionRemote(connection: number, record: Uint8Array): void
  /** The close to come resets a TCP connection, that the peer does not take what it got for the whole. */
  connectionReset(connection: number): void
  /**
   * Receives up to `max` packets, annotated with the peer's remote record, as `udpReceive` does: pieces of a stream of at most 1,200
   * bytes, frames, or the packets of a Unix socket. A stream is read only into free slots; frames and packets without one are counted.
   * Returns how many; when there are none 0 as long as some may come, then `-errno`: ENODATA is the peer's end of the stream, EPROTO a
   * length that no frame has. Never throws over what the network does.
   */
  connectionReceive(
    connection: number,
    memory: number,
    handles: Int32Array,
    max: number,
    origin: number,
    counters: Float64Array,
  ): number
  /**
   * Sends `handles[from..from+count)` as `udpSend` does; returns how many were consumed, or `-errno` when the connection is over and none
   * was. Part of the first that was not consumed may have left: the next call begins with the same packet.
   */
  connectionSend(
    connection: number,
    memory: number,
    handles: Int32Array,
    from: number,
    count: number,
    counters: Float64Array,
  ): number
}
