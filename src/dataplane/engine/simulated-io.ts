/** The I/O face of a simulation: sockets are queues in memory, joined by their addresses; devices swallow what they get. */

import { REMOTE_BYTES } from '../native/native.ts'
import { IO_COUNTERS, type TunOpenOptions } from '../native/socket-calls.ts'
import { formatRemote, formatSocketAddress, remoteRecord } from './address.ts'
import { BATCH_CAPACITY, type Batch } from './batch.ts'
import type { RunClock } from './clock.ts'
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
import { type NetworkOptions, type NetworkPlace, type NetworkPort, RunNetworks } from './network.ts'
import type { Packets } from './packets.ts'
import { SimulatedConnections } from './simulated-connection.ts'

const FIRST_EPHEMERAL_PORT = 49_152
const OVERSIZE = IO_COUNTERS.indexOf('oversize')
const SEND_ERRORS = IO_COUNTERS.indexOf('sendErrors')

class SimulatedSocket implements PacketIo {
  readonly counters = new Float64Array(IO_COUNTERS.length)
  readonly name: string
  readonly backend = 'simulated'
  readonly record: Int32Array
  /** The address in the one spelling that remote records give. */
  readonly key: string
  readonly mtu: number
  private readonly io: SimulatedIo
  /** Key of the peer, '' where packets carry their own address. */
  private readonly peer: string
  private readonly queue: number[] = []
  private readonly target = new Int32Array(REMOTE_BYTES / 4)

  constructor(io: SimulatedIo, local: SocketAddress, remote: SocketAddress | undefined, mtu: number) {
    this.io = io
    this.name = formatSocketAddress(local)
    this.record = remoteRecord(local)
    this.key = formatRemote(this.record)
    this.peer = remote ? formatRemote(remoteRecord(remote)) : ''
    this.mtu = mtu
  }

  get pending(): boolean {
    return this.queue.length > 0
  }

  receive(batch: Batch): void {
    const count = Math.min(BATCH_CAPACITY - batch.length, this.queue.length)
    for (const packet of this.queue.splice(0, count)) batch.push(packet)
    batch.bytes = this.io.packets.bytesOf(batch)
  }

  send(handles: Int32Array, from: number, count: number): number {
    const { packets } = this.io
    for (let i = from; i < from + count; i++) {
      const packet = handles[i]
      packets.readRemote(packet, this.target)
      const address = this.peer || formatRemote(this.target)
      if (address === '') this.counters[SEND_ERRORS]++
      const peer = this.io.find(address)
      if (peer?.accepts(this)) peer.deliver(packet, this.record)
      else packets.release(packet)
    }
    return count
  }

  /** A connected socket hears its peer only. */
  accepts(sender: SimulatedSocket): boolean {
    return this.peer === '' || this.peer === sender.key
  }

  deliver(packet: number, from: Int32Array): void {
    const { packets, clock } = this.io
    if (packets.length[packet] > this.mtu) {
      this.counters[OVERSIZE]++
      packets.release(packet)
      return
    }
    const at = packet * packets.slotBytes + packets.headroom
    packets.data.copyWithin(at, packets.offset[packet], packets.offset[packet] + packets.length[packet])
    packets.offset[packet] = at
    packets.arrival[packet] = clock.now
    packets.client[packet] = -1
    packets.setRemote(packet, from)
    this.queue.push(packet)
  }

  close(): void {
    for (const packet of this.queue.splice(0)) this.io.packets.release(packet)
    this.io.forget(this)
  }
}

/** Swallows what is sent to it and never has anything to give. */
class SimulatedDevice implements PacketIo {
  readonly counters = new Float64Array(IO_COUNTERS.length)
  readonly name: string
  readonly backend = 'simulated'
  private readonly io: SimulatedIo

  constructor(io: SimulatedIo, name: string) {
    this.io = io
    this.name = name
  }

  receive(): void {}

  send(handles: Int32Array, from: number, count: number): number {
    for (let i = from; i < from + count; i++) this.io.packets.release(handles[i])
    return count
  }

  close(): void {}
}

export class SimulatedIo implements Io {
  readonly simulated = true
  readonly clock: RunClock
  /** Set once the packets exist, before anything is opened. */
  packets!: Packets
  private readonly sockets = new Map<string, { socket: SimulatedSocket; events: IoEvents }>()
  private readonly connections: SimulatedConnections
  private ephemeral = FIRST_EPHEMERAL_PORT

  readonly networks: RunNetworks
  /** By `networks.ports`. */
  private readonly readers: (IoEvents['readable'] | undefined)[] = []

  constructor(clock: RunClock, place: NetworkPlace) {
    this.clock = clock
    this.connections = new SimulatedConnections(clock)
    this.networks = new RunNetworks(place, () => clock.now)
  }

  attach(packets: Packets): void {
    this.packets = packets
    this.connections.packets = packets
    this.networks.packets = packets
  }

  network(options: NetworkOptions, { readable }: IoEvents): NetworkPort {
    this.readers.push(readable)
    return this.networks.open(options)
  }

  remote(address: SocketAddress): Int32Array {
    return remoteRecord(address)
  }

  udp(options: UdpOptions, events: IoEvents): PacketIo {
    const family = options.local?.family ?? options.remote?.family ?? 4
    const loopback = family === 6 ? '::1' : '127.0.0.1'
    const asked = options.local ?? { address: loopback, port: 0, family }
    const port = asked.port === 0 ? this.ephemeral++ : asked.port
    const wildcard = asked.address === '0.0.0.0' || asked.address === '::'
    const socket = new SimulatedSocket(
      this,
      { address: wildcard ? loopback : asked.address, port, family },
      options.remote,
      options.mtu,
    )
    if (this.sockets.has(socket.key)) {
      throw Object.assign(new Error(`address ${socket.name} is taken (EADDRINUSE)`), { code: 'EADDRINUSE' })
    }
    this.sockets.set(socket.key, { socket, events })
    return socket
  }

  tun(options: TunOpenOptions): PacketIo {
    return new SimulatedDevice(this, options.name)
  }

  listen(options: ConnectionOptions, acceptable: () => void, events: ConnectionEvents): ListenerIo {
    return this.connections.listen(options, acceptable, events)
  }

  connect(options: ConnectionOptions, events: ConnectionEvents): ConnectionIo {
    return this.connections.connect(options, events)
  }

  /** By `key`. */
  find(address: string): SimulatedSocket | undefined {
    return this.sockets.get(address)?.socket
  }

  forget(socket: SimulatedSocket): void {
    this.sockets.delete(socket.key)
  }

  get pending(): boolean {
    for (const { socket } of this.sockets.values()) if (socket.pending) return true
    return this.connections.pending || this.networks.ports.some((port) => port.pending)
  }

  /** Calls the readers of sockets and ports that have something. */
  dispatch(): void {
    for (const { socket, events } of this.sockets.values()) {
      if (!socket.pending) continue
      if (events.readable) events.readable()
      else socket.close()
    }
    this.connections.dispatch()
    this.networks.ports.forEach((port, i) => {
      if (port.pending) this.readers[i]?.()
    })
  }
}
