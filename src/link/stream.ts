/** One call of a session: what it is, whether it is open, and its end; what it sends and receives are in files of their own. */
import type { Holder } from './accounting.ts'
import type { LinkStatus, LinkStream, StreamHandlers } from './link.ts'
import type { MessageTurns } from './message-turns.ts'
import { MAX_MESSAGE_BYTES, PIECE_BYTES } from './messages.ts'
import { Receiving, type ReceivingStream, type StreamArrival } from './receiving.ts'
import { Sending } from './sending.ts'
import type { StreamCall, StreamHost } from './stream-host.ts'

/** What may wait for credit; only a sender that ignores `writable` gets there. */
const MAX_QUEUE_BYTES = 2 * MAX_MESSAGE_BYTES
/** How one ends that nobody reads, so that others have room, and one that finds none. */
const UNREAD =
  'nothing was read of this stream for a while, and too much waits on the link between node and hub; open it again and read faster'
const FULL = 'too much waits to be read on the link between node and hub; try again'

export class Stream implements LinkStream, ReceivingStream {
  readonly operation: string
  readonly target: string
  readonly origin: string
  readonly deadlineMs: number | undefined
  /** Whether this side opened it. */
  readonly isOpener: boolean
  /** 0 until the session has sent its Open. */
  id = 0
  readonly #host: StreamHost<Stream>
  readonly #begun: number
  readonly #sending = new Sending()
  readonly #receiving: Receiving
  /** The sender was told to wait. */
  #blocked = false
  /** No more messages from this side. */
  #sendDone = false
  #closing: LinkStatus | 'halfClose' | undefined
  #isOver = false

  /**
   * `request`: the opener's only message; undefined on the server's side and for a bidirectional call. `holder` accounts for the request
   * until it has left, and has done so already.
   */
  constructor(host: StreamHost<Stream>, isOpener: boolean, call: StreamCall, request?: Uint8Array, holder?: Holder) {
    this.#host = host
    this.#begun = host.now()
    this.isOpener = isOpener
    this.operation = call.operation
    this.target = call.target
    this.origin = call.origin
    this.deadlineMs = call.deadlineMs
    this.#receiving = new Receiving(this)
    if (request === undefined) return
    this.#sendDone = true
    this.#sending.push(request, false, holder)
  }

  get timeLeft(): number | undefined {
    return this.deadlineMs === undefined ? undefined : this.deadlineMs - (this.#host.now() - this.#begun)
  }

  get closed(): boolean {
    return this.#isOver || typeof this.#closing === 'object'
  }

  get writable(): boolean {
    return (
      !this.#isOver &&
      !this.#sendDone &&
      this.#closing === undefined &&
      this.#sending.hasRoom &&
      this.id !== 0 &&
      this.#host.writable
    )
  }

  get handlers(): StreamHandlers {
    return this.#receiving.handlers ?? {}
  }

  set handlers(handlers: StreamHandlers) {
    this.#receiving.listen(handlers)
  }

  send(bytes: Uint8Array): boolean {
    if (!this.#mayBeSent) return false
    if (!this.#hold(bytes.length + PIECE_BYTES, bytes)) return false
    const isWritable = this.#send(bytes, false, this.#host)
    if (!this.#sending.isEmpty) this.#host.unread(this)
    return isWritable
  }

  sendFragment(bytes: Uint8Array, more: boolean): boolean {
    // Whoever passes pieces on withholds the credit of the other stream, and is accounted for there.
    return this.#mayBeSent && this.#send(bytes, more, undefined)
  }

  hold(bytes: number): boolean {
    return this.#host.hold(bytes)
  }

  get #mayBeSent(): boolean {
    return !this.#isOver && !this.#sendDone && this.#closing === undefined
  }

  /** Accounts for what this stream makes its session keep; false when that is too much, which has ended the stream. */
  #hold(bytes: number, message?: Uint8Array): boolean {
    const wasOver = this.#isOver
    if (!this.#host.holdFor(this, bytes, message)) {
      this.#overflow(FULL)
      return false
    }
    // What had to end for it may have ended this one as well.
    if (wasOver || !this.#isOver) return true
    this.#host.hold(-bytes, message)
    return false
  }

  /** `holder` has accounted for it. */
  #send(bytes: Uint8Array, more: boolean, holder: Holder | undefined): boolean {
    this.#sending.push(bytes, more, holder)
    if (bytes.length > MAX_MESSAGE_BYTES) {
      this.#overflow(`a message of ${bytes.length} bytes, ${MAX_MESSAGE_BYTES} are the most a link carries`)
    } else if (this.#sending.queued > MAX_QUEUE_BYTES) {
      this.#overflow('messages were sent faster than the other side takes them')
    } else this.#host.ready(this)
    const { writable } = this
    if (!writable) this.#setBlocked(true)
    return writable
  }

  #setBlocked(isBlocked: boolean): void {
    if (this.#blocked === isBlocked || this.#isOver) return
    this.#blocked = isBlocked
    this.#host.blocked(this, isBlocked)
  }

  #overflow(message: string): void {
    this.fail({ code: 'RESOURCE_EXHAUSTED', message })
  }

  /** Ends the stream from this side, whichever it is, without what waits; the holder is told. */
  fail(status: LinkStatus): void {
    if (this.#isOver) return
    this.#drop()
    if (this.isOpener) {
      if (this.id !== 0) this.#host.sendCancel(this.id)
      this.#over({ kind: 'end', status })
    } else {
      this.#host.sendEnd(this.id, status)
      this.#over({ kind: 'cancel' })
    }
  }

  halfClose(): void {
    if (!this.isOpener) throw new Error('only the opener of a stream half-closes it')
    if (this.#isOver || this.#sendDone || this.#closing !== undefined) return
    this.#closing = 'halfClose'
    this.#host.ready(this)
  }

  end(status: LinkStatus): void {
    if (this.isOpener) throw new Error('only the server of a stream ends it')
    if (this.#isOver || this.#closing !== undefined) return
    this.#closing = status
    this.#receiving.silence()
    this.#host.ready(this)
  }

  cancel(): void {
    if (!this.isOpener) throw new Error('only the opener of a stream cancels it')
    if (this.#isOver) return
    if (this.id !== 0) this.#host.sendCancel(this.id)
    this.#over()
  }

  resume(): void {
    this.#receiving.resume()
  }

  // What the session calls.

  /** What waits to be read, at either end, bytes. */
  get unreadBytes(): number {
    return this.#sending.queued + this.#receiving.unread
  }

  /** Ends it, since nobody reads it and others need the room. */
  giveRoom(): void {
    this.#overflow(UNREAD)
  }

  /** Sends one frame if credit and transport allow; returns whether more could follow at once. */
  transmit(): boolean {
    if (this.#isOver) return false
    if (!this.#sending.isEmpty) {
      if (!this.#sending.transmit(this.#host, this.id)) return false
      this.read()
      return !this.#sending.isEmpty || this.#closing !== undefined
    }
    const closing = this.#closing
    if (closing === undefined) return false
    if (closing === 'halfClose') {
      this.#closing = undefined
      this.#sendDone = true
      this.#host.sendHalfClose(this.id)
    } else {
      this.#host.sendEnd(this.id, closing)
      this.#over()
    }
    return false
  }

  /** The first piece of the request, for the Open; undefined for a bidirectional call. */
  takeRequest(most: number): { payload: Uint8Array; more: boolean } | undefined {
    return this.#sendDone ? this.#sending.takeFirst(most) : undefined
  }

  /** Tells a sender that was told to wait that there is room, if there is. */
  drain(): void {
    if (!this.#blocked || !this.writable) return
    this.#setBlocked(false)
    try {
      this.#receiving.handlers?.drain?.()
    } catch (error) {
      this.handlerFailed(error)
    }
  }

  receiveWindow(credit: number): void {
    this.#sending.credit(credit)
    this.read()
    if (!this.#sending.isEmpty || this.#closing !== undefined) this.#host.ready(this)
    this.drain()
  }

  receivePiece(bytes: Uint8Array, more: boolean): void {
    this.#receiving.piece(bytes, more)
  }

  receiveHalfClose(): void {
    this.#receiving.halfClose()
  }

  /** The opener's stream ended, or the server's was cancelled, or the session was lost. */
  receiveOver(status: LinkStatus): void {
    if (this.#isOver) return
    this.#over(this.isOpener ? { kind: 'end', status } : { kind: 'cancel' })
  }

  /** No more pieces of the request will come. */
  requestComplete(): void {
    this.#receiving.requestComplete()
  }

  // What the receiving side calls.

  get isOver(): boolean {
    return this.#isOver
  }

  account(bytes: number): boolean {
    return bytes > 0 ? this.#hold(bytes) : this.#host.hold(bytes)
  }

  get messageTurns(): MessageTurns {
    return this.#host.messageTurns
  }

  unread(): void {
    this.#host.unread(this)
  }

  read(): void {
    this.#host.read(this, this.unreadBytes > 0)
  }

  giveCredit(bytes: number): void {
    this.#host.sendWindow(this.id, bytes)
  }

  handlerFailed(error: unknown): void {
    this.#host.failed(this, error)
  }

  #drop(): void {
    this.#sending.drop()
    this.#closing = undefined
  }

  /** `last` is what the holder is told, unless the end was its own. */
  #over(last?: StreamArrival): void {
    this.#setBlocked(false)
    this.#isOver = true
    this.#drop()
    this.#host.forget(this)
    this.#receiving.over(last)
  }
}
