/** The streams of one session: opened by this side, answered for the other, found by their ids, and what they send. */
import type { Clock } from '../contract/clock.ts'
import { ServiceError } from '../contract/errors.ts'
import { Account } from './accounting.ts'
import { Callers } from './callers.ts'
import type { LinkStatus, LinkStream, OpenOptions } from './link.ts'
import { MessageTurns } from './message-turns.ts'
import {
  encodeFrame,
  encodeMessageFrame,
  endFrame,
  type Frame,
  MAX_FIRST_PIECE_BYTES,
  MAX_MESSAGE_BYTES,
  MAX_STREAMS,
  type Open,
  PIECE_BYTES,
  statusOfEnd,
} from './messages.ts'
import { Stream } from './stream.ts'
import type { StreamHost } from './stream-host.ts'
import { StreamTable } from './stream-table.ts'
import { Turns } from './turns.ts'

/** Why a session ends whose streams have had all ids. */
export const USED_UP = 'the stream ids of this connection are used up'

/** A stream of which nothing was read for so long may be ended to make room for others, milliseconds. */
const UNREAD_MS = 1_000

export type OpenListener = (stream: LinkStream, request: Uint8Array | undefined) => void

/** What the streams need of their session. */
export interface StreamsOptions {
  readonly side: 'node' | 'hub'
  /** Id of this end; the origin of calls that name none. */
  readonly localId: string
  readonly peerId: string
  /** Both ends are servers of one hub: each says for which node it calls. */
  readonly isServerLink: boolean
  readonly clock: Clock
  /** Sends one frame. */
  send(frame: Uint8Array): void
  /** The stream ids of this connection are used up. */
  usedUp(): void
  /** A handler of a stream of that operation threw. */
  failed(operation: string, error: unknown): void
}

export class Streams implements StreamHost<Stream> {
  readonly #options: StreamsOptions
  readonly #account = new Account()
  readonly messageTurns: MessageTurns
  /** Streams of which something is held that waits to be read, and when something of it was read last; the longest ago first. */
  readonly #unread = new Map<Stream, number>()
  readonly #table: StreamTable
  readonly #turns: Turns
  /** Of a hub: the nodes whose calls it carries here. */
  readonly #callers: Callers | undefined
  /** Complete calls that wait for `onOpen`. */
  #waiting: [Stream, Uint8Array | undefined][] = []
  /** Timers of the calls whose request has not come whole. */
  readonly #incomplete = new Map<Stream, unknown>()
  #own = 0
  #others = 0
  #listener: OpenListener | undefined

  constructor(options: StreamsOptions) {
    this.#options = options
    this.messageTurns = new MessageTurns(options.clock, () => this.#account.held)
    this.#table = new StreamTable(options.side)
    this.#callers = options.side === 'hub' || options.isServerLink ? new Callers(MAX_STREAMS) : undefined
    this.#turns = new Turns({ send: options.send, sendOpen: (stream) => this.#sendOpen(stream) })
  }

  /** Open streams, both directions. */
  get count(): number {
    return this.#own + this.#others
  }

  /** Bytes that the peer's data holds in memory now. */
  get held(): number {
    return this.#account.held
  }

  /** Opens a stream, see LinkSession.open. */
  open(operation: string, target: string, request: Uint8Array | undefined, options: OpenOptions): LinkStream {
    if (this.#own >= MAX_STREAMS) {
      throw new ServiceError('RESOURCE_EXHAUSTED', `${MAX_STREAMS} calls are open on the link between node and hub`)
    }
    if (request !== undefined && request.length > MAX_MESSAGE_BYTES) {
      throw new ServiceError(
        'RESOURCE_EXHAUSTED',
        `the request has ${request.length} bytes, ${MAX_MESSAGE_BYTES} are the most a link carries`,
      )
    }
    const { origin = this.#options.localId, deadlineMs, holder } = options
    if (deadlineMs !== undefined && deadlineMs <= 0) throw new ServiceError('DEADLINE_EXCEEDED', tooLate(operation))
    if (this.#callers?.mayAdd(origin) === false) {
      throw new ServiceError(
        'RESOURCE_EXHAUSTED',
        `node ${origin} has ${this.#callers.count(origin)} calls open on the link to node ${this.#options.peerId}; the rest of its ${MAX_STREAMS} is kept for other nodes`,
      )
    }
    if (request !== undefined && holder?.hold(request.length + PIECE_BYTES) === false) {
      throw new ServiceError('RESOURCE_EXHAUSTED', 'too many requests of this node wait for nodes that do not read')
    }
    const stream = new Stream(this, true, { operation, target, origin, deadlineMs }, request, holder)
    this.#own++
    this.#callers?.add(origin)
    this.#turns.open(stream)
    return stream
  }

  onOpen(listener: OpenListener): void {
    this.#listener = listener
    const waiting = this.#waiting
    this.#waiting = []
    for (const [stream, request] of waiting) if (!stream.closed) this.#serve(stream, request)
  }

  /** Ends them all: their holders are told `status`. */
  end(status: LinkStatus): void {
    this.#waiting = []
    for (const stream of [...this.#turns.unopened, ...this.#table.all]) stream.receiveOver(status)
  }

  /** Sends a record, after those before it and before anything else that waits. */
  sendRecord(frame: Uint8Array): void {
    this.#turns.record(frame)
  }

  /** No calls and messages are sent for now. */
  full(): void {
    this.#turns.writable = false
  }

  /** They are again. */
  drained(): void {
    this.#turns.drained()
  }

  /** Handles a frame that is about a stream; false: it is about something else. Throws Violation. */
  handle(frame: Frame): boolean {
    switch (frame.kind) {
      case 'message':
        this.#table.find(frame.value.stream)?.receivePiece(frame.value.payload, frame.value.more)
        return true
      case 'window':
        this.#table.find(frame.value.stream)?.receiveWindow(frame.value.credit)
        return true
      case 'open':
        this.#opened(frame.value)
        return true
      case 'halfClose':
        this.#table.mustBe('other', frame.value.stream, 'half-closed')
        this.#table.find(frame.value.stream)?.receiveHalfClose()
        return true
      case 'cancel':
        this.#table.mustBe('other', frame.value.stream, 'cancelled')
        this.#table.find(frame.value.stream)?.receiveOver({ code: 'CANCELLED', message: '' })
        return true
      case 'end':
        this.#table.mustBe('own', frame.value.stream, 'ended')
        this.#table.find(frame.value.stream)?.receiveOver(statusOfEnd(frame.value, this.#options.isServerLink))
        return true
    }
    return false
  }

  // What streams ask for.

  now(): number {
    return this.#options.clock.now()
  }

  get writable(): boolean {
    return this.#turns.writable
  }

  ready(stream: Stream): void {
    if (stream.id === 0) return
    this.#turns.ready(stream)
  }

  blocked(stream: Stream, isBlocked: boolean): void {
    this.#turns.blocked(stream, isBlocked)
  }

  sendMessage(stream: number, payload: Uint8Array, more: boolean): void {
    this.#options.send(encodeMessageFrame(stream, payload, more))
  }

  sendHalfClose(stream: number): void {
    this.#options.send(encodeFrame('halfClose', { stream }))
  }

  sendEnd(stream: number, status: LinkStatus): void {
    this.#options.send(endFrame(stream, status))
  }

  sendCancel(stream: number): void {
    this.#options.send(encodeFrame('cancel', { stream }))
  }

  sendWindow(stream: number, credit: number): void {
    this.#options.send(encodeFrame('window', { stream, credit }))
  }

  hold(bytes: number, message?: Uint8Array): boolean {
    if (!this.#account.hold(bytes, message)) return false
    if (bytes < 0) this.messageTurns.eased()
    return true
  }

  holdFor(stream: Stream, bytes: number, message?: Uint8Array): boolean {
    while (!this.#account.hold(bytes, message)) {
      const least = this.#leastRead()
      if (least === undefined || least === stream) return false
      least.giveRoom()
    }
    return true
  }

  unread(stream: Stream): void {
    if (!this.#unread.has(stream)) this.#unread.set(stream, this.now())
  }

  read(stream: Stream, isUnread: boolean): void {
    if (this.#unread.delete(stream) && isUnread) this.#unread.set(stream, this.now())
  }

  /** Of the streams that nobody reads, the one for which most is held; of several, the one that was read longest ago. */
  #leastRead(): Stream | undefined {
    const before = this.now() - UNREAD_MS
    let most = 0
    let found: Stream | undefined
    for (const [stream, at] of this.#unread) {
      if (at > before) break
      const { unreadBytes } = stream
      if (unreadBytes <= most) continue
      most = unreadBytes
      found = stream
    }
    return found
  }

  forget(stream: Stream): void {
    this.#unread.delete(stream)
    this.#turns.forget(stream)
    this.#table.forget(stream)
    this.#complete(stream)
    if (!stream.isOpener) {
      this.#others--
      return
    }
    this.#own--
    this.#callers?.remove(stream.origin)
  }

  failed(stream: Stream, error: unknown): void {
    this.#options.failed(stream.operation, error)
    stream.fail({ code: 'INTERNAL', message: 'internal error' })
  }

  #sendOpen(stream: Stream): void {
    const { timeLeft = Number.POSITIVE_INFINITY } = stream
    if (timeLeft <= 0) {
      stream.fail(late(stream))
      return
    }
    if (!this.#table.open(stream)) {
      this.#options.usedUp()
      // It has neither a place in the row any more, nor an id.
      stream.receiveOver({ code: 'UNAVAILABLE', message: `the link between node and hub is down: ${USED_UP}` })
      return
    }
    const { operation, target, origin } = stream
    const head = {
      stream: stream.id,
      operation,
      target,
      origin,
      deadlineMs: stream.deadlineMs === undefined ? 0 : Math.min(0xffff_ffff, Math.ceil(timeLeft)),
    }
    const request = stream.takeRequest(MAX_FIRST_PIECE_BYTES)
    this.#options.send(
      encodeFrame('open', { ...head, request: request?.payload, requestContinues: request?.more ?? false }),
    )
    this.#turns.ready(stream)
  }

  #opened(open: Open): void {
    const { stream: id } = open
    this.#table.mayOpen(id, this.#others)
    const { side, peerId, isServerLink } = this.#options
    const isNode = side === 'hub' && !isServerLink
    const stream = new Stream(this, false, {
      operation: open.operation,
      target: open.target,
      origin: isNode ? peerId : open.origin,
      deadlineMs: open.deadlineMs === 0 ? undefined : open.deadlineMs,
    })
    this.#others++
    this.#table.opened(stream, id)
    if (open.request === undefined) {
      this.#serve(stream, undefined)
      return
    }
    if (open.requestContinues) this.#awaitRequest(stream)
    stream.handlers = {
      message: (request) => {
        this.#complete(stream)
        stream.requestComplete()
        this.#serve(stream, request)
      },
    }
    stream.receivePiece(open.request, open.requestContinues)
  }

  /** The caller's time goes on while its request comes. */
  #awaitRequest(stream: Stream): void {
    if (stream.deadlineMs === undefined) return
    const { clock } = this.#options
    const timer = clock.setTimeout(() => stream.fail(late(stream)), stream.deadlineMs)
    this.#incomplete.set(stream, timer)
  }

  #complete(stream: Stream): void {
    const timer = this.#incomplete.get(stream)
    if (timer === undefined) return
    this.#incomplete.delete(stream)
    this.#options.clock.clearTimeout(timer)
  }

  #serve(stream: Stream, request: Uint8Array | undefined): void {
    if (this.#listener === undefined) {
      this.#waiting.push([stream, request])
      return
    }
    // A timer may be later than what has come meanwhile.
    if (stream.timeLeft !== undefined && stream.timeLeft <= 0) {
      stream.fail(late(stream))
      return
    }
    try {
      this.#listener(stream, request)
    } catch (error) {
      this.failed(stream, error)
    }
  }
}

/** The caller does not wait any more, and the call has not begun. */
function late({ operation }: Stream): LinkStatus {
  return { code: 'DEADLINE_EXCEEDED', message: tooLate(operation) }
}

function tooLate(operation: string): string {
  return `${operation} took longer than its caller waits`
}
