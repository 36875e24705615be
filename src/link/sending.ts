/** What one side of a stream sends: messages that wait in order, cut in pieces as the credit allows. */
import type { Holder } from './accounting.ts'
import { MAX_FRAGMENT_BYTES, MESSAGE_OVERHEAD, PIECE_BYTES, Violation, WINDOW_BYTES } from './messages.ts'

/** A piece is cut to fit the credit unless it would come out smaller than this. */
const MIN_PIECE_BYTES = 1024

/** Sends one Message frame on a stream. */
export interface PieceSender {
  sendMessage(stream: number, payload: Uint8Array, more: boolean): void
}

interface Piece {
  readonly bytes: Uint8Array
  offset: number
  readonly more: boolean
  /** Who accounts for it while it waits. */
  readonly holder: Holder | undefined
}

/** The messages of one direction that have not left, and the credit that they may use. */
export class Sending {
  #credit = WINDOW_BYTES
  readonly #queue: Piece[] = []
  #head = 0
  #queued = 0

  /** What waits, bytes; each piece with what it costs besides. */
  get queued(): number {
    return this.#queued
  }

  /** Nothing waits. */
  get isEmpty(): boolean {
    return this.#head === this.#queue.length
  }

  /** Whether a message would leave at once, if the transport takes it. */
  get hasRoom(): boolean {
    return this.#queued === 0 && this.#credit > MESSAGE_OVERHEAD
  }

  /** `holder` has accounted for the piece, PIECE_BYTES more than its length, and is told when it has left or was dropped. */
  push(bytes: Uint8Array, more: boolean, holder: Holder | undefined): void {
    this.#queue.push({ bytes, offset: 0, more, holder })
    this.#queued += bytes.length + MESSAGE_OVERHEAD
  }

  /** Sends the next piece of what waits; false when there is none or the credit does not suffice. */
  transmit(sender: PieceSender, stream: number): boolean {
    const piece = this.#queue[this.#head]
    if (piece === undefined) return false
    const rest = piece.bytes.length - piece.offset
    const length = Math.min(rest, MAX_FRAGMENT_BYTES, this.#credit - MESSAGE_OVERHEAD)
    if (length < 0 || (length < rest && length < MIN_PIECE_BYTES)) return false
    const payload =
      length === piece.bytes.length ? piece.bytes : piece.bytes.subarray(piece.offset, piece.offset + length)
    this.#spend(piece, length)
    sender.sendMessage(stream, payload, length < rest || piece.more)
    return true
  }

  /** Takes the first piece of a request, at most `most` bytes of it; undefined when nothing waits. */
  takeFirst(most: number): { payload: Uint8Array; more: boolean } | undefined {
    const piece = this.#queue[this.#head]
    if (piece === undefined) return undefined
    const length = Math.min(piece.bytes.length, most)
    const payload = piece.bytes.subarray(0, length)
    this.#spend(piece, length)
    return { payload, more: length < piece.bytes.length }
  }

  /** The peer gives credit back; throws Violation when it is more than was spent. */
  credit(bytes: number): void {
    this.#credit += bytes
    if (this.#credit > WINDOW_BYTES) throw new Violation('more credit was returned than was spent')
  }

  drop(): void {
    for (let i = this.#head; i < this.#queue.length; i++) letGo(this.#queue[i] as Piece)
    this.#queue.length = 0
    this.#head = 0
    this.#queued = 0
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
}

/** A piece does not wait any more. */
function letGo({ holder, bytes }: Piece): void {
  holder?.hold(-(bytes.length + PIECE_BYTES), bytes)
}
