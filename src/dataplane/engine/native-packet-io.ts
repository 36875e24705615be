/** One kernel socket or TUN device of a run, as components see it. */

import { native } from '../native/native.ts'
import { type InterfaceState, IO_COUNTERS } from '../native/socket-calls.ts'
import { formatSocketAddress } from './address.ts'
import { BATCH_CAPACITY, type Batch } from './batch.ts'
import type { MonotonicClock } from './clock.ts'
import type { PacketIo, UdpTuning } from './io.ts'

/** What a socket or device needs of the run's I/O. */
export interface NativeIoParts {
  readonly clock: MonotonicClock
  readonly poller: number
  readonly memory: number
  /** The first `count` of `handles` were received. */
  took(handles: Int32Array, count: number): void
}

const BACKENDS = ['GENERIC', 'LINUX_NO_GRO', 'LINUX'] as const

const RECEIVED_BYTES = IO_COUNTERS.indexOf('receivedBytes')

export type ReceiveCall = typeof native.udpReceive
export type SendCall = typeof native.udpSend

export class NativePacketIo implements PacketIo {
  readonly counters = new Float64Array(IO_COUNTERS.length)
  name: string
  readonly backend: string
  found: InterfaceState | undefined
  protected readonly io: NativeIoParts
  protected handle: number
  private readonly receiveCall: ReceiveCall
  private readonly sendCall: SendCall
  private readonly scratch = new Int32Array(BATCH_CAPACITY)
  protected blocked = false
  private open = true

  constructor(io: NativeIoParts, handle: number, name: string, backend: string, calls: [ReceiveCall, SendCall]) {
    this.io = io
    this.handle = handle
    this.name = name
    this.backend = backend
    ;[this.receiveCall, this.sendCall] = calls
  }

  receive(batch: Batch): void {
    const { io, handle, counters } = this
    const { origin } = io.clock
    const before = counters[RECEIVED_BYTES]
    if (batch.length === 0) {
      const count = this.receiveCall(handle, io.memory, batch.handles, BATCH_CAPACITY, origin, counters)
      batch.length = count
      batch.bytes = counters[RECEIVED_BYTES] - before
      io.took(batch.handles, count)
      return
    }
    const room = BATCH_CAPACITY - batch.length
    const count = this.receiveCall(handle, io.memory, this.scratch, room, origin, counters)
    for (let i = 0; i < count; i++) batch.push(this.scratch[i])
    batch.bytes += counters[RECEIVED_BYTES] - before
    io.took(this.scratch, count)
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

export class UdpSocket extends NativePacketIo {
  private dropped = 0
  /** What the kernel said of this socket when it was asked last, modulo 2³². */
  private saidDropped = 0

  constructor(io: NativeIoParts, handle: number) {
    const bound = native.udpAddress(handle)
    super(io, handle, formatSocketAddress(bound), BACKENDS[bound.backend], [native.udpReceive, native.udpSend])
  }

  leavesBy(): string {
    return native.udpLeavesBy(this.handle)
  }

  kernelDropped(): number {
    const now = native.udpDropped(this.handle)
    if (now >= 0) {
      this.dropped += (now - this.saidDropped) >>> 0
      this.saidDropped = now
    }
    return this.dropped
  }

  /** Takes over a socket in place of the one there was, which is closed: what that has dropped stays counted. */
  protected replace(fresh: number): void {
    this.kernelDropped()
    this.saidDropped = 0
    native.close(this.handle)
    this.handle = fresh
  }

  tune({ bufferBytes, multicastTtl }: UdpTuning): void {
    native.udpTune(this.handle, bufferBytes, multicastTtl)
  }
}

/** A TUN or TAP interface. */
export class TunDevice extends NativePacketIo {
  /** What was dropped before it was opened; negative: not known yet. */
  private droppedBefore: number
  private dropped = 0

  /** `found`: somebody else has made it. */
  constructor(io: NativeIoParts, handle: number, name: string, kind: string, found: boolean) {
    super(io, handle, name, kind, [native.tunReceive, native.tunSend])
    this.droppedBefore = found ? native.tunDropped(handle) : 0
  }

  kernelDropped(): number {
    const now = native.tunDropped(this.handle)
    if (now < 0) return this.dropped
    if (this.droppedBefore < 0) this.droppedBefore = now
    this.dropped = Math.max(this.dropped, now - this.droppedBefore)
    return this.dropped
  }
}
