/** The stream on which the requests of nodes that ask to join arrive, and on which they are answered. */
import {
  type AuthenticationByRequestAnswer,
  type AuthenticationByRequestRequest,
  type Client,
  type Exchange,
  PenstockError,
} from '@penstock/client'
import { Failure } from './failure.ts'

/** The id that no request has: ids rise from 1. An answer to it is no valid message, one to any other id is. */
const NO_REQUEST = '0'

/** What arrives: a request, or why one of the answers was of no use. */
export type RequestFrame = { request: AuthenticationByRequestRequest } | { failure: PenstockError }

export class RequestSocket {
  readonly #frames: RequestFrame[] = []
  #exchange: Exchange<AuthenticationByRequestAnswer, AuthenticationByRequestRequest> | undefined
  #broken: Error | undefined
  #wake: () => void = () => undefined

  private constructor() {}

  /**
   * Fulfilled once the stream stands and the hub has shown that it takes requests to join; rejects with what the node answers instead, with
   * NOT_FOUND of a hub that takes none.
   */
  static async open(client: Client): Promise<RequestSocket> {
    const opened = new RequestSocket()
    opened.#exchange = await client.authenticationByRequests({ onRefused: (failure) => opened.#add({ failure }) })
    opened.#read(opened.#exchange)
    try {
      await opened.#takesRequests()
    } catch (error) {
      opened.close()
      throw error
    }
    return opened
  }

  async #read(requests: AsyncIterable<AuthenticationByRequestRequest>): Promise<void> {
    let cause: unknown
    try {
      for await (const request of requests) this.#add({ request })
    } catch (error) {
      cause = error
    }
    this.#broken =
      cause instanceof PenstockError ? cause : new Failure('the stream of requests broke off: is the node still up?')
    this.#wake()
  }

  #add(frame: RequestFrame): void {
    this.#frames.push(frame)
    this.#wake()
  }

  answer(requestId: string, accept: boolean): void {
    this.#exchange?.send({ requestId, accept })
  }

  /** The next frame; throws when the stream is over. */
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
    let outcome: PenstockError | undefined
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
    this.#exchange?.close()
  }
}

/** Whether the node says that an answer named no request. */
function isNoRequest({ code, problems }: PenstockError): boolean {
  return code === 'INVALID_ARGUMENT' && problems.some(({ pointer }) => pointer === '/requestId')
}
