/** What a stream needs of its session, and what it is told when it begins. */
import type { Holder } from './accounting.ts'
import type { LinkStatus } from './link.ts'
import type { MessageTurns } from './message-turns.ts'
import type { PieceSender } from './sending.ts'

/** What a stream `S` needs of its session. `hold` accounts for what the peer makes this side keep in memory. */
export interface StreamHost<S> extends Holder, PieceSender {
  /** Whose long message goes on. */
  readonly messageTurns: MessageTurns
  /** As `hold`, for what `stream` sends or has received; before it is refused, streams end that nobody reads. */
  holdFor(stream: S, bytes: number, message?: Uint8Array): boolean
  /** Something of the stream is held that waits to be read. */
  unread(stream: S): void
  /** Something of it was read; `isUnread`: something still waits. */
  read(stream: S, isUnread: boolean): void
  /** Monotonic, milliseconds. */
  now(): number
  /** Whether the transport takes data now. */
  readonly writable: boolean
  /** The stream has something to send; it will be asked by `transmit`. */
  ready(stream: S): void
  /** The stream's sender waits for room (or no longer does); it will be asked by `drain` when the transport has some. */
  blocked(stream: S, isBlocked: boolean): void
  sendHalfClose(stream: number): void
  sendEnd(stream: number, status: LinkStatus): void
  sendCancel(stream: number): void
  sendWindow(stream: number, credit: number): void
  /** The stream is over. */
  forget(stream: S): void
  /** A handler threw. */
  failed(stream: S, error: unknown): void
}

export interface StreamCall {
  readonly operation: string
  readonly target: string
  readonly origin: string
  readonly deadlineMs: number | undefined
}
