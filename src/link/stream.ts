/** One call of a session: its messages in order, its credit in both directions, its end. */
import { Assembly } from './assembly.ts'
import type { LinkStatus, LinkStream, StreamHandlers } from './link.ts'
import { FRAGMENT_BYTES, MESSAGE_BYTES, MESSAGE_OVERHEAD, PIECE_BYTES, Violation, WINDOW_BYTES } from './messages.ts'

/** Credit is returned when this much has been consumed. */
const CREDIT_STEP = WINDOW_BYTES / 4
/** A piece is cut to fit the credit unless it would come out smaller than this. */
const SMALLEST_PIECE = 1024
/** What may wait for credit; only a sender that ignores `writable` gets there. */
const QUEUE_BYTES = 2 * MESSAGE_BYTES
const UNREAD = 'too much waits on this link for readers that do not read'

/** Accounts for memory. */
export interface Holder {
  /** Takes `bytes` into account (negative: gives them back); false, and nothing is accounted, when that is more than it may hold. */
  hold(bytes: number): boolean
}

/** What a stream needs of its session. `hold` accounts for what the peer makes this side keep in memory. */
export interface StreamHost extends Holder {
  /** Whether the wire takes data now. */
  readonly writable: boolean
  /** The stream has something to send; it will be asked by `transmit`. */
  ready(stream: Stream): void
  /** The stream's sender waits for room (or no longer does); it will be asked by `drain` when the wire has some. */
  blocked(stream: Stream, isBlocked: boolean): void
  sendMessage(stream: number, payload: Uint8Array, more: boolean): void
  sendHalfClose(stream: number): void
  sendEnd(stream: number, status: LinkStatus): void
  sendCancel(stream: number): void
  sendWindow(stream: number, credit: number): void
  /** The stream is over. */
  forget(stream: Stream): void
  /** A handler threw. */
  failed(stream: Stream, error: unknown): void
}

interface Piece {
  readonly bytes: Uint8Array
  offset: number
  readonly more: boolean
  /** Who accounts for it while it waits. */
  readonly holder: Holder | undefined
}

export interface StreamCall {
  readonly operation: string
  readonly target: string
  readonly origin: string
  readonly deadlineMs: number | undefined
}

type Arrival =
  | { readonly kind: 'piece'; readonly bytes: Uint8Array; readonly more: boolean }
  | { readonly kind: 'halfClose' | 'cancel' }
  | { readonly kind: 'end'; readonly status: LinkStatus }

export class Stream implements LinkStream {
  readonly operation: string
  readonly target: string
  readonly origin: string
  readonly deadlineMs: number | undefined
  /** Whether this side opened it. */
  readonly isOpener: boolean
  /** 0 until the session has sent its Open. */
  id = 0
  readonly #host: StreamHost

  // Sending.
  #credit = WINDOW_BYTES
  readonly #queue: Piece[] = []
  #head = 0
  #queued = 0
  /** The sender was told to wait. */
  #blocked = false
  /** No more messages from this side. */
  #sendDone = false
  #closing: LinkStatus | 'halfClose' | undefined

  // Receiving.
  /** What the peer may still send. */
  #allowance = WINDOW_BYTES
  /** Consumed, not yet given back. */
  #owed = 0
  /** Not to be given back before `resume`. */
  #withheld = 0
  /** What the pieces that it stands for are accounted with. */
  #heldForIt = 0
  #paused = false
  #receiveDone = false
  readonly #assembly: Assembly
  /** Bytes of the message under way. */
  #incoming = 0
  #isMidMessage = false
  #handlers: StreamHandlers | undefined
  #kept: Arrival[] | undefined
  /** Nothing goes over the wire any more. */
  #closed = false
  /** The holder is told nothing any more. */
  #silent = false

  /**
   * `request`: the opener's only message; undefined on the server's side and for a bidirectional call. `holder` accounts for the request
   * until it has left, and has done so already.
   */
  constructor(host: StreamHost, isOpener: boolean, call: StreamCall, request?: Uint8Array, holder?: Holder) {
    this.#host = host
    this.isOpener = isOpener
    this.operation = call.operation
    this.target = call.target
    this.origin = call.origin
    this.deadlineMs = call.deadlineMs
    this.#assembly = new Assembly((bytes) => this.#hold(bytes))
    if (request === undefined) return
    this.#sendDone = true
    this.#push(request, false, holder)
  }

  get closed(): boolean {
    return this.#closed || typeof this.#closing === 'object'
  }

  get writable(): boolean {
    return !this.#closed && !this.#sendDone && this.#closing === undefined && this.#hasRoom
  }

  get #hasRoom(): boolean {
    return this.#queued === 0 && this.#credit > MESSAGE_OVERHEAD && this.id !== 0 && this.#host.writable
  }

  get handlers(): StreamHandlers {
    return this.#handlers ?? {}
  }

  set handlers(handlers: StreamHandlers) {
    this.#handlers = handlers
    const kept = this.#kept
    if (kept === undefined) return
    this.#kept = undefined
    this.#release()
    for (const arrival of kept) this.#arrive(arrival)
  }

  send(bytes: Uint8Array): boolean {
    return this.#send(bytes, false, this.#host)
  }

  sendFragment(bytes: Uint8Array, more: boolean): boolean {
    // Whoever passes pieces on withholds the credit of the other stream, and is accounted for there.
    return this.#send(bytes, more, undefined)
  }

  hold(bytes: number): boolean {
    return this.#host.hold(bytes)
  }

  #send(bytes: Uint8Array, more: boolean, holder: Holder | undefined): boolean {
    if (this.#closed || this.#sendDone || this.#closing !== undefined) return false
    if (holder?.hold(bytes.length + PIECE_BYTES) === false) {
      this.#overflow(UNREAD)
      return false
    }
    this.#push(bytes, more, holder)
    if (bytes.length > MESSAGE_BYTES) {
      this.#overflow(`a message of ${bytes.length} bytes, ${MESSAGE_BYTES} are the most a link carries`)
    } else if (this.#queued > QUEUE_BYTES) {
      this.#overflow('messages were sent faster than the other side takes them')
    } else this.#host.ready(this)
    const { writable } = this
    if (!writable) this.#setBlocked(true)
    return writable
  }

  #push(bytes: Uint8Array, more: boolean, holder: Holder | undefined): void {
    this.#queue.push({ bytes, offset: 0, more, holder })
    this.#queued += bytes.length + MESSAGE_OVERHEAD
  }

  #setBlocked(isBlocked: boolean): void {
    if (this.#blocked === isBlocked || this.#closed) return
    this.#blocked = isBlocked
    this.#host.blocked(this, isBlocked)
  }

  #overflow(message: string): void {
    this.fail({ code: 'RESOURCE_EXHAUSTED', message })
  }

  /** Ends the stream from this side, whichever it is, without what waits; the holder is told. */
  fail(status: LinkStatus): void {
    if (this.#closed) return
    this.#dropQueue()
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
    if (this.#closed || this.#sendDone || this.#closing !== undefined) return
    this.#closing = 'halfClose'
    this.#host.ready(this)
  }

  end(status: LinkStatus): void {
    if (this.isOpener) throw new Error('only the server of a stream ends it')
    if (this.#closed || this.#closing !== undefined) return
    this.#closing = status
    this.#silent = true
    this.#kept = undefined
    this.#assembly.drop()
    this.resume()
    this.#host.ready(this)
  }

  cancel(): void {
    if (!this.isOpener) throw new Error('only the opener of a stream cancels it')
    if (this.#closed) return
    if (this.id !== 0) this.#host.sendCancel(this.id)
    this.#over()
  }

  resume(): void {
    this.#paused = false
    if (this.#kept !== undefined) return
    this.#give(this.#release())
  }

  // What the session calls.

  /** Sends one frame if credit and wire allow; returns whether more could follow at once. */
  transmit(): boolean {
    if (this.#closed) return false
    const piece = this.#queue[this.#head]
    if (piece !== undefined) {
      const rest = piece.bytes.length - piece.offset
      const length = Math.min(rest, FRAGMENT_BYTES, this.#credit - MESSAGE_OVERHEAD)
      if (length < 0 || (length < rest && length < SMALLEST_PIECE)) return false
      const payload =
        length === piece.bytes.length ? piece.bytes : piece.bytes.subarray(piece.offset, piece.offset + length)
      this.#spend(piece, length)
      this.#host.sendMessage(this.id, payload, length < rest || piece.more)
      return this.#head < this.#queue.length || this.#closing !== undefined
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
    const piece = this.#queue[this.#head]
    if (!this.#sendDone || piece === undefined) return undefined
    const length = Math.min(piece.bytes.length, most)
    const payload = piece.bytes.subarray(0, length)
    this.#spend(piece, length)
    return { payload, more: length < piece.bytes.length }
  }

  #spend(piece: Piece, length: number): void {
    piece.offset += length
    this.#credit -= length + MESSAGE_OVERHEAD
    this.#queued -= length
    if (piece.offset < piece.bytes.length) return
    this.#queued -= MESSAGE_OVERHEAD
    this.#shift()
  }

  #shift(): void {
    letGo(this.#queue[this.#head] as Piece)
    this.#queue[this.#head] = undefined as never
    this.#head++
    if (this.#head < 64 && this.#head < this.#queue.length) return
    this.#queue.splice(0, this.#head)
    this.#head = 0
  }

  #dropQueue(): void {
    for (let i = this.#head; i < this.#queue.length; i++) letGo(this.#queue[i] as Piece)
    this.#queue.length = 0
    this.#head = 0
    this.#queued = 0
    this.#closing = undefined
  }

  /** Tells a sender that was told to wait that there is room, if there is. */
  drain(): void {
    if (!this.#blocked || !this.writable) return
    this.#setBlocked(false)
    this.#call(() => this.#handlers?.drain?.())
  }

  receiveWindow(credit: number): void {
    this.#credit += credit
    if (this.#credit > WINDOW_BYTES) throw new Violation('more credit was returned than was spent')
    if (this.#queue.length > 0 || this.#closing !== undefined) this.#host.ready(this)
    this.drain()
  }

  receivePiece(bytes: Uint8Array, more: boolean): void {
    if (this.#receiveDone) throw new Violation('a message after the last one')
    const cost = bytes.length + MESSAGE_OVERHEAD
    if (cost > this.#allowance) throw new Violation('a message beyond the credit')
    this.#allowance -= cost
    this.#incoming += bytes.length
    if (this.#incoming > MESSAGE_BYTES) throw new Violation(`a message longer than ${MESSAGE_BYTES} bytes`)
    this.#isMidMessage = more
    if (!more) this.#incoming = 0
    this.#receive({ kind: 'piece', bytes, more })
  }

  receiveHalfClose(): void {
    if (this.#receiveDone) throw new Violation('the stream was half-closed before')
    if (this.#isMidMessage) throw new Violation('a half-close in the middle of a message')
    this.#receiveDone = true
    this.#receive({ kind: 'halfClose' })
  }

  /** The opener's stream ended, or the server's was cancelled, or the session was lost. */
  receiveOver(status: LinkStatus): void {
    if (this.#closed) return
    this.#over(this.isOpener ? { kind: 'end', status } : { kind: 'cancel' })
  }

  /** No more pieces of the request will come. */
  requestComplete(): void {
    this.#receiveDone = true
    this.#handlers = undefined
  }

  #receive(arrival: Arrival): void {
    if (this.#silent) return
    if (this.#handlers === undefined || this.#kept !== undefined) this.#keep(arrival)
    else this.#arrive(arrival)
  }

  #keep(arrival: Arrival): void {
    this.#kept ??= []
    this.#kept.push(arrival)
    if (arrival.kind === 'piece') this.#withhold(arrival.bytes.length)
  }

  #arrive(arrival: Arrival): void {
    const handlers = this.#handlers
    if (this.#silent) return
    if (handlers === undefined) {
      this.#keep(arrival)
      return
    }
    switch (arrival.kind) {
      case 'piece':
        this.#deliver(handlers, arrival.bytes, arrival.more)
        return
      case 'halfClose':
        this.#call(() => handlers.halfClose?.())
        return
      case 'cancel':
        this.#silent = true
        this.#assembly.drop()
        this.#call(() => handlers.cancel?.())
        return
      case 'end':
        this.#silent = true
        this.#assembly.drop()
        this.#call(() => handlers.end?.(arrival.status))
    }
  }

  #deliver(handlers: StreamHandlers, bytes: Uint8Array, more: boolean): void {
    let result: unknown
    if (handlers.fragment !== undefined) {
      this.#call(() => {
        result = handlers.fragment?.(bytes, more)
      })
    } else {
      const whole = this.#assembly.add(bytes, more)
      if (whole !== undefined) {
        this.#call(() => {
          result = handlers.message?.(whole)
        })
      }
    }
    if (this.#closed) return
    if (result === false) this.#paused = true
    if (this.#paused) this.#withhold(bytes.length)
    else this.#give(bytes.length + MESSAGE_OVERHEAD)
  }

  /** A piece of that length is kept, and its credit with it. */
  #withhold(length: number): void {
    if (!this.#hold(length + PIECE_BYTES)) return
    this.#withheld += length + MESSAGE_OVERHEAD
    this.#heldForIt += length + PIECE_BYTES
  }

  /** What was kept is not any more; returns its credit. */
  #release(): number {
    const withheld = this.#withheld
    this.#host.hold(-this.#heldForIt)
    this.#withheld = 0
    this.#heldForIt = 0
    return withheld
  }

  #hold(bytes: number): boolean {
    if (this.#host.hold(bytes)) return true
    this.fail({ code: 'RESOURCE_EXHAUSTED', message: UNREAD })
    return false
  }

  #give(cost: number): void {
    if (this.#receiveDone || this.#closed) return
    this.#owed += cost
    if (this.#owed < CREDIT_STEP) return
    this.#allowance += this.#owed
    this.#host.sendWindow(this.id, this.#owed)
    this.#owed = 0
  }

  /** `last` is what the holder is told, unless the end was its own. */
  #over(last?: Arrival): void {
    this.#setBlocked(false)
    this.#closed = true
    this.#dropQueue()
    this.#host.forget(this)
    if (last === undefined) {
      this.#silent = true
      this.#kept = undefined
    }
    if (this.#silent) this.#assembly.drop()
    else if (this.#kept !== undefined || this.#handlers === undefined) {
      // Not told yet; what was kept is accounted for until it is.
      this.#keep(last as Arrival)
      return
    } else this.#arrive(last as Arrival)
    this.#release()
  }

  #call(handler: () => void): void {
    try {
      handler()
    } catch (error) {
      this.#host.failed(this, error)
    }
  }
}

/** A piece does not wait any more. */
function letGo({ holder, bytes }: Piece): void {
  holder?.hold(-(bytes.length + PIECE_BYTES))
}
