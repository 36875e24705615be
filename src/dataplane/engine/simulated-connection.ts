/** Connections of a simulation: two ends in memory, joined by the address or name that one listens at. */
import { isIPv4 } from 'node:net'
import { constants } from 'node:os'
import { REMOTE_BYTES } from '../native/native.ts'
import { IO_COUNTERS } from '../native/socket-calls.ts'
import { formatRemote, formatSocketAddress, remoteRecord } from './address.ts'
import type { Batch } from './batch.ts'
import type { RunClock } from './clock.ts'
import type { ConnectionEvents, ConnectionIo, ConnectionOptions, ListenerIo } from './io.ts'
import type { Packets } from './packets.ts'

const FIRST_EPHEMERAL_PORT = 49_152
/** Bytes of a stream that are one packet, as in the addon. */
const STREAM_PIECE_BYTES = 1200
/** What is on its way to an end that does not read. */
const IN_FLIGHT_BYTES = 1 << 20
const OVERSIZE = IO_COUNTERS.indexOf('oversize')
const { ENODATA, EPIPE, ECONNRESET } = constants.errno

interface Listening {
  options: ConnectionOptions
  acceptable: () => void
  events: ConnectionEvents
  waiting: SimulatedConnection[]
  accepting: boolean
}

class SimulatedConnection implements ConnectionIo {
  readonly name: string
  readonly record: Int32Array
  readonly user: number
  readonly counters = new Float64Array(IO_COUNTERS.length)
  readonly events: ConnectionEvents
  tag = -1
  peer: SimulatedConnection | null = null
  private readonly world: SimulatedConnections
  private readonly options: ConnectionOptions
  /** What has come and was not received yet. */
  private readonly queue: number[] = []
  private bytes = 0
  /** Why nothing more will come, a positive errno; 0 while something may. */
  private over = 0
  private wantsRead = true
  private wantsWrite = false

  /** `name` and `record` are those of the other end. */
  constructor(
    world: SimulatedConnections,
    options: ConnectionOptions,
    events: ConnectionEvents,
    name: string,
    record: Int32Array,
  ) {
    this.world = world
    this.options = options
    this.events = events
    this.name = name
    this.record = record
    this.user = options.kind === 'unix' ? (process.geteuid?.() ?? 0) : -1
  }

  get readable(): boolean {
    return this.wantsRead && (this.queue.length > 0 || this.over !== 0)
  }

  get writable(): boolean {
    return this.wantsWrite && (this.peer === null || this.peer.bytes < IN_FLIGHT_BYTES)
  }

  connected(): number {
    return 0
  }

  receive(batch: Batch, max: number): number {
    const { queue } = this
    const { packets } = this.world
    while (queue.length > 0 && batch.length < max && !batch.full) {
      const packet = this.piece(queue[0])
      if (packet < 0) break
      if (packet === queue[0]) queue.shift()
      this.bytes -= packets.length[packet]
      batch.push(packet)
    }
    if (batch.length > 0 || queue.length > 0) return batch.length
    return -this.over
  }

  /** The first bytes of `whole` as a packet: itself, or of a stream a piece cut off its front; -1 without a free slot. */
  private piece(whole: number): number {
    const { packets } = this.world
    const { options } = this
    if (options.kind === 'unix' || options.framed || packets.length[whole] <= STREAM_PIECE_BYTES) return whole
    const cut = packets.allocate()
    if (cut < 0) return -1
    const to = packets.append(cut, STREAM_PIECE_BYTES)
    const from = packets.trimFront(whole, STREAM_PIECE_BYTES)
    packets.data.copyWithin(to, from, from + STREAM_PIECE_BYTES)
    packets.annotateAs(cut, whole)
    return cut
  }

  send(handles: Int32Array, from: number, count: number): number {
    const { peer } = this
    if (!peer) return -EPIPE
    let done = 0
    while (done < count && peer.bytes < IN_FLIGHT_BYTES) peer.deliver(handles[from + done++])
    this.wantsWrite = done < count
    return done
  }

  private deliver(packet: number): void {
    const { packets, clock } = this.world
    const { options } = this
    if (options.kind === 'unix' && packets.length[packet] > options.mtu) {
      this.counters[OVERSIZE]++
      packets.release(packet)
      return
    }
    packets.settle(packet)
    const at = packet * packets.slotBytes + packets.headroom
    packets.data.copyWithin(at, packets.offset[packet], packets.offset[packet] + packets.length[packet])
    packets.offset[packet] = at
    packets.arrival[packet] = clock.now
    packets.client[packet] = -1
    packets.setRemote(packet, this.record)
    this.queue.push(packet)
    this.bytes += packets.length[packet]
  }

  reading(on: boolean): void {
    this.wantsRead = on
  }

  writing(on: boolean): void {
    this.wantsWrite = on
  }

  close(reset: boolean): void {
    for (const packet of this.queue.splice(0)) this.world.packets.release(packet)
    this.bytes = 0
    if (this.peer) {
      this.peer.over = reset ? ECONNRESET : ENODATA
      this.peer.peer = null
    }
    this.peer = null
    this.world.forget(this)
  }
}

/** All connections and listeners of one simulation. */
export class SimulatedConnections {
  readonly clock: RunClock
  /** Set once the packets exist, before anything is opened. */
  packets!: Packets
  private readonly listeners = new Map<string, Listening>()
  private readonly ends = new Set<SimulatedConnection>()
  /** Names of connecting ends of Unix sockets. */
  private readonly names = new Map<SimulatedConnection, string>()
  private ephemeral = FIRST_EPHEMERAL_PORT

  constructor(clock: RunClock) {
    this.clock = clock
  }

  listen(options: ConnectionOptions, acceptable: () => void, events: ConnectionEvents): ListenerIo {
    const bound = options.kind === 'tcp' && options.port === 0 ? { ...options, port: this.ephemeral++ } : options
    const key = keyOf(bound)
    if (this.listeners.has(key)) throw refused('bind', key, 'EADDRINUSE')
    const listening: Listening = { options, acceptable, events, waiting: [], accepting: true }
    this.listeners.set(key, listening)
    return {
      name: bound.kind === 'tcp' ? formatSocketAddress(bound) : bound.name,
      accept: () => listening.waiting.shift() ?? null,
      accepting: (on) => {
        listening.accepting = on
      },
      close: () => {
        this.listeners.delete(key)
        for (const end of listening.waiting.splice(0)) end.close(true)
      },
    }
  }

  connect(options: ConnectionOptions, events: ConnectionEvents): ConnectionIo {
    const { kind } = options
    const own = kind === 'unix' ? (options.bind ?? '') : ''
    if (own !== '' && [...this.names.values()].includes(own)) throw refused('bind', own, 'EADDRINUSE')
    const key = keyOf(options)
    const listening = this.listeners.get(key)
    if (!listening) throw refused('connect', key, 'ECONNREFUSED')
    const none = new Int32Array(REMOTE_BYTES / 4)
    const theirs = kind === 'tcp' ? remoteRecord({ ...options, family: isIPv4(options.address) ? 4 : 6 }) : none
    const family = kind === 'tcp' && !isIPv4(options.address) ? 6 : 4
    const address = family === 6 ? '::1' : '127.0.0.1'
    const ours = kind === 'tcp' ? remoteRecord({ address, port: this.ephemeral++, family }) : none
    const near = new SimulatedConnection(this, options, events, kind === 'tcp' ? formatRemote(theirs) : key, theirs)
    const far = new SimulatedConnection(this, listening.options, listening.events, formatRemote(ours) || own, ours)
    near.peer = far
    far.peer = near
    this.ends.add(near).add(far)
    if (own !== '') this.names.set(near, own)
    listening.waiting.push(far)
    return near
  }

  forget(end: SimulatedConnection): void {
    this.ends.delete(end)
    this.names.delete(end)
  }

  get pending(): boolean {
    for (const { waiting, accepting } of this.listeners.values()) if (accepting && waiting.length > 0) return true
    for (const end of this.ends) if (end.tag >= 0 && (end.readable || end.writable)) return true
    return false
  }

  /** Calls whoever waits for connections, for what was sent, and for room. */
  dispatch(): void {
    for (const { waiting, accepting, acceptable } of this.listeners.values()) {
      if (accepting && waiting.length > 0) acceptable()
    }
    for (const end of this.ends) {
      if (end.tag < 0) continue
      if (end.readable) end.events.readable(end)
      if (end.writable) {
        end.writing(false)
        end.events.writable(end)
      }
    }
  }
}

/** What a listener is found by: an address in the one spelling that remote records give, any address as loopback; or a name. */
function keyOf(options: ConnectionOptions): string {
  if (options.kind === 'unix') return options.name
  const four = isIPv4(options.address)
  const wildcard = options.address === '0.0.0.0' || options.address === '::'
  const address = wildcard ? (four ? '127.0.0.1' : '::1') : options.address
  return formatRemote(remoteRecord({ address, port: options.port, family: four ? 4 : 6 }))
}

function refused(syscall: string, name: string, code: string): Error {
  const why = code === 'EADDRINUSE' ? `${name} is taken` : `nobody listens at ${name}`
  return Object.assign(new Error(`${why} (${code})`), { code, syscall })
}
