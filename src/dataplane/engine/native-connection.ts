/** TCP connections and those of Unix sockets of a run, and their listeners, as components see them. */
import { getSystemErrorMap } from 'node:util'
import { native, REMOTE_BYTES } from '../native/native.ts'
import { IO_COUNTERS } from '../native/socket-calls.ts'
import { formatRemote } from './address.ts'
import { BATCH_CAPACITY, type Batch } from './batch.ts'
import type { ConnectionIo, ListenerIo } from './io.ts'
import type { NativeIoParts } from './native-packet-io.ts'
import { errorName } from './system-errors.ts'

/** None waits, or the one that did has gone or met an error of its network, and the next look finds the next (accept(2)). */
const NAMES_OF_NONE: ReadonlySet<string> = new Set([
  'EAGAIN',
  'EINTR',
  'ECONNABORTED',
  'EPROTO',
  'ENOPROTOOPT',
  'ENOTSUP',
  'ENETDOWN',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'ENONET',
  'EHOSTDOWN',
])

/** Those, as negative numbers; made once a listener asks, since a thread without one loads no names of errors. */
let noneWaits: ReadonlySet<number> | undefined

function saysNoneWaits(errno: number): boolean {
  noneWaits ??= new Set(
    [...getSystemErrorMap()].flatMap(([number, [name]]) => (NAMES_OF_NONE.has(name) ? [number] : [])),
  )
  return noneWaits.has(errno)
}

/** What they need of the run's I/O. */
export interface ConnectionParts extends NativeIoParts {
  /** What was watched under `token` is closed. */
  forget(token: number): void
}

export class NativeConnection implements ConnectionIo {
  readonly name: string
  readonly record = new Int32Array(REMOTE_BYTES / 4)
  readonly user: number
  readonly counters = new Float64Array(IO_COUNTERS.length)
  tag = -1
  /** Under which it is watched. */
  token = -1
  private readonly io: ConnectionParts
  private readonly handle: number
  private wantsWrite = false
  private open = true

  constructor(io: ConnectionParts, handle: number, kind: 'tcp' | 'unix') {
    this.io = io
    this.handle = handle
    native.connectionRemote(handle, new Uint8Array(this.record.buffer))
    const peer = kind === 'unix' ? native.unixPeer(handle) : { name: formatRemote(this.record), user: -1 }
    this.name = peer.name
    this.user = peer.user
  }

  connected(): number {
    return native.connectionConnected(this.handle)
  }

  receive(batch: Batch, max: number): number {
    const { io } = this
    const most = Math.min(max, BATCH_CAPACITY)
    const count = native.connectionReceive(this.handle, io.memory, batch.handles, most, io.clock.origin, this.counters)
    if (count <= 0) return count
    batch.length = count
    io.took(batch.handles, count)
    return count
  }

  send(handles: Int32Array, from: number, count: number): number {
    const sent = native.connectionSend(this.handle, this.io.memory, handles, from, count, this.counters)
    if (sent >= 0) this.writing(sent < count)
    return sent
  }

  reading(on: boolean): void {
    native.pollerWatchRead(this.io.poller, this.handle, on)
  }

  writing(on: boolean): void {
    if (on === this.wantsWrite) return
    this.wantsWrite = on
    native.pollerWatchWrite(this.io.poller, this.handle, on)
  }

  /** The kernel has room again, or connecting has come to an end. */
  unblocked(): void {
    this.writing(false)
  }

  close(reset: boolean): void {
    if (!this.open) return
    this.open = false
    if (reset) native.connectionReset(this.handle)
    native.close(this.handle)
    this.io.forget(this.token)
  }
}

export class NativeListener implements ListenerIo {
  readonly name: string
  protected readonly io: ConnectionParts
  protected handle: number
  protected readonly token: number
  private readonly next: (listener: number) => NativeConnection | number
  private open = true

  /** `next` gives the next connection that waits at a listener, or a negative errno. */
  constructor(
    io: ConnectionParts,
    handle: number,
    token: number,
    name: string,
    next: (listener: number) => NativeConnection | number,
  ) {
    this.io = io
    this.handle = handle
    this.token = token
    this.name = name
    this.next = next
  }

  accept(): ConnectionIo | null {
    const next = this.next(this.handle)
    if (typeof next !== 'number') return next
    if (saysNoneWaits(next)) return null
    const code = errorName(-next)
    throw Object.assign(new Error(`no connection can be accepted (${code})`), { code, errno: next })
  }

  accepting(on: boolean): void {
    native.pollerWatchRead(this.io.poller, this.handle, on)
  }

  close(): void {
    if (!this.open) return
    this.open = false
    native.close(this.handle)
    this.io.forget(this.token)
  }
}
