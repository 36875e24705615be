/** The I/O face of the data plane: what components may open; real (`native-io.ts`) or in memory (`simulated-io.ts`). */
import type { InterfaceState, TunOpenOptions, UdpBackendCode } from '../native/native.ts'
import type { Batch } from './batch.ts'
import type { Log } from './component.ts'

export interface SocketAddress {
  address: string
  port: number
  family: 4 | 6
}

export interface UdpOptions {
  backend: UdpBackendCode
  local?: SocketAddress
  /** Connected to; absent: every packet goes to its remote annotation. */
  remote?: SocketAddress
  interface?: string
  bufferBytes?: number
  multicastGroup?: string
  multicastTtl?: number
  mtu: number
}

/** A datagram socket or a TUN device as components see it. */
export interface PacketIo {
  /** Address bound, or the interface's name. */
  readonly name: string
  /** A TUN interface that was there before: as it was found, and as it stays. */
  readonly found?: InterfaceState | undefined
  /** The backend in use ('LINUX', 'simulated', …), for the log. */
  readonly backend: string
  /** By `IO_COUNTERS`. */
  readonly counters: Float64Array
  /** Adds what has arrived to `batch`, with arrival time and remote address. Never blocks. */
  receive(batch: Batch): void
  /**
   * Sends `handles[from..from+count)`, in order; returns how many were consumed (sent or refused for good, their slots
   * released). The rest still belongs to the caller, whose `writable` is called once there is room.
   */
  send(handles: Int32Array, from: number, count: number): number
  /**
   * There for a socket bound to an interface, and to be called now and then: when the interface has been made anew, the socket
   * is bound to the new one. True when that has happened: `name` may be another then. Logs what becomes of the interface.
   */
  follow?(log: Log): boolean
  close(): void
}

export interface IoEvents {
  /** Something can be received; called once a breath while that is so. */
  readable?: () => void
  /** There is room again after `send` consumed less than it was given. */
  writable?: () => void
}

/** Opening fails with an Error that names address or interface and the cause, and carries `code` ('EADDRINUSE', 'EPERM'). */
export interface Io {
  readonly simulated: boolean
  udp(options: UdpOptions, events: IoEvents): PacketIo
  tun(options: TunOpenOptions, events: IoEvents): PacketIo
}
