/** WebSockets that have no room: each is asked a few times a second whether it has some again, and cut when it is written to all the same. */
import { networkOf } from '../contract/address.ts'
import { ToldLately } from '../contract/told-lately.ts'
import type { Warn } from './grpc-connections.ts'

/** How often they are asked, ms. */
const INTERVAL_MS = 50
/** Bytes written to one that has no room: answers to what its client sends, and the ends of streams. Messages wait until it has some. */
const MAX_WEBSOCKET_BACKLOG_BYTES = 4 * 1024 * 1024
/** What uWebSockets.js says of a socket that has neither sent nor taken anything for its `idleTimeout`. */
const TIMED_OUT = 'WebSocket timed out from inactivity'

const CAUSES = {
  UNREAD_ANSWERS: 'its client sends more and more and does not read the answers',
  STANDSTILL: 'its client takes nothing',
}

/** A socket whose transport was full. */
export interface FullSocket {
  /** Its client's. */
  readonly address: string
  /** Bytes that the library keeps, since the kernel took no more. */
  buffered(): number
  /** Writes what nobody is told of, so that the library goes on with what it keeps. */
  nudge(): void
  /** There is room again. */
  drained(): void
  /** Ends the connection at once, which drops what waits. */
  cut(): void
}

/** What is kept of a socket that has no room. */
interface Backlog {
  /** The bytes that the library kept when it was asked last. */
  before: number
  /** Bytes that were written since it has no room. */
  written: number
}

/**
 * uWebSockets.js 20 tells when it has sent some of what it keeps, and not always: it may stop waiting for the kernel to take more while it still keeps
 * bytes of a long message, and sends these with the next write only. Its own limit of what it keeps (`maxBackpressure`) is of no use here: one message
 * may be longer, and whatever is written after that, a ping as well, would end the connection.
 */
export class FullSockets {
  readonly #sockets = new Map<FullSocket, Backlog>()
  readonly #warn: Warn | undefined
  readonly #cuts = new ToldLately()
  #timer: NodeJS.Timeout | undefined

  /** `warn` is told of sockets that are cut. */
  constructor(warn?: Warn) {
    this.#warn = warn
  }

  watch(socket: FullSocket): void {
    if (this.#sockets.has(socket)) return
    this.#sockets.set(socket, { before: Number.POSITIVE_INFINITY, written: 0 })
    if (this.#timer !== undefined) return
    this.#timer = setInterval(() => this.#ask(), INTERVAL_MS)
    this.#timer.unref()
  }

  /** It has room, or is over. */
  forget(socket: FullSocket): void {
    if (!this.#sockets.delete(socket) || this.#sockets.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** `bytes` more are to be written to one that may have no room. False: that is too much, and it was cut. */
  takes(socket: FullSocket, bytes: number): boolean {
    const backlog = this.#sockets.get(socket)
    if (backlog === undefined) return true
    backlog.written += bytes
    if (backlog.written <= MAX_WEBSOCKET_BACKLOG_BYTES) return true
    this.#tell(socket.address, 'UNREAD_ANSWERS')
    socket.cut()
    return false
  }

  /** The library tells that it has sent some of what it keeps for `socket`: there is room once it has sent all. */
  wrote(socket: FullSocket): void {
    if (socket.buffered() === 0) socket.drained()
  }

  /** Its connection has ended, for `reason` as the library has it. */
  lost(socket: FullSocket, reason: string): void {
    if (this.#sockets.has(socket) && reason === TIMED_OUT) this.#tell(socket.address, 'STANDSTILL')
    this.forget(socket)
  }

  #tell(address: string, reason: keyof typeof CAUSES): void {
    const source = networkOf(address)
    const sockets = this.#cuts.happened(source)
    if (sockets === undefined) return
    this.#warn?.(`a WebSocket from ${source} was cut: ${CAUSES[reason]}`, { address: source, reason, sockets })
  }

  #ask(): void {
    for (const [socket, backlog] of [...this.#sockets]) {
      if (!this.#sockets.has(socket)) continue
      const bytes = socket.buffered()
      if (bytes === 0) {
        this.forget(socket)
        socket.drained()
        continue
      }
      const isStill = bytes >= backlog.before
      backlog.before = bytes
      if (isStill) socket.nudge()
    }
  }
}
