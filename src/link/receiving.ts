/** What one side of a stream receives: pieces within the credit, told to the holder in order, credit given back as they are consumed. */
import { Assembly } from './assembly.ts'
import type { LinkStatus, StreamHandlers } from './link.ts'
import { MAX_SMALL_BYTES, type MessageTurns, type Reading } from './message-turns.ts'
import { MAX_MESSAGE_BYTES, MESSAGE_OVERHEAD, PIECE_BYTES, Violation, WINDOW_BYTES } from './messages.ts'

/** Credit is returned when this much has been consumed. */
const CREDIT_STEP = WINDOW_BYTES / 4

export type StreamArrival =
  | { readonly kind: 'piece'; readonly bytes: Uint8Array; readonly more: boolean }
  | { readonly kind: 'halfClose' | 'cancel' }
  | { readonly kind: 'end'; readonly status: LinkStatus }

/** What the receiving side needs of its stream. */
export interface ReceivingStream {
  /** Nothing goes over the transport any more. */
  readonly isOver: boolean
  /** Whose long message goes on, of all streams of the link. */
  readonly messageTurns: MessageTurns
  /** Accounts for what is kept in memory (negative: given back); false when that is too much, which has ended the stream. */
  account(bytes: number): boolean
  /** Gives credit to the peer. */
  giveCredit(bytes: number): void
  /** What waits to be read has become more, or less. */
  unread(): void
  read(): void
  /** A handler threw. */
  handlerFailed(error: unknown): void
}

/** The messages of one direction on their way to the holder, and the credit that the peer has for more. */
export class Receiving implements Reading {
  readonly #stream: ReceivingStream
  /** What the peer may still send. */
  #allowance = WINDOW_BYTES
  /** Consumed, not yet given back. */
  #owed = 0
  /** Not to be given back before `resume`. */
  #withheld = 0
  /** What the pieces that it stands for are accounted with. */
  #heldForIt = 0
  #isPaused = false
  /** The message under way is long and waits for its turn. */
  #isWaiting = false
  /** No more messages from the peer. */
  #isDone = false
  readonly #assembly: Assembly
  /** Bytes of the message under way. */
  #incoming = 0
  #isMidMessage = false
  #handlers: StreamHandlers | undefined
  #kept: StreamArrival[] | undefined
  /** The holder is told nothing any more. */
  #isSilent = false

  constructor(stream: ReceivingStream) {
    this.#stream = stream
    this.#assembly = new Assembly((bytes) => stream.account(bytes))
  }

  /** What is held and waits to be read, bytes. */
  get unread(): number {
    return this.#heldForIt + this.#assembly.held
  }

  get handlers(): StreamHandlers | undefined {
    return this.#handlers
  }

  /** Sets them and tells them what was kept. */
  listen(handlers: StreamHandlers): void {
    this.#handlers = handlers
    const kept = this.#kept
    if (kept === undefined) return
    this.#kept = undefined
    this.#release()
    for (const arrival of kept) this.#arrive(arrival)
  }

  resume(): void {
    this.#isPaused = false
    if (this.#kept !== undefined) return
    this.#goOn()
  }

  /** It is the turn of the message under way. */
  proceed(): void {
    this.#isWaiting = false
    this.#goOn()
  }

  /** A piece has come; throws Violation when it may not. */
  piece(bytes: Uint8Array, more: boolean): void {
    if (this.#isDone) throw new Violation('a message after the last one')
    const cost = bytes.length + MESSAGE_OVERHEAD
    if (cost > this.#allowance) throw new Violation('a message beyond the credit')
    this.#allowance -= cost
    this.#incoming += bytes.length
    if (this.#incoming > MAX_MESSAGE_BYTES) throw new Violation(`a message longer than ${MAX_MESSAGE_BYTES} bytes`)
    this.#isMidMessage = more
    if (!more) this.#incoming = 0
    if (this.#isSilent) return
    const handlers = this.#handlers
    if (handlers === undefined || this.#kept !== undefined) this.#keep({ kind: 'piece', bytes, more })
    else this.#deliver(handlers, bytes, more)
  }

  halfClose(): void {
    if (this.#isDone) throw new Violation('the stream was half-closed before')
    if (this.#isMidMessage) throw new Violation('a half-close in the middle of a message')
    this.#isDone = true
    if (this.#isSilent) return
    if (this.#handlers === undefined || this.#kept !== undefined) this.#keep({ kind: 'halfClose' })
    else this.#arrive({ kind: 'halfClose' })
  }

  /** No more pieces of the request will come; what comes next has another holder. */
  requestComplete(): void {
    this.#isDone = true
    this.#endTurn()
    this.#handlers = undefined
  }

  /** The holder has ended the stream itself. */
  silence(): void {
    this.#isSilent = true
    this.#kept = undefined
    this.#endMessage()
    this.resume()
  }

  /** The stream is over; `last` is what the holder is told, unless the end was its own. */
  over(last: StreamArrival | undefined): void {
    if (last === undefined) {
      this.#isSilent = true
      this.#kept = undefined
    }
    const isListening = this.#kept === undefined && this.#handlers !== undefined
    if (last === undefined || this.#isSilent) this.#endMessage()
    else if (isListening) this.#arrive(last)
    else if (last.kind === 'end') {
      // Not told yet; what was kept is accounted for until it is.
      this.#keep(last)
      return
    } else this.#kept = [last] // A caller that has given up wants nothing of what it sent, and nobody may ever listen.
    this.#release()
  }

  #keep(arrival: StreamArrival): void {
    this.#kept ??= []
    this.#kept.push(arrival)
    if (arrival.kind === 'piece') this.#withhold(arrival.bytes.length)
  }

  #arrive(arrival: StreamArrival): void {
    const handlers = this.#handlers
    if (this.#isSilent) return
    if (handlers === undefined) {
      this.#keep(arrival)
      return
    }
    if (arrival.kind === 'piece') {
      this.#deliver(handlers, arrival.bytes, arrival.more)
      return
    }
    if (arrival.kind !== 'halfClose') {
      this.#isSilent = true
      this.#endMessage()
    }
    try {
      if (arrival.kind === 'end') handlers.end?.(arrival.status)
      else handlers[arrival.kind]?.()
    } catch (error) {
      this.#stream.handlerFailed(error)
    }
  }

  #deliver(handlers: StreamHandlers, bytes: Uint8Array, more: boolean): void {
    let result: unknown
    const isPart = more && handlers.fragment === undefined
    try {
      if (handlers.fragment !== undefined) result = handlers.fragment(bytes, more)
      else {
        const whole = this.#assembly.add(bytes, more)
        if (whole !== undefined) {
          this.#endTurn()
          result = handlers.message?.(whole)
        }
      }
    } catch (error) {
      this.#stream.handlerFailed(error)
    }
    if (this.#stream.isOver) return
    if (result === false) this.#isPaused = true
    if (isPart && !this.#isPaused && this.#incoming > MAX_SMALL_BYTES) {
      this.#isWaiting = !this.#stream.messageTurns.take(this)
    }
    const cost = bytes.length + MESSAGE_OVERHEAD
    // A part was copied to the message, which is accounted for.
    if (isPart && this.#isHeldUp) this.#withheld += cost
    else if (this.#isHeldUp) this.#withhold(bytes.length)
    else this.#give(cost)
  }

  get #isHeldUp(): boolean {
    return this.#isPaused || this.#isWaiting
  }

  /** Returns what credit was withheld, once nothing stands against it. */
  #goOn(): void {
    if (!this.#isHeldUp) this.#give(this.#release())
  }

  /** The message under way waits for no turn any more, and has none. */
  #endTurn(): void {
    this.#stream.messageTurns.release(this)
    if (!this.#isWaiting) return
    this.#isWaiting = false
    this.#goOn()
  }

  /** The message under way will not be whole. */
  #endMessage(): void {
    this.#assembly.drop()
    this.#endTurn()
  }

  /** A piece of that length is kept, and its credit with it. */
  #withhold(length: number): void {
    if (!this.#stream.account(length + PIECE_BYTES)) return
    this.#withheld += length + MESSAGE_OVERHEAD
    this.#heldForIt += length + PIECE_BYTES
    this.#stream.unread()
  }

  /** What was kept is not any more; returns its credit. */
  #release(): number {
    const withheld = this.#withheld
    this.#stream.account(-this.#heldForIt)
    this.#withheld = 0
    this.#heldForIt = 0
    this.#stream.read()
    return withheld
  }

  #give(cost: number): void {
    if (this.#isDone || this.#stream.isOver) return
    this.#owed += cost
    if (this.#owed < CREDIT_STEP) return
    this.#allowance += this.#owed
    this.#stream.giveCredit(this.#owed)
    this.#owed = 0
  }
}
