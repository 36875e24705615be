/** The I/O face of the data plane: what components may open; real (`native-io.ts`) or in memory (`simulated-io.ts`). */
import type { InterfaceState, TcpOptions, TunOpenOptions, UdpBackendCode, UnixOptions } from '../native/socket-calls.ts'
import type { Batch } from './batch.ts'
import type { Log } from './log.ts'
import type { NetworkOptions, NetworkPort } from './network.ts'

export interface SocketAddress {
  address: string
  port: number
  family: 4 | 6
}

/** What can be changed of an open socket. */
export interface UdpTuning {
  bufferBytes: number
  multicastTtl: number
}

export interface UdpOptions {
  backend: UdpBackendCode
  local?: SocketAddress
  /** The port of `local` is one that the system chose before: the socket is as one for which it chooses. */
  chosenPort?: boolean
  /** Connected to; absent: every packet goes to its remote annotation. */
  remote?: SocketAddress
  interface?: string
  bufferBytes?: number
  multicastGroup?: string
  /** The interface to join the group on; absent: `interface`, or the one that routes to the group leave by. */
  groupInterface?: string
  multicastTtl?: number
  mtu: number
  /** Packets grow on their way: each is better off in a slot, where it has room. */
  grows: boolean
}

/** A datagram socket or a TUN device as components see it. */
export interface PacketIo {
  /** Address bound, or the interface's name. */
  readonly name: string
  /** A TUN interface that was there before: as it was found, and as it stays. */
  readonly found?: InterfaceState | undefined
  /** Another interface that had the address of this one, which was made, in a network too. */
  readonly alsoAt?: string | undefined
  /** The backend in use ('LINUX', 'simulated', …), for the log. */
  readonly backend: string
  /** By `IO_COUNTERS`. */
  readonly counters: Float64Array
  /** Adds what has arrived to `batch`, with arrival time and remote address, and its bytes to those of the batch. Never blocks. */
  receive(batch: Batch): void
  /**
   * Sends `handles[from..from+count)`, in order; returns how many were consumed (sent or refused for good, their slots
   * released). The rest still belongs to the caller, whose `writable` is called once there is room.
   */
  send(handles: Int32Array, from: number, count: number): number
  /**
   * There for a socket that depends on an interface or on the way to its peer, and to be called when these may have changed: when the interface has been
   * made anew, the socket is bound to the new one; where the way to the peer begins at another address, it is at that. `name` may be another then.
   * There for an interface that the run made, too: what it was given and has lost it gets again. Logs what becomes of them. False while something is
   * wanting: to be called again before long.
   */
  follow?(log: Log): boolean
  /** Of a connected socket: the errno of why nothing led to its peer when `follow` last looked; 0: something does. */
  readonly cutOff?: number
  /** There for a UDP socket of the system's: the interface through which what it sends to the peer it is connected to leaves the machine; '' where not known. */
  leavesBy?(): string
  /** There for a UDP socket and an interface of the system's: how many packets the kernel has dropped since it was opened, before they were read. */
  kernelDropped?(): number
  /** There for a UDP socket of the system's. */
  tune?(tuning: UdpTuning): void
  close(): void
}

export interface IoEvents {
  /** Something can be received; called once a breath while that is so. */
  readable?: () => void
  /** There is room again after `send` consumed less than it was given. */
  writable?: () => void
}

/** What a listener listens at, and a connection connects to. */
export type ConnectionOptions =
  | ({ kind: 'tcp' } & TcpOptions)
  /** `bind`: the abstract name of the connecting end. */
  | ({ kind: 'unix' } & UnixOptions & { bind?: string })

/** One TCP connection, or one of a Unix socket, as components see it. */
export interface ConnectionIo {
  /** Address of the other end, or its name on a Unix socket ('' where it has none). */
  readonly name: string
  /** Remote record that received packets carry; all zero on a Unix socket. */
  readonly record: Int32Array
  /** User that the other end of a Unix socket runs as; -1 of TCP. */
  readonly user: number
  /** By `IO_COUNTERS`. */
  readonly counters: Float64Array
  /** The component's own number for it. */
  tag: number
  /** 0 once connected, else the negative errno: EINPROGRESS while that takes its time. */
  connected(): number
  /**
   * Adds up to `max` packets of what has arrived to the empty `batch`; returns their number. When there are none: 0 while some may come, a
   * negative errno once none will, ENODATA where the other end has said all it had to. Without free slots a stream waits.
   */
  receive(batch: Batch, max: number): number
  /** As `PacketIo.send`; a negative errno when nothing can be sent any more. Part of the first packet left may be on its way. */
  send(handles: Int32Array, from: number, count: number): number
  /** Whether `readable` is to be called. */
  reading(on: boolean): void
  /** Whether `writable` is to be called, besides when `send` has consumed less than it was given. */
  writing(on: boolean): void
  /** With `reset` a TCP connection is broken off, that its other end does not take what it got for the whole. */
  close(reset: boolean): void
}

export interface ListenerIo {
  /** Address or name that it listens at. */
  readonly name: string
  /** Next of the connections that wait; null when none does. Throws when the system gives none, for want of room for it or as it forbids it: an error with `code` and `errno`. */
  accept(): ConnectionIo | null
  /** Whether `acceptable` is to be called. */
  accepting(on: boolean): void
  /** There at an address of one link: looks whether its interface has been made anew, and listens there then; says so. */
  follow?(log: Log): void
  close(): void
}

export interface ConnectionEvents {
  /** Something can be received, or the other end has gone; called once a breath while that is so. */
  readable: (connection: ConnectionIo) => void
  /** There is room again, or connecting has come to an end. */
  writable: (connection: ConnectionIo) => void
}

/** Opening fails with an Error that names address or interface and the cause, and carries `code` ('EADDRINUSE', 'EPERM'). */
export interface Io {
  readonly simulated: boolean
  /** The remote record of an address, in its zone where it names one (`fe80::1%eth0`); throws when there is no such interface. */
  remote(address: SocketAddress): Int32Array
  /** Puts into the record of an address in a zone the number that the interface has now, if there is one. Absent where there are no interfaces. */
  rescope?(address: SocketAddress, record: Int32Array): void
  udp(options: UdpOptions, events: IoEvents): PacketIo
  /** Calls `changed` when addresses, routes or interfaces of the machine have changed, once for all that does until `again`. Absent, or undefined: nobody tells. */
  routes?(changed: () => void): { again(): void } | undefined
  tun(options: TunOpenOptions, events: IoEvents): PacketIo
  /** `acceptable`: a connection waits; called once a breath while that is so. */
  listen(options: ConnectionOptions, acceptable: () => void, events: ConnectionEvents): ListenerIo
  /** Begins to connect: `writable` is called when that has an end. */
  connect(options: ConnectionOptions, events: ConnectionEvents): ConnectionIo
  /** A port on a simulated network; `readable` is called once a breath while packets wait at it. */
  network(options: NetworkOptions, events: IoEvents): NetworkPort
}
