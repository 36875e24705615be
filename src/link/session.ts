/** A session: many streams on one wire, heartbeats, and the rules whose breach cuts the peer off. */
import { ServiceError } from '../contract/errors.ts'
import { Heartbeat } from './heartbeat.ts'
import type {
  Clock,
  Closed,
  CloseReason,
  LinkEvent,
  LinkSession,
  LinkStatus,
  LinkStream,
  NodeRecord,
  OpenOptions,
} from './link.ts'
import {
  decodeFrame,
  encodeFrame,
  encodeMessageFrame,
  encodeRecordFrame,
  endFrame,
  FRAGMENT_BYTES,
  type Frame,
  MAX_STREAMS,
  MESSAGE_BYTES,
  type Open,
  PIECE_BYTES,
  readRecord,
  statusOf,
  Violation,
} from './messages.ts'
import { Stream, type StreamHost } from './stream.ts'
import { Turns } from './turns.ts'
import { closeCodes, deaf, type Wire } from './wire.ts'

/**
 * What the peer may make this side hold in memory, all streams together, bytes: messages that nobody has read and messages under
 * assembly, requests of its calls that are carried out or wait for another node, answers that it does not read.
 */
export const HELD_BYTES = 64 * 1024 * 1024
/** What may wait on the wire before a peer that does not read counts as dead, bytes. Messages wait elsewhere. */
export const BACKLOG_BYTES = 4 * 1024 * 1024
/** How long a leaving node waits for the hub's answer, milliseconds. */
export const LEAVE_MS = 5_000
/** What a close code says. Leaving and removal are believed only when they were said in their frames. */
const CLOSE_REASONS: ReadonlyMap<number, CloseReason> = new Map(
  (['REPLACED', 'SHUTDOWN', 'DEAD', 'PROTOCOL'] as const).map((reason) => [closeCodes[reason], reason]),
)
const LAST_STREAM = 0xffff_fffe

export interface SessionOptions {
  /** Which end this is. */
  readonly side: 'node' | 'hub'
  /** Id of this end; the origin of calls that name none. */
  readonly localId: string
  readonly peerId: string
  readonly wire: Wire
  readonly clock: Clock
  /** The last ping's sequence while the handshake waited. */
  readonly heartbeat: number
  /** Hub: signs the notice of removal. */
  readonly signRemoval: () => Uint8Array
  /** Node: whether this is the hub's signature of the notice of removal. */
  readonly verifyRemoval: (signature: Uint8Array) => boolean
  readonly report: (event: LinkEvent) => void
}

type OpenListener = (stream: LinkStream, request: Uint8Array | undefined) => void

export class Session implements LinkSession, StreamHost {
  readonly peerId: string
  readonly closed: Promise<Closed>
  readonly #options: SessionOptions
  readonly #wire: Wire
  readonly #heartbeat: Heartbeat
  #resolveClosed!: (closed: Closed) => void
  #isClosed = false
  #leaving: { message: string; timer: unknown } | undefined

  readonly #streams = new Map<number, Stream>()
  readonly #turns = new Turns({
    send: (frame) => this.#send(frame),
    sendOpen: (stream) => this.#sendOpen(stream),
  })
  /** Complete calls that wait for `onOpen`. */
  #waiting: [Stream, Uint8Array | undefined][] = []
  #own = 0
  #others = 0
  #nextOwn: number
  #nextOther: number
  #held = 0
  #lastRecord: NodeRecord | undefined
  #openListener: OpenListener | undefined
  #recordListener: ((record: NodeRecord) => void) | undefined
  #leaveListener: (() => void | Promise<void>) | undefined

  constructor(options: SessionOptions) {
    this.#options = options
    this.peerId = options.peerId
    this.#wire = options.wire
    this.#nextOwn = options.side === 'node' ? 1 : 2
    this.#nextOther = options.side === 'node' ? 2 : 1
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve
    })
    this.#heartbeat = new Heartbeat({
      clock: options.clock,
      sequence: options.heartbeat,
      ping: (sequence) => this.#send(encodeFrame('ping', { sequence })),
      dead: (silence) => this.#die(`nothing was heard for ${Math.round(silence / 1000)} s`),
    })
    this.#wire.handlers = {
      message: (bytes) => this.#receive(bytes),
      foreign: (what) => this.#violated(new Violation(what)),
      close: (code, reason) => this.#lost(code, reason),
      drain: () => this.#turns.drained(),
    }
  }

  get writable(): boolean {
    return this.#turns.writable
  }

  get remoteAddress(): string {
    return this.#wire.remoteAddress
  }

  get streamCount(): number {
    return this.#own + this.#others
  }

  open(operation: string, target: string, request: Uint8Array | undefined, options: OpenOptions = {}): LinkStream {
    if (this.#isClosed || this.#leaving !== undefined) {
      throw new ServiceError('UNAVAILABLE', 'the link between node and hub is down')
    }
    if (this.#own >= MAX_STREAMS) {
      throw new ServiceError('RESOURCE_EXHAUSTED', `${MAX_STREAMS} calls are open on the link between node and hub`)
    }
    if (request !== undefined && request.length > MESSAGE_BYTES) {
      throw new ServiceError(
        'RESOURCE_EXHAUSTED',
        `the request has ${request.length} bytes, ${MESSAGE_BYTES} are the most a link carries`,
      )
    }
    const { origin = this.#options.localId, deadlineMs, holder } = options
    if (request !== undefined && holder?.hold(request.length + PIECE_BYTES) === false) {
      throw new ServiceError('RESOURCE_EXHAUSTED', 'too many requests of this node wait for nodes that do not read')
    }
    const stream = new Stream(this, true, { operation, target, origin, deadlineMs }, request, holder)
    this.#own++
    this.#turns.open(stream)
    return stream
  }

  onOpen(listener: OpenListener): void {
    this.#openListener = listener
    const waiting = this.#waiting
    this.#waiting = []
    for (const [stream, request] of waiting) if (!stream.closed) this.#serve(stream, request)
  }

  sendRecord(record: NodeRecord): void {
    this.#turns.record(encodeRecordFrame(record))
  }

  onRecord(listener: (record: NodeRecord) => void): void {
    this.#recordListener = listener
    const last = this.#lastRecord
    this.#lastRecord = undefined
    if (last !== undefined) listener(last)
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
    this.#endStreams({ code: 'UNAVAILABLE', message })
    this.#send(encodeFrame('leave', {}))
  }

  #finish(reason: CloseReason, message: string, byPeer: boolean, isLost = false): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#turns.writable = false
    this.#heartbeat.stop()
    if (this.#leaving !== undefined) this.#options.clock.clearTimeout(this.#leaving.timer)
    this.#wire.handlers = deaf
    if (!isLost) this.#wire.close(reason === 'LOST' ? closeCodes.SHUTDOWN : closeCodes[reason], message)
    this.#endStreams({ code: 'UNAVAILABLE', message: `the link between node and hub is down: ${message}` })
    this.#resolveClosed({ reason, message, byPeer })
  }

  #endStreams(status: LinkStatus): void {
    this.#waiting = []
    for (const stream of [...this.#turns.unopened, ...this.#streams.values()]) stream.receiveOver(status)
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
    const { remoteAddress } = this.#wire
    const event: LinkEvent = { kind, message, remoteAddress, peerId: this.peerId }
    this.#options.report(error === undefined ? event : { ...event, error })
  }

  #lost(code: number, reason: string): void {
    if (this.#leaving !== undefined) this.#finish('LEFT', this.#leaving.message, false, true)
    else this.#finish(CLOSE_REASONS.get(code) ?? 'LOST', reason || 'the connection broke', true, true)
  }

  // Sending.

  #send(frame: Uint8Array): void {
    if (this.#isClosed) return
    if (!this.#wire.send(frame)) this.#turns.writable = false
    if (this.#wire.buffered > BACKLOG_BYTES) this.#die('the other side does not read')
  }

  #sendOpen(stream: Stream): void {
    if (this.#nextOwn >= LAST_STREAM) {
      this.#finish('SHUTDOWN', 'the stream ids of this connection are used up', false)
      return
    }
    stream.id = this.#nextOwn
    this.#nextOwn += 2
    this.#streams.set(stream.id, stream)
    const { operation, target, origin, deadlineMs = 0 } = stream
    const head = {
      stream: stream.id,
      operation,
      target,
      origin,
      deadlineMs: Math.min(0xffff_ffff, Math.max(0, Math.ceil(deadlineMs))),
    }
    const request = stream.takeRequest(FRAGMENT_BYTES)
    this.#send(encodeFrame('open', { ...head, request: request?.payload, requestContinues: request?.more ?? false }))
    this.#turns.ready(stream)
  }

  // What streams ask for.

  ready(stream: Stream): void {
    if (stream.id === 0) return
    this.#turns.ready(stream)
  }

  blocked(stream: Stream, isBlocked: boolean): void {
    this.#turns.blocked(stream, isBlocked)
  }

  sendMessage(stream: number, payload: Uint8Array, more: boolean): void {
    this.#send(encodeMessageFrame(stream, payload, more))
  }

  sendHalfClose(stream: number): void {
    this.#send(encodeFrame('halfClose', { stream }))
  }

  sendEnd(stream: number, status: LinkStatus): void {
    this.#send(endFrame(stream, status))
  }

  sendCancel(stream: number): void {
    this.#send(encodeFrame('cancel', { stream }))
  }

  sendWindow(stream: number, credit: number): void {
    this.#send(encodeFrame('window', { stream, credit }))
  }

  hold(bytes: number): boolean {
    if (bytes > 0 && this.#held + bytes > HELD_BYTES) return false
    this.#held += bytes
    return true
  }

  /** Bytes that the peer's data holds in memory now. */
  get held(): number {
    return this.#held
  }

  forget(stream: Stream): void {
    this.#turns.forget(stream)
    if (stream.id !== 0) this.#streams.delete(stream.id)
    if (stream.isOpener) this.#own--
    else this.#others--
  }

  failed(stream: Stream, error: unknown): void {
    this.#report('failed', `${stream.operation}: a handler failed`, error)
    stream.fail({ code: 'INTERNAL', message: 'internal error' })
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
    switch (frame.kind) {
      case 'open':
        this.#opened(frame.value)
        return
      case 'message':
        this.#find(frame.value.stream)?.receivePiece(frame.value.payload, frame.value.more)
        return
      case 'window':
        this.#find(frame.value.stream)?.receiveWindow(frame.value.credit)
        return
      case 'halfClose':
        this.#mustBe('other', frame.value.stream, 'half-closed')
        this.#find(frame.value.stream)?.receiveHalfClose()
        return
      case 'cancel':
        this.#mustBe('other', frame.value.stream, 'cancelled')
        this.#find(frame.value.stream)?.receiveOver({ code: 'CANCELLED', message: '' })
        return
      case 'end':
        this.#mustBe('own', frame.value.stream, 'ended')
        this.#find(frame.value.stream)?.receiveOver(statusOf(frame.value))
        return
      case 'ping':
        this.#send(encodeFrame('pong', { sequence: frame.value.sequence }))
        return
      case 'pong':
        this.#heartbeat.pong(frame.value.sequence)
        return
    }
    if (this.#options.side === 'hub') this.#handleAtHub(frame)
    else this.#handleAtNode(frame)
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
    if (frame.kind === 'removed') {
      if (!this.#options.verifyRemoval(frame.value.signature))
        throw new Violation('a removal that the hub has not signed')
      this.#finish('REMOVED', 'the hub has removed this node', true)
    } else if (frame.kind === 'left' && this.#leaving !== undefined) this.#finish('LEFT', this.#leaving.message, false)
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

  #opened(open: Open): void {
    const { stream: id } = open
    if (this.#isOwn(id) || id < this.#nextOther)
      throw new Violation(`stream ${id} cannot be opened, the next is ${this.#nextOther}`)
    if (id > LAST_STREAM) throw new Violation('a stream id that is too high')
    if (this.#others >= MAX_STREAMS) throw new Violation(`more than ${MAX_STREAMS} open streams`)
    this.#nextOther = id + 2
    const stream = new Stream(this, false, {
      operation: open.operation,
      target: open.target,
      origin: this.#options.side === 'hub' ? this.peerId : open.origin,
      deadlineMs: open.deadlineMs === 0 ? undefined : open.deadlineMs,
    })
    stream.id = id
    this.#others++
    this.#streams.set(id, stream)
    if (open.request === undefined) {
      this.#serve(stream, undefined)
      return
    }
    stream.handlers = {
      message: (request) => {
        stream.requestComplete()
        this.#serve(stream, request)
      },
    }
    stream.receivePiece(open.request, open.requestContinues)
  }

  #serve(stream: Stream, request: Uint8Array | undefined): void {
    if (this.#openListener === undefined) {
      this.#waiting.push([stream, request])
      return
    }
    try {
      this.#openListener(stream, request)
    } catch (error) {
      this.failed(stream, error)
    }
  }

  #isOwn(id: number): boolean {
    return id % 2 === (this.#options.side === 'node' ? 1 : 0)
  }

  #mustBe(opener: 'own' | 'other', id: number, what: string): void {
    if (this.#isOwn(id) !== (opener === 'own')) throw new Violation(`stream ${id} was ${what} from the wrong side`)
  }

  /** The open stream of that id; undefined when it is over. Throws when it was never opened. */
  #find(id: number): Stream | undefined {
    const stream = this.#streams.get(id)
    if (stream !== undefined) return stream
    if (id === 0 || id >= (this.#isOwn(id) ? this.#nextOwn : this.#nextOther)) {
      throw new Violation(`stream ${id} was never opened`)
    }
    return undefined
  }
}
