/**
 * One HTTP request and its one answer: the only place that touches a response of uWebSockets.js.
 *
 * The library ends the process when a handler returns with a response that is neither complete nor has an abort handler, throws when a
 * response is used after its end, and lets what a handler throws end the process. Here the abort handler is attached to whatever a handler has not
 * answered when it returns, a response is let go of the moment it is over, and whatever a handler throws, rejects with or forgets becomes an answer.
 */

import type { HttpRequest, HttpResponse, us_socket_context_t } from 'uWebSockets.js'
import { isUtf8 } from 'node:buffer'
import { addressText } from '../contract/address.ts'
import { ServiceError } from '../contract/errors.ts'
import type { ShownCertificate, Upgrade, UpgradeRequest } from '../link/link.ts'
import { FixedHeaders } from './encoded-header.ts'
import { failure, type Report } from './errors.ts'
import { errorAnswer, type HttpAnswer, upgradeAnswer } from './http-response.ts'
import { longer, NO_BYTES } from './one-piece.ts'
import { LONG_ANSWER } from './unread-answers.ts'

/** Answers a request, at once or later; what it throws is answered for it. The request is lent until it returns. */
export type RequestHandler = (exchange: Exchange, request: HttpRequest) => void | Promise<void>

/** The same text for every request, which may be kept for as long as the request lasts. */
const VERBS = new Map(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS'].map((verb) => [verb, verb]))

function verbOf(request: HttpRequest): string {
  const verb = request.getCaseSensitiveMethod()
  return VERBS.get(verb) ?? verb.toUpperCase()
}

/** What `write` writes: events go to thousands of streams at once, a closure for each would cost more than the write. */
const chunk: { response: HttpResponse | undefined; bytes: Uint8Array; hasRoom: boolean } = {
  response: undefined,
  bytes: new Uint8Array(0),
  hasRoom: true,
}

/** Called by the library before `cork` returns. */
function writeChunk(): void {
  chunk.hasRoom = (chunk.response as HttpResponse).write(chunk.bytes)
}

/** The library takes every request with a key for one of version 13 of the WebSocket protocol (RFC 6455, section 4.2.1). Undefined: it is one. */
function refusal(header: (name: string) => string): HttpAnswer | undefined {
  if (header('upgrade').toLowerCase() !== 'websocket') return upgradeAnswer()
  const version = header('sec-websocket-version')
  if (version === '13') return undefined
  return upgradeAnswer('open it with version 13 of the WebSocket protocol (RFC 6455)')
}

/** Those long answers that their clients have not read yet, each by its exchange, and the bytes that are there for it alone. */
export interface UnreadExchanges {
  add(exchange: Exchange, bytes: number): void
  delete(exchange: Exchange): void
}

export class Exchange {
  /** Undefined once it must not be touched any more. */
  #response: HttpResponse | undefined
  #state: 'waiting' | 'streaming' | 'answered' | 'aborted' = 'waiting'
  /** Whether the library's own handler runs: what is written then leaves together without a cork. */
  #isWithin = true
  /** The response whose long answer is not complete. */
  #long: HttpResponse | undefined
  readonly #report: Report
  readonly #verb: string
  /** Headers that every answer has, those given by nobody's hand included. */
  headers: Readonly<Record<string, string>> | undefined
  /** Told once if the client goes away before its answer is complete. */
  caller: { lose(): void } | undefined
  /** Told of a long answer that is not read at once, and of its end, read or not. */
  unread: UnreadExchanges | undefined

  private constructor(response: HttpResponse, verb: string, report: Report) {
    this.#response = response
    this.#verb = verb
    this.#report = report
  }

  /** What uWebSockets.js calls for each request of a route; `verb` where the route is of that one alone. */
  static handler(
    handler: RequestHandler,
    report: Report,
    verb?: string,
  ): (response: HttpResponse, request: HttpRequest) => void {
    return (response, request) => {
      const exchange = new Exchange(response, verb ?? verbOf(request), report)
      try {
        const outcome = handler(exchange, request)
        if (outcome === undefined) exchange.#settle()
        else {
          void outcome.then(
            () => exchange.#settle(),
            (error: unknown) => exchange.fail(error),
          )
        }
      } catch (error) {
        exchange.fail(error)
      }
      exchange.#leave()
    }
  }

  /** What uWebSockets.js calls for each request to upgrade; `accept` throws, or returns an answer, to refuse. */
  static upgrader<Data extends object>(
    accept: (request: UpgradeRequest) => Upgrade<Data>,
    report: Report,
    certificate: ShownCertificate | undefined,
  ): (response: HttpResponse, request: HttpRequest, context: us_socket_context_t) => void {
    return (response, request, context) => {
      const exchange = new Exchange(response, 'GET', report)
      try {
        const header = (name: string | ArrayBuffer): string => request.getHeader(name)
        const { remoteAddress } = exchange
        const [path, query] = [request.getUrl(), request.getQuery() ?? '']
        const outcome =
          refusal(header) ??
          accept({ certificate, remoteAddress, path, query, header, eachHeader: (take) => request.forEach(take) })
        if ('status' in outcome) exchange.answer(outcome)
        else exchange.#upgrade(request, outcome.data, outcome.protocol, context)
      } catch (error) {
        exchange.fail(error)
      }
      exchange.#leave()
    }
  }

  /** Upper case. */
  get verb(): string {
    return this.#verb
  }

  /** The peer's IP address as text; empty once the exchange is over. */
  get remoteAddress(): string {
    const response = this.#response
    return response === undefined ? '' : addressText(new Uint8Array(response.getRemoteAddress()))
  }

  /** Whether there is nobody, or nothing, left to answer. */
  get isOver(): boolean {
    return this.#response === undefined
  }

  /** Gives the whole answer, HEAD one without its body. False: nobody is left to hear it, or it has an answer already, which is reported. */
  answer({ status, headers, body, close = false }: HttpAnswer): boolean {
    const response = this.#begin()
    if (response === undefined) return false
    this.#state = 'answered'
    this.#response = undefined
    // Not by way of #corked: each closure and call less counts for what every request goes through.
    try {
      if (body !== undefined && body.length > LONG_ANSWER && !close && this.#verb !== 'HEAD') {
        this.#answerLong(response, status, headers, body)
      } else if (this.#isWithin) this.#writeAnswer(response, status, headers, body, close)
      else response.cork(() => this.#writeAnswer(response, status, headers, body, close))
    } catch (error) {
      this.#report(error, `HTTP ${this.#verb}`)
    }
    return true
  }

  #writeAnswer(
    response: HttpResponse,
    status: string,
    headers: HttpAnswer['headers'],
    body: HttpAnswer['body'],
    close: boolean,
  ): void {
    this.#writeHead(response, status, headers)
    if (body === undefined) response.endWithoutBody()
    else if (this.#verb !== 'HEAD') response.end(body, close)
    else {
      // Told the length, the library would wait for a body of it, and serve the connection nothing more.
      response.writeHeader('content-length', String(Buffer.byteLength(body))).endWithoutBody()
    }
  }

  /**
   * Gives a long answer as fast as it is read, and keeps what is left itself: the library would take all of it, and go on with the next requests of a
   * connection that reads none of its answers. One that makes another before it has read this is cut.
   */
  #answerLong(response: HttpResponse, status: string, headers: HttpAnswer['headers'], body: string | Uint8Array): void {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    const begin = response.getWriteOffset()
    const write = (offset: number): boolean => {
      const [hasRoom, isDone] = response.tryEnd(bytes.subarray(offset - begin), bytes.length)
      if (isDone) this.#endLong()
      return hasRoom
    }
    this.#long = response
    const first = (): void => {
      this.#writeHead(response, status, headers)
      write(begin)
    }
    if (this.#isWithin) first()
    else this.#corked(response, first)
    if (this.#long === undefined) return
    // What came as bytes is the same for all who ask, and stays.
    this.unread?.add(this, typeof body === 'string' ? bytes.length : 0)
    response.onWritable((offset) => {
      let hasRoom = true
      if (this.#long !== undefined) this.#corked(response, () => (hasRoom = write(offset)))
      return hasRoom
    })
    if (!this.#isWithin) return
    // As `#leave` does for those that wait; this one is neither to be answered nor to be lost.
    response.onAborted(() => this.#endLong())
  }

  #endLong(): void {
    this.#long = undefined
    this.unread?.delete(this)
  }

  /** Begins an answer of unknown length; as `answer` otherwise, so to HEAD it is the head alone. */
  stream(headers: Readonly<Record<string, string>>, first: string): boolean {
    if (this.#verb === 'HEAD') return this.answer({ status: '200 OK', headers })
    const response = this.#begin()
    if (response === undefined) return false
    this.#state = 'streaming'
    this.#corked(response, () => {
      this.#writeHead(response, '200 OK', headers)
      response.write(first)
    })
    return true
  }

  /** Goes on with a stream; false: the transport is full, or there is no stream. */
  write(bytes: Uint8Array): boolean {
    const response = this.#response
    if (response === undefined || this.#state !== 'streaming') return false
    chunk.response = response
    chunk.bytes = bytes
    chunk.hasRoom = true
    this.#corked(response, writeChunk)
    return chunk.hasRoom
  }

  /** Ends a stream with its last words. */
  finish(last = ''): void {
    const response = this.#response
    if (response === undefined || this.#state !== 'streaming') return
    this.#state = 'answered'
    this.#response = undefined
    this.#corked(response, () => {
      if (last !== '') response.write(last)
      response.end()
    })
  }

  /** Sets what is called whenever a full transport has room again. */
  onWritable(listener: () => void): void {
    this.#response?.onWritable(() => {
      this.#guard(listener)
      return true
    })
  }

  /**
   * The body as text. Undefined when there is nothing to go on with: it was longer than `most` bytes or no UTF-8, which is answered, or the
   * client left. To be called before the handler has awaited anything, else the body is lost.
   */
  body(contentLength: string, most: number): Promise<string | undefined> {
    const response = this.#response
    if (response === undefined) return Promise.resolve(undefined)
    if (Number(contentLength) > most) {
      this.#refuseBody(most)
      return Promise.resolve(undefined)
    }
    return new Promise((resolve) => {
      const { caller } = this
      this.caller = {
        lose: () => {
          resolve(undefined)
          caller?.lose()
        },
      }
      let bytes: Buffer = NO_BYTES
      let length = 0
      response.onData((chunk, isLast) => {
        if (this.#state !== 'waiting') return
        const before = length
        length += chunk.byteLength
        if (length > most) {
          // The rest may take its time.
          bytes = NO_BYTES
          this.#refuseBody(most)
          resolve(undefined)
          return
        }
        // Copied, as the memory is only lent; into one piece, as a body may come in chunks of a byte each.
        if (length > bytes.length) bytes = longer(bytes, before, isLast ? length : Math.min(most, 2 * length))
        bytes.set(new Uint8Array(chunk), before)
        if (!isLast) return
        this.caller = caller
        const body = bytes.subarray(0, length)
        if (isUtf8(body)) resolve(body.toString('utf8'))
        else {
          this.answer(errorAnswer(new ServiceError('INVALID_ARGUMENT', 'the body is not UTF-8')))
          resolve(undefined)
        }
      })
    })
  }

  /** Answers with a failure: a ServiceError as it is, anything else reported and as INTERNAL. A stream that has begun is cut. */
  fail(error: unknown): void {
    const failed = failure(error, `HTTP ${this.#verb}`, this.#report)
    if (this.#state === 'waiting') this.answer(errorAnswer(failed))
    else if (this.#state === 'streaming') this.#response?.close()
  }

  /** Its handler is done: an answer was given, or has begun. */
  #settle(): void {
    if (this.#state === 'waiting') this.fail(new Error('the handler ended without an answer'))
  }

  /** The library's handler returns: who goes away from now on, before the answer is complete, is told of by the library. */
  #leave(): void {
    this.#isWithin = false
    this.#response?.onAborted(() => {
      if (this.#long !== undefined) this.#endLong()
      if (this.#state === 'answered') return
      this.#response = undefined
      this.#state = 'aborted'
      this.#guard(() => this.caller?.lose())
    })
  }

  #begin(): HttpResponse | undefined {
    if (this.#state === 'answered' || this.#state === 'streaming') {
      this.#report(new Error('a request was answered a second time'), `HTTP ${this.#verb}`)
      return undefined
    }
    return this.#response
  }

  #writeHead(response: HttpResponse, status: string, headers: HttpAnswer['headers']): void {
    // Said by the library where nothing else is, at less cost.
    if (status !== '200 OK') response.writeStatus(status)
    if (headers instanceof FixedHeaders) for (const [name, value] of headers.pairs) response.writeHeader(name, value)
    else for (const name in headers) response.writeHeader(name, headers[name] as string)
    for (const name in this.headers) response.writeHeader(name, this.headers[name] as string)
  }

  #refuseBody(most: number): void {
    const error = new ServiceError('RESOURCE_EXHAUSTED', `the body is longer than ${most} bytes`)
    // The rest of it is read and dropped, as of every request that is answered before its body: who is still sending would not see the answer to a
    // connection that is closed at once (RFC 9112, section 9.6).
    this.answer(errorAnswer(error, { status: '413 Payload Too Large' }))
  }

  #upgrade<Data extends object>(
    request: HttpRequest,
    data: Data,
    protocol: string,
    context: us_socket_context_t,
  ): void {
    const response = this.#begin()
    if (response === undefined) return
    this.#state = 'answered'
    this.#response = undefined
    const key = request.getHeader('sec-websocket-key')
    response.upgrade(data, key, protocol, request.getHeader('sec-websocket-extensions'), context)
  }

  /** Writes what leaves together. */
  #corked(response: HttpResponse, write: () => void): void {
    try {
      response.cork(write)
    } catch (error) {
      this.#report(error, `HTTP ${this.#verb}`)
    }
  }

  #guard(call: () => void): void {
    try {
      call()
    } catch (error) {
      this.#report(error, `HTTP ${this.#verb}`)
    }
  }
}
