/**
 * Many streams over one WebSocket: a client sends `{"open": {"id", "path"}}` and `{"close": {"id"}}`, and gets `{"id"}` once a stream stands,
 * `{"id", "result"}`, `{"id", "error"}` when it has failed and `{"id", "closed": {}}` when it has ended otherwise.
 */
import type { WebSocket } from 'uWebSockets.js'
import { invalidArgument, ServiceError } from '../contract/errors.ts'
import { refuse } from '../contract/json-decode.ts'
import type { Operation } from '../contract/operations.ts'
import { isObject } from '../text/json-object.ts'
import { pointerOf } from '../text/pointer.ts'
import { Call, type Caller } from './call.ts'
import type { Dispatcher } from './dispatcher.ts'
import { errorBody } from './errors.ts'
import type { FullSocket, FullSockets } from './full-sockets.ts'
import type { KeepAlive } from './keep-alive.ts'
import { StreamSink } from './sink.ts'
import { closeCode, errorFrame, readFrame, resultFrame, STILL_HERE } from './websocket-frames.ts'

export const STREAMS_PATH = '/v1/streams'

/** Streams that one socket carries at once. */
const MAX_STREAMS = 10_000

/** What a path asks for. */
export interface StreamAsked {
  readonly operation: Operation
  readonly request: unknown
}

export interface StreamsSocketOptions {
  readonly dispatcher: Dispatcher
  readonly keepAlive: KeepAlive
  readonly full: FullSockets
  /** The open streams of the listener. */
  readonly streams: Set<StreamSink>
  /** Whoever opened the socket, asked again for each stream; throws ServiceError once they are not let in any more. */
  readonly caller: () => Caller
  /** The stream at a path, with its query; throws ServiceError where there is none. */
  readonly find: (path: string, query: string) => StreamAsked
  /** IP address of whoever opened the socket. */
  readonly address: string
  /** Name of the token that whoever opened the socket proved. */
  readonly identity: string | undefined
}

export class StreamsSocket implements FullSocket {
  readonly #socket: WebSocket<unknown>
  readonly #options: StreamsSocketOptions
  /** By id, those that waited longest for room first. */
  readonly #streams = new Map<number, SocketStream>()
  #isClosed = false
  hasRoom = true
  /** Kept by `keepAlive`. */
  lastWord = 0

  constructor(socket: WebSocket<unknown>, options: StreamsSocketOptions) {
    this.#socket = socket
    this.#options = options
    options.keepAlive.watch(this)
  }

  get address(): string {
    return this.#options.address
  }

  get identity(): string | undefined {
    return this.#options.identity
  }

  /** One frame from the client; what is wrong with it is answered in a frame, and the socket stays open. */
  message(frame: ArrayBuffer, isBinary: boolean): void {
    if (this.#isClosed) return
    try {
      const message = readFrame(this.#socket, frame, isBinary)
      if (message === undefined) return
      const { open, close } = readMessage(message)
      if (open !== undefined) this.#open(open.id, open.path)
      if (close !== undefined) this.#close(close.id)
    } catch (error) {
      this.say(errorFrame(this.#options.dispatcher.failure(error, { name: STREAMS_PATH })))
    }
  }

  #open(id: number, path: string): void {
    if (this.#streams.has(id)) {
      throw new ServiceError(
        'ALREADY_EXISTS',
        `/open/id: a stream with the id ${id} is open; take another, or close it first`,
      )
    }
    const { dispatcher, caller, find } = this.#options
    let asked: StreamAsked
    let call: Call
    try {
      if (this.#streams.size >= MAX_STREAMS) {
        throw new ServiceError(
          'RESOURCE_EXHAUSTED',
          `a socket carries ${MAX_STREAMS} streams; close some, or open another socket`,
        )
      }
      call = new Call(caller(), 'websocket')
      const [plain = '', query = ''] = path.split(/\?(.*)/s)
      asked = find(plain, query)
    } catch (error) {
      const failure = dispatcher.failure(error, { name: STREAMS_PATH })
      this.say(frameOf(id, `"error":${errorBody(failure)}`))
      return
    }
    const stream = new SocketStream(this, id, asked.operation, dispatcher, call, this.#options.streams)
    this.#streams.set(id, stream)
    const { operation, request } = asked
    void dispatcher.open(operation, stream, () => dispatcher.stream(operation, request, call, stream))
  }

  #close(id: number): void {
    const stream = this.#streams.get(id)
    if (stream === undefined) throw new ServiceError('NOT_FOUND', `/close/id: no stream with the id ${id} is open`)
    this.#streams.delete(id)
    stream.lose()
    this.say(frameOf(id, '"closed":{}'))
  }

  /** A stream is over; `last` is what its client is told. */
  ended(stream: SocketStream, last: string): void {
    this.#streams.delete(stream.id)
    this.say(last)
  }

  say(frame: string | Uint8Array): void {
    if (this.#isClosed || !this.#options.full.takes(this, frame.length)) return
    this.#options.keepAlive.spoke(this)
    // 1: sent, 0: kept in a buffer that drains later.
    if (this.#socket.send(frame, false) === 1 || !this.hasRoom) return
    this.hasRoom = false
    this.#options.full.watch(this)
    for (const stream of this.#streams.values()) stream.writable = false
  }

  /** There is room again: for each stream in turn, those served last time last. */
  drained(): void {
    this.#options.full.forget(this)
    this.hasRoom = true
    for (const stream of [...this.#streams.values()]) {
      if (!this.hasRoom) return
      if (stream.closed) continue
      this.#streams.delete(stream.id)
      this.#streams.set(stream.id, stream)
      stream.drained()
    }
  }

  buffered(): number {
    return this.#socket.getBufferedAmount()
  }

  nudge(): void {
    this.#socket.ping()
  }

  cut(): void {
    this.#socket.close()
  }

  /** Says that the socket is still there. */
  keepAlive(): void {
    // A full transport is not silent.
    if (this.hasRoom) this.say(STILL_HERE)
  }

  /** Ends the socket, and its streams, since whoever opened it is not served any more. */
  end(error: ServiceError): void {
    for (const stream of [...this.#streams.values()]) stream.end(error)
    if (this.#isClosed) return
    this.#over()
    this.#socket.end(closeCode(error.code))
  }

  /** The client is gone. */
  lose(): void {
    this.#over()
    const streams = [...this.#streams.values()]
    this.#streams.clear()
    for (const stream of streams) stream.lose()
  }

  #over(): void {
    this.#isClosed = true
    this.#options.keepAlive.forget(this)
    this.#options.full.forget(this)
  }
}

/** One of a socket's streams. */
class SocketStream extends StreamSink {
  readonly id: number
  readonly #socket: StreamsSocket
  readonly #operation: Operation
  readonly #dispatcher: Dispatcher
  /** What a frame begins with that is a message's. */
  readonly #head: Buffer

  constructor(
    socket: StreamsSocket,
    id: number,
    operation: Operation,
    dispatcher: Dispatcher,
    call: Call,
    streams: Set<StreamSink>,
  ) {
    super(call, streams)
    this.#socket = socket
    this.id = id
    this.#operation = operation
    this.#dispatcher = dispatcher
    this.#head = Buffer.from(`{"id":${id},`)
    this.writable = socket.hasRoom
  }

  protected override open(): void {
    this.#socket.say(`{"id":${this.id}}`)
  }

  protected override write(message: unknown): number {
    // Which may be that of other sockets: only what follows its brace is taken.
    const frame = Buffer.concat([this.#head, resultFrame(this.#operation, message).subarray(1)])
    this.#socket.say(frame)
    return frame.length
  }

  protected override finish(error: unknown): void {
    const last =
      error === undefined ? '"closed":{}' : `"error":${errorBody(this.#dispatcher.failure(error, this.#operation))}`
    this.#socket.ended(this, frameOf(this.id, last))
  }
}

const frameOf = (id: number, rest: string): string => `{"id":${id},${rest}}`

interface ClientMessage {
  readonly open?: { readonly id: number; readonly path: string }
  readonly close?: { readonly id: number }
}

const FIELDS = { open: ['id', 'path'], close: ['id'] } as const

/** What a client may say; throws INVALID_ARGUMENT with every problem. */
function readMessage(message: unknown): ClientMessage {
  if (!isObject(message))
    throw invalidArgument('', 'send {"open": {"id": 1, "path": "/v1/streams/…"}} or {"close": {"id": 1}}')
  const problems: { pointer: string; message: string }[] = []
  const kinds = Object.keys(message)
  if (kinds.length !== 1) problems.push({ pointer: '', message: 'must have one member, open or close' })
  for (const kind of kinds) {
    if (kind !== 'open' && kind !== 'close') {
      problems.push({ pointer: pointerOf([kind]), message: 'is not known here: send open or close' })
      continue
    }
    const value = message[kind]
    if (!isObject(value)) {
      problems.push({ pointer: `/${kind}`, message: 'must be an object' })
      continue
    }
    const known: readonly string[] = FIELDS[kind]
    for (const key of Object.keys(value)) {
      if (!known.includes(key))
        problems.push({ pointer: pointerOf([kind, key]), message: `is not known; there is ${known.join(' and ')}` })
    }
    const { id, path } = value
    if (!Number.isSafeInteger(id) || (id as number) < 0) {
      problems.push({ pointer: `/${kind}/id`, message: 'must be a whole number, 0 to 2^53 - 1' })
    }
    if (kind === 'open' && typeof path !== 'string') {
      problems.push({ pointer: '/open/path', message: 'must be the path of a stream, as it would be read with GET' })
    }
  }
  refuse(problems)
  return message
}
