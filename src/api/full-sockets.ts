/** WebSockets that have no room: each is asked a few times a second whether it has some again. */

/** How often they are asked, ms. */
const INTERVAL_MS = 50

/** A socket whose transport was full. */
export interface FullSocket {
  /** Bytes that the library keeps, since the kernel took no more. */
  buffered(): number
  /** Writes what nobody is told of, so that the library goes on with what it keeps. */
  nudge(): void
  /** There is room again. */
  drained(): void
}

/**
 * uWebSockets.js 20 tells when a socket has room again, but not always: it may stop waiting for the kernel to take more while it still keeps bytes of a
 * long message, and sends these with the next write only.
 */
export class FullSockets {
  /** With the bytes that were kept when it was asked last. */
  readonly #sockets = new Map<FullSocket, number>()
  #timer: NodeJS.Timeout | undefined

  watch(socket: FullSocket): void {
    if (this.#sockets.has(socket)) return
    this.#sockets.set(socket, Number.POSITIVE_INFINITY)
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

  #ask(): void {
    for (const [socket, before] of [...this.#sockets]) {
      if (!this.#sockets.has(socket)) continue
      const bytes = socket.buffered()
      if (bytes === 0) {
        this.forget(socket)
        socket.drained()
        continue
      }
      this.#sockets.set(socket, bytes)
      if (bytes >= before) socket.nudge()
    }
  }
}
