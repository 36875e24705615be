/** What peers have sent and nobody has handled yet: bounded for each, handled in turns, so that no flood holds up anybody else. */
import type { WebSocket } from 'uWebSockets.js'
import { MAX_RECEIVE_BYTES } from './messages.ts'
import {
  type CloseCode,
  closeCodes,
  closeReason,
  deaf,
  type LinkTransport,
  type TransportHandlers,
} from './transport.ts'

/** How long arrivals are handled before everything else in the process has its turn, milliseconds. */
const TURN_MS = 10
/** How long those of one link are handled before the next link has its turn, milliseconds. */
const SLICE_MS = 2
/** What a message costs besides its bytes. */
const ARRIVAL_OVERHEAD = 256
/** WebSocket pings and pongs in a row, without a message: the heartbeat of a session comes more often than that. */
const MAX_CONTROL_FRAMES = 100
/** What uWebSockets.js says (with code 1006) of connections that it has cut because of what the peer sent, and what that means. */
const CUT_FOR: ReadonlyMap<string, string> = new Map([
  ['Received too big message', `a frame of more than ${MAX_RECEIVE_BYTES} bytes`],
  ['Received invalid WebSocket frame', 'a frame that RFC 6455 forbids'],
  ['Received invalid UTF-8', 'a text message, which is not UTF-8'],
  ['Received invalid close payload', 'a close frame that RFC 6455 forbids'],
])
/** Handled places at the front of an inbox before they are given back. */
const COMPACT_AT = 256

/** The links that have something to be handled, in the order in which they have their turns. */
export class Inboxes {
  readonly #waiting = new Set<UwsTransport>()
  #isScheduled = false

  add(transport: UwsTransport): void {
    this.#waiting.add(transport)
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#turn())
  }

  #turn(): void {
    this.#isScheduled = false
    const end = performance.now() + TURN_MS
    for (const transport of this.#waiting) {
      this.#waiting.delete(transport)
      // One that has more goes to the end of the row, which this loop may reach again.
      if (transport.handle(SLICE_MS)) this.add(transport)
      if (performance.now() >= end) break
    }
    const next = this.#waiting.values().next().value
    if (next !== undefined) this.add(next)
  }
}

type InboxEntry = Uint8Array | string | { readonly code: number; readonly reason: string }

/**
 * A transport over a WebSocket of uWebSockets.js. What arrives is handled in the turn after: with TLS, a write to any socket from within a read
 * makes uSockets forget the rest of what it has read (us_internal_ssl_socket_write resets the input), and handling a message writes.
 */
export class UwsTransport implements LinkTransport {
  readonly remoteAddress: string
  handlers: TransportHandlers = deaf
  /** Messages that may wait to be handled; whoever sends more is cut off. */
  mayWait: number
  /** The peer has been let in. */
  isMember = false
  readonly #socket: WebSocket<unknown>
  readonly #inboxes: Inboxes
  readonly #inboxLimit: number
  #inbox: (InboxEntry | undefined)[] = []
  /** Where the inbox goes on. */
  #next = 0
  /** What waits in the inbox, bytes. */
  #waiting = 0
  #controlFrames = 0
  /** Cut off: nothing more is taken. */
  #isCut = false
  /** Closed by this side: nothing is handled any more. */
  #isClosed = false
  /** The socket must not be touched any more. */
  #isGone = false

  constructor(
    socket: WebSocket<unknown>,
    remoteAddress: string,
    inboxes: Inboxes,
    inboxLimit: number,
    mayWait: number,
  ) {
    this.#socket = socket
    this.remoteAddress = remoteAddress
    this.#inboxes = inboxes
    this.#inboxLimit = inboxLimit
    this.mayWait = mayWait
  }

  get buffered(): number {
    return this.#isGone ? 0 : this.#socket.getBufferedAmount()
  }

  send(bytes: Uint8Array): boolean {
    // 1: sent, 0: kept until the socket drains, 2: beyond maxBackpressure, which closes the socket.
    return this.#isGone || this.#socket.send(bytes, true) === 1
  }

  close(code: CloseCode, reason: string): void {
    this.#isClosed = true
    this.#empty()
    if (this.#isGone) return
    this.#isGone = true
    this.#socket.end(code, closeReason(reason))
  }

  /** A message has come; its memory is only lent. */
  received(message: ArrayBuffer, isBinary: boolean): void {
    if (this.#isClosed || this.#isCut) return
    this.#controlFrames = 0
    this.#waiting += message.byteLength + ARRIVAL_OVERHEAD
    if (this.#inbox.length - this.#next >= this.mayWait || this.#waiting > this.#inboxLimit) {
      this.#cut('frames come faster than they can be handled')
      return
    }
    this.#arrived(isBinary ? Buffer.from(message.slice(0)) : 'a text message')
  }

  /** A ping or pong of the WebSocket itself, which uWebSockets.js has answered. */
  controlled(): void {
    if (this.#isClosed || this.#isCut) return
    this.#controlFrames++
    if (this.#controlFrames > MAX_CONTROL_FRAMES) this.#cut('pings and pongs of the WebSocket, and nothing else')
  }

  drained(): void {
    if (!this.#isGone) this.handlers.drain()
  }

  lost(code: number, reason: string): void {
    this.#isGone = true
    const violation = CUT_FOR.get(reason)
    if (code === 1006 && violation !== undefined) this.#arrived(violation)
    this.#arrived({ code, reason })
  }

  /**
   * Drops what waits and ends the connection at once: a read may hold tens of thousands of frames more, and ending it is what makes
   * uWebSockets.js skip them. A member is told why, whoever is not is not worth waiting for.
   */
  #cut(why: string): void {
    this.#isCut = true
    this.#empty()
    this.#arrived(why)
    if (this.#isGone) return
    this.#isGone = true
    if (this.isMember) this.#socket.end(closeCodes.PROTOCOL, closeReason(why))
    else this.#socket.close()
  }

  #empty(): void {
    this.#inbox = []
    this.#next = 0
    this.#waiting = 0
  }

  #arrived(arrival: InboxEntry): void {
    if (this.#isClosed) return
    this.#inbox.push(arrival)
    this.#inboxes.add(this)
  }

  /** Handles what has arrived, for about `milliseconds`; returns whether there is more. */
  handle(milliseconds: number): boolean {
    if (this.#isGone) this.#deliver(milliseconds)
    // Answers leave together.
    else this.#socket.cork(() => this.#deliver(milliseconds))
    if (this.#next >= COMPACT_AT || this.#next === this.#inbox.length) {
      this.#inbox.splice(0, this.#next)
      this.#next = 0
    }
    return this.#next < this.#inbox.length
  }

  #deliver(milliseconds: number): void {
    const end = performance.now() + milliseconds
    do {
      const arrival = this.#inbox[this.#next]
      if (arrival === undefined) return
      this.#inbox[this.#next++] = undefined
      if (arrival instanceof Uint8Array) {
        this.#waiting -= arrival.length + ARRIVAL_OVERHEAD
        this.handlers.message(arrival)
      } else if (typeof arrival === 'string') this.handlers.foreign(arrival)
      else this.handlers.close(arrival.code, arrival.reason)
    } while (performance.now() < end)
  }
}
