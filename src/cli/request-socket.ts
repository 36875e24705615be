/** The WebSocket on which the requests of nodes that ask to join arrive, and on which they are answered. */
import type { WebSocket } from 'ws'
import { ApiFailure, failureOf } from './api-failure.ts'
import { Failure } from './failure.ts'
import type { AuthenticationRequest } from './messages.ts'

/** The id that no request has: ids rise from 1. An answer to it is no valid message, one to any other id is. */
const NO_REQUEST = '0'

/** What arrives: a request, or why one of the answers was of no use. */
export type RequestFrame = { request: AuthenticationRequest } | { failure: Failure }

export class RequestSocket {
  readonly #socket: WebSocket
  readonly #frames: RequestFrame[] = []
  #broken: Failure | undefined
  #wake: () => void = () => undefined

  private constructor(socket: WebSocket) {
    this.#socket = socket
    // A stream that failed says so in an error frame before its close code, 4000 and above.
    let last: Failure | undefined
    socket.on('message', (data) => {
      const { result, error } = JSON.parse(String(data)) as { result?: AuthenticationRequest; error?: unknown }
      last = error === undefined ? undefined : failureOf(error, String(data))
      if (last !== undefined) this.#frames.push({ failure: last })
      else if (result !== undefined) this.#frames.push({ request: result })
      this.#wake()
    })
    socket.on('close', (code) => {
      this.#broken =
        code >= 4000 && last !== undefined
          ? last
          : new Failure('the stream of requests broke off: is the node still up?')
      this.#wake()
    })
    // Its close follows.
    socket.on('error', () => undefined)
  }

  /**
   * Fulfilled once the socket is open and the hub has shown that it takes requests to join; rejects with what the node answers instead, with
   * NOT_FOUND of a hub that takes none.
   */
  static async open(socket: WebSocket): Promise<RequestSocket> {
    const opened = await RequestSocket.#opened(socket)
    try {
      await opened.#takesRequests()
    } catch (error) {
      opened.close()
      throw error
    }
    return opened
  }

  static #opened(socket: WebSocket): Promise<RequestSocket> {
    return new Promise((resolve, reject) => {
      const opened = new RequestSocket(socket)
      socket.once('open', () => resolve(opened))
      socket.once('error', reject)
      socket.once('unexpected-response', (_, response) => {
        let body = ''
        response.on('data', (chunk) => {
          body += chunk
        })
        response.on('end', () => {
          let parsed: unknown
          try {
            parsed = JSON.parse(body)
          } catch {}
          reject(failureOf(parsed, `${response.statusCode} ${response.statusMessage}`))
        })
      })
    })
  }

  answer(requestId: string, accept: boolean): void {
    this.#socket.send(JSON.stringify({ requestId, accept }))
  }

  /** The next frame; throws when the socket is over. */
  async next(): Promise<RequestFrame> {
    for (;;) {
      const frame = this.#frames.shift()
      if (frame !== undefined) return frame
      if (this.#broken !== undefined) throw this.#broken
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /**
   * Answers a request, whose id is 1 or more, and makes sure that the answer counted; throws what the node says when it did not. Only
   * answers that come to nothing get an answer themselves, in order: one without a request, sent behind ours, tells that ours was taken.
   */
  async settle(requestId: string, accept: boolean): Promise<void> {
    this.answer(requestId, accept)
    this.answer(NO_REQUEST, false)
    let outcome: Failure | undefined
    for (;;) {
      const frame = await this.next()
      if ('request' in frame) continue
      if (isNoRequest(frame.failure)) break
      outcome ??= frame.failure
    }
    if (outcome !== undefined) throw outcome
  }

  /** The stream of a hub that takes no requests opens too: only an answer, here to no request, is told so. What comes before that is kept. */
  async #takesRequests(): Promise<void> {
    this.answer(NO_REQUEST, false)
    const requests: RequestFrame[] = []
    for (;;) {
      const frame = await this.next()
      if ('request' in frame) requests.push(frame)
      else if (isNoRequest(frame.failure)) break
      else throw frame.failure
    }
    this.#frames.unshift(...requests)
  }

  /** Throws what was said against an answer since the last look. */
  check(): void {
    for (const frame of this.#frames.splice(0)) if ('failure' in frame) throw frame.failure
    if (this.#broken !== undefined) throw this.#broken
  }

  close(): void {
    this.#socket.close()
  }
}

/** Whether the node says that an answer named no request. */
function isNoRequest(failure: Failure): boolean {
  if (!(failure instanceof ApiFailure) || failure.code !== 'INVALID_ARGUMENT') return false
  return failure.problems.some(({ pointer }) => pointer === '/requestId')
}
