/** A session: what two proven ends do on one transport beside their streams: heartbeats, records, leaving, and the rules whose breach cuts off. */

import type { Clock } from '../contract/clock.ts'
import { ServiceError } from '../contract/errors.ts'
import { Heartbeat } from './heartbeat.ts'
import { InFlight } from './in-flight.ts'
import type {
  Closed,
  CloseReason,
  HubNews,
  LinkEvent,
  LinkSession,
  LinkStream,
  NodeRecord,
  OpenOptions,
} from './link.ts'
import { decodeFrame, encodeFrame, encodeRecordFrame, type Frame, readRecord, Violation } from './messages.ts'
import { News } from './news.ts'
import type { ServerList, SignedBody } from './signed.ts'
import { type OpenListener, Streams, USED_UP } from './streams.ts'
import { closeCodes, deaf, type LinkTransport } from './transport.ts'

/** What may wait on the transport before a peer that does not read counts as dead, bytes. Messages wait elsewhere. */
export const MAX_BACKLOG_BYTES = 4 * 1024 * 1024
/** How long a leaving node waits for the hub's answer, milliseconds. */
const LEAVE_MS = 5_000
/** What a close code says. Leaving and removal are believed only when they were said in their frames. */
const CLOSE_REASONS: ReadonlyMap<number, CloseReason> = new Map(
  (['REPLACED', 'SHUTDOWN', 'DEAD', 'PROTOCOL'] as const).map((reason) => [closeCodes[reason], reason]),
)

export interface SessionOptions {
  /** Which end this is. */
  readonly side: 'node' | 'hub'
  /** Id of this end; the origin of calls that name none. */
  readonly localId: string
  readonly peerId: string
  /** Both ends are servers of one hub: they carry calls, and nothing else. */
  readonly isServerLink?: boolean
  readonly transport: LinkTransport
  readonly clock: Clock
  /** The last ping's sequence while the handshake waited. */
  readonly heartbeat: number
  /** Hub: signs the notice of removal. */
  readonly signRemoval: () => Uint8Array
  /** Node: whether this is the hub's signature of the notice of removal. */
  readonly verifyRemoval: (signature: Uint8Array) => boolean
  /** Node, of a hub with a hub key: the list that it has signed; throws Violation. */
  readonly readServers?: ((list: SignedBody) => ServerList) | undefined
  /** Node: what the hub's welcome said of its servers. */
  readonly servers?: ServerList | undefined
  readonly report: (event: LinkEvent) => void
}

export class Session implements LinkSession {
  readonly peerId: string
  readonly closed: Promise<Closed>
  readonly #options: SessionOptions
  readonly #transport: LinkTransport
  readonly #heartbeat: Heartbeat
  readonly #streams: Streams
  readonly #inFlight: InFlight
  #isTransportFull = false
  #resolveClosed!: (closed: Closed) => void
  #isClosed = false
  #leaving: { message: string; timer: unknown } | undefined
  #lastRecord: NodeRecord | undefined
  readonly #news = new News()
  #recordListener: ((record: NodeRecord) => void) | undefined
  #leaveListener: (() => void | Promise<void>) | undefined
  #removalListener: ((nodeId: string, revision: number) => void) | undefined

  constructor(options: SessionOptions) {
    const { side, localId, peerId, transport } = options
    this.#options = options
    this.peerId = peerId
    this.#transport = transport
    this.#inFlight = new InFlight(options.clock)
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve
    })
    this.#heartbeat = new Heartbeat({
      clock: options.clock,
      sequence: options.heartbeat,
      ping: (sequence) => this.#send(encodeFrame('ping', { sequence })),
      dead: (silence) => this.#die(`nothing was heard for ${Math.round(silence / 1000)} s`),
    })
    this.#streams = new Streams({
      side,
      localId,
      peerId,
      isServerLink: options.isServerLink === true,
      clock: options.clock,
      send: (frame) => this.#send(frame),
      usedUp: () => this.#finish('SHUTDOWN', USED_UP, false),
      failed: (operation, error) => this.#report('failed', `${operation}: a handler failed`, error),
    })
    if (options.servers !== undefined) this.#news.tell({ type: 'SERVERS', servers: options.servers })
    this.#transport.handlers = {
      message: (bytes) => this.#receive(bytes),
      foreign: (what) => this.#violated(new Violation(what)),
      close: (code, reason) => this.#lost(code, reason),
      drain: () => {
        this.#isTransportFull = false
        this.#goOn()
      },
    }
  }

  get remoteAddress(): string {
    return this.#transport.remoteAddress
  }

  get silence(): number {
    return this.#heartbeat.silence
  }

  get streamCount(): number {
    return this.#streams.count
  }

  /** Bytes that the peer's data holds in memory now. */
  get held(): number {
    return this.#streams.held
  }

  open(operation: string, target: string, request: Uint8Array | undefined, options: OpenOptions = {}): LinkStream {
    if (this.#isClosed || this.#leaving !== undefined) {
      throw new ServiceError('UNAVAILABLE', 'the link between node and hub is down')
    }
    return this.#streams.open(operation, target, request, options)
  }

  onOpen(listener: OpenListener): void {
    this.#streams.onOpen(listener)
  }

  sendRecord(record: NodeRecord): void {
    this.#streams.sendRecord(encodeRecordFrame(record))
  }

  onRecord(listener: (record: NodeRecord) => void): void {
    this.#recordListener = listener
    const last = this.#lastRecord
    this.#lastRecord = undefined
    if (last !== undefined) listener(last)
  }

  sendServers(list: SignedBody): void {
    this.#send(encodeFrame('servers', list))
  }

  sendWish(wish: 'LOOK_ELSEWHERE' | 'STAY'): void {
    this.#send(encodeFrame(wish === 'STAY' ? 'stay' : 'lookElsewhere', {}))
  }

  sendRemoval(nodeId: string, revision: number): void {
    this.#send(encodeFrame('memberRemoved', { nodeId, revision: BigInt(revision) }))
  }

  onRemoval(listener: (nodeId: string, revision: number) => void): void {
    this.#removalListener = listener
  }

  onNews(listener: (news: HubNews) => void): void {
    this.#news.listen(listener)
  }

  onLeave(listener: () => void | Promise<void>): void {
    this.#leaveListener = listener
  }

  close(reason: CloseReason, message: string): void {
    if (this.#isClosed) return
    if (reason === 'LEFT' && this.#options.side === 'node') {
      this.#leave(message)
      return
    }
    if (reason === 'REMOVED' && this.#options.side === 'hub') {
      this.#send(encodeFrame('removed', { signature: this.#options.signRemoval() }))
    }
    this.#finish(reason, message, false)
  }

  #leave(message: string): void {
    if (this.#leaving !== undefined) return
    const timer = this.#options.clock.setTimeout(() => this.#finish('LEFT', message, false), LEAVE_MS)
    this.#leaving = { message, timer }
    this.#streams.end({ code: 'UNAVAILABLE', message })
    this.#send(encodeFrame('leave', {}))
  }

  #finish(reason: CloseReason, message: string, byPeer: boolean, isLost = false): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#streams.full()
    this.#heartbeat.stop()
    if (this.#leaving !== undefined) this.#options.clock.clearTimeout(this.#leaving.timer)
    this.#transport.handlers = deaf
    if (!isLost) this.#transport.close(reason === 'LOST' ? closeCodes.SHUTDOWN : closeCodes[reason], message)
    this.#streams.end({ code: 'UNAVAILABLE', message: `the link between node and hub is down: ${message}` })
    this.#resolveClosed({ reason, message, byPeer })
  }

  #die(message: string): void {
    this.#report('dead', message)
    this.#finish('DEAD', message, false)
  }

  #violated(error: unknown): void {
    if (!(error instanceof Violation)) {
      this.#report('failed', 'a frame could not be handled', error)
      this.#finish('SHUTDOWN', 'internal error', false)
      return
    }
    this.#report('violation', error.message)
    this.#finish('PROTOCOL', error.message, false)
  }

  #report(kind: LinkEvent['kind'], message: string, error?: unknown): void {
    const { remoteAddress } = this.#transport
    const event: LinkEvent = { kind, message, remoteAddress, peerId: this.peerId }
    this.#options.report(error === undefined ? event : { ...event, error })
  }

  #lost(code: number, reason: string): void {
    const said = CLOSE_REASONS.get(code)
    if (said !== undefined) this.#heartbeat.heard()
    if (this.#leaving !== undefined) this.#finish('LEFT', this.#leaving.message, false, true)
    else this.#finish(said ?? 'LOST', reason || 'the connection broke', true, true)
  }

  // Sending.

  #send(frame: Uint8Array): void {
    if (this.#isClosed) return
    if (!this.#transport.send(frame)) this.#isTransportFull = true
    this.#inFlight.sent(frame.length)
    if (this.#transport.buffered > MAX_BACKLOG_BYTES) {
      this.#die('the other side does not read')
      return
    }
    this.#ask()
    if (this.#isTransportFull || this.#inFlight.isFull) this.#streams.full()
  }

  /** Asks, when it is time to, whether what was sent has been handled. */
  #ask(): void {
    if (!this.#inFlight.isDue) return
    const sequence = this.#heartbeat.next()
    this.#inFlight.asked(sequence)
    this.#send(encodeFrame('ping', { sequence }))
  }

  /** What waits is sent, if the transport and the other side take it. */
  #goOn(): void {
    if (!this.#isTransportFull && !this.#inFlight.isFull) this.#streams.drained()
  }

  #pong(sequence: number): void {
    this.#heartbeat.pong(sequence)
    const { isFull } = this.#inFlight
    this.#inFlight.answered(sequence)
    this.#ask()
    if (isFull) this.#goOn()
  }

  // Receiving.

  #receive(bytes: Uint8Array): void {
    try {
      this.#heartbeat.heard()
      this.#handle(decodeFrame(bytes))
    } catch (error) {
      this.#violated(error)
    }
  }

  #handle(frame: Frame): void {
    if (this.#streams.handle(frame)) return
    if (frame.kind === 'ping') this.#send(encodeFrame('pong', { sequence: frame.value.sequence }))
    else if (frame.kind === 'pong') this.#pong(frame.value.sequence)
    else if (this.#options.isServerLink) this.#handleOfServer(frame)
    else if (this.#options.side === 'hub') this.#handleAtHub(frame)
    else this.#handleAtNode(frame)
  }

  #handleOfServer(frame: Frame): void {
    if (frame.kind !== 'memberRemoved') throw new Violation(`a ${frame.kind} frame from a server in a session`)
    this.#removalListener?.(frame.value.nodeId, Number(frame.value.revision))
  }

  #handleAtHub(frame: Frame): void {
    if (frame.kind === 'record') {
      const record = readRecord(frame.value)
      if (this.#recordListener === undefined) this.#lastRecord = record
      else this.#recordListener(record)
    } else if (frame.kind === 'leave') void this.#left()
    else throw new Violation(`a ${frame.kind} frame from a node in a session`)
  }

  #handleAtNode(frame: Frame): void {
    const { readServers } = this.#options
    if (frame.kind === 'removed') {
      if (!this.#options.verifyRemoval(frame.value.signature))
        throw new Violation('a removal that the hub has not signed')
      this.#finish('REMOVED', 'the hub has removed this node', true)
    } else if (frame.kind === 'left' && this.#leaving !== undefined) this.#finish('LEFT', this.#leaving.message, false)
    else if (readServers === undefined) throw new Violation(`a ${frame.kind} frame from a hub in a session`)
    else if (frame.kind === 'servers') this.#news.tell({ type: 'SERVERS', servers: readServers(frame.value) })
    else if (frame.kind === 'lookElsewhere') this.#news.tell({ type: 'LOOK_ELSEWHERE' })
    else if (frame.kind === 'stay') this.#news.tell({ type: 'STAY' })
    else throw new Violation(`a ${frame.kind} frame from a hub in a session`)
  }

  async #left(): Promise<void> {
    const listener = this.#leaveListener
    this.#leaveListener = undefined
    try {
      await listener?.()
    } catch (error) {
      this.#report('failed', 'the leaving of a node could not be recorded', error)
    }
    this.#send(encodeFrame('left', {}))
    this.#finish('LEFT', 'the node has left', true)
  }
}
