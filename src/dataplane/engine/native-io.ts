/** The real I/O face: kernel sockets and TUN devices through the addon, watched by one poller per run. */
import { IO_COUNTERS, native, type TunOpenOptions } from '../native/native.ts'
import { formatSocketAddress } from './address.ts'
import { BATCH_CAPACITY, type Batch } from './batch.ts'
import type { MonotonicClock } from './clock.ts'
import type { Io, IoEvents, PacketIo, UdpOptions } from './io.ts'
import type { Packets } from './packets.ts'

const BACKENDS = ['GENERIC', 'LINUX_NO_GRO', 'LINUX'] as const
const COMMAND_TOKEN = 0

type ReceiveCall = typeof native.udpReceive
type SendCall = typeof native.udpSend

class NativePacketIo implements PacketIo {
  readonly counters = new Float64Array(IO_COUNTERS.length)
  readonly name: string
  readonly backend: string
  private readonly io: NativeIo
  private readonly handle: number
  private readonly receiveCall: ReceiveCall
  private readonly sendCall: SendCall
  private readonly scratch = new Int32Array(BATCH_CAPACITY)
  private blocked = false
  private open = true

  constructor(io: NativeIo, handle: number, name: string, backend: string, calls: [ReceiveCall, SendCall]) {
    this.io = io
    this.handle = handle
    this.name = name
    this.backend = backend
    ;[this.receiveCall, this.sendCall] = calls
  }

  receive(batch: Batch): void {
    const { io, handle, counters } = this
    const { origin } = io.clock
    if (batch.length === 0) {
      const count = this.receiveCall(handle, io.memory, batch.handles, BATCH_CAPACITY, origin, counters)
      batch.length = count
      if (count > 0) io.took(batch.handles[count - 1])
      return
    }
    const room = BATCH_CAPACITY - batch.length
    const count = this.receiveCall(handle, io.memory, this.scratch, room, origin, counters)
    for (let i = 0; i < count; i++) batch.push(this.scratch[i])
    if (count > 0) io.took(this.scratch[count - 1])
  }

  send(handles: Int32Array, from: number, count: number): number {
    const sent = this.sendCall(this.handle, this.io.memory, handles, from, count, this.counters)
    if (sent < count !== this.blocked) {
      this.blocked = sent < count
      native.pollerWatchWrite(this.io.poller, this.handle, this.blocked)
    }
    return sent
  }

  /** The kernel has room again. */
  unblocked(): void {
    if (!this.blocked) return
    this.blocked = false
    native.pollerWatchWrite(this.io.poller, this.handle, false)
  }

  close(): void {
    if (!this.open) return
    this.open = false
    native.close(this.handle)
  }
}

export class NativeIo implements Io {
  readonly simulated = false
  readonly clock: MonotonicClock
  readonly poller: number
  /** Set once the packets exist, before anything is opened. */
  memory = -1
  private readonly owner: number
  private readonly command: number
  private readonly watched: ({ io: NativePacketIo; events: IoEvents } | null)[] = [null]
  private readonly ready = new Int32Array(64)
  private arrival: Float64Array = new Float64Array(0)

  /** `command` is an eventfd that wakes the poller. */
  constructor(owner: number, command: number, clock: MonotonicClock) {
    this.owner = owner
    this.command = command
    this.clock = clock
    this.poller = native.pollerOpen(owner)
    native.pollerAdd(this.poller, command, COMMAND_TOKEN)
  }

  attach(packets: Packets): void {
    this.memory = native.memoryOpen(packets)
    this.arrival = packets.arrival
  }

  /**
   * `packet` is the last one received, so no packet has arrived after it. From now on the clock says so: what a component
   * counts from `now`, a delay for one, never begins before the arrival of the packet it is counted for.
   */
  took(packet: number): void {
    this.clock.arrived(this.arrival[packet])
  }

  udp(options: UdpOptions, events: IoEvents): PacketIo {
    const { backend, local, remote, mtu } = options
    const handle = native.udpOpen(this.owner, {
      backend,
      mtu,
      family: local?.family ?? remote?.family ?? 4,
      ...(local && { local: { address: local.address, port: local.port } }),
      ...(remote && { remote: { address: remote.address, port: remote.port } }),
      ...(options.interface !== undefined && { interface: options.interface }),
      ...(options.bufferBytes !== undefined && { bufferBytes: options.bufferBytes }),
      ...(options.multicastGroup !== undefined && { multicastGroup: options.multicastGroup }),
      ...(options.multicastTtl !== undefined && { multicastTtl: options.multicastTtl }),
    })
    const bound = native.udpAddress(handle)
    return this.watch(handle, formatSocketAddress(bound), BACKENDS[bound.backend], events, [
      native.udpReceive,
      native.udpSend,
    ])
  }

  tun(options: TunOpenOptions, events: IoEvents): PacketIo {
    const handle = native.tunOpen(this.owner, options)
    return this.watch(handle, native.tunName(handle), options.kind, events, [native.tunReceive, native.tunSend])
  }

  private watch(
    handle: number,
    name: string,
    backend: string,
    events: IoEvents,
    calls: [ReceiveCall, SendCall],
  ): PacketIo {
    const io = new NativePacketIo(this, handle, name, backend, calls)
    this.watched.push({ io, events })
    native.pollerAdd(this.poller, handle, this.watched.length - 1)
    return io
  }

  /** Sleeps until something is ready or `timeoutNs` are over (negative: no limit); returns how many things are ready. */
  wait(timeoutNs: number): number {
    return native.pollerWait(this.poller, timeoutNs, this.ready)
  }

  /** Calls whoever waits for the first `count` ready tokens; clears the command event when it is among them. */
  dispatch(count: number): void {
    for (let i = 0; i < count; i++) {
      const token = this.ready[i]
      if (token === COMMAND_TOKEN) {
        native.eventClear(this.command)
        continue
      }
      const entry = this.watched[token < 0 ? -token - 1 : token]
      if (!entry) continue
      if (token < 0) {
        entry.io.unblocked()
        entry.events.writable?.()
      } else entry.events.readable?.()
    }
  }

  detach(): void {
    if (this.memory >= 0) native.memoryClose(this.memory)
    this.memory = -1
  }
}
