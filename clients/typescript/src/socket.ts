/** Messages both ways: a WebSocket. */
import { type Connection, explained, type SocketLike, tokenOf } from './connection.ts'
import { CODES, errorOf, isErrorBody, PenstockError } from './error.ts'

export interface SocketOptions {
  /** Closes the socket: the iterator throws the signal's reason. */
  readonly signal?: AbortSignal
  /** Called with what the node says of a message that it refuses; the socket stays open. */
  readonly onRefused?: (error: PenstockError) => void
}

/** An open exchange. Iterating gives the node's messages; leaving the loop closes it. */
export interface Exchange<Request, Message> extends AsyncIterable<Message> {
  /** Sends a message. One that the node refuses is told to `onRefused`. */
  send(message: Request): void
  close(): void
}

/** What the name of a subprotocol may hold (RFC 6455, section 4.1; RFC 9110, section 5.6.2); nodes make tokens of nothing else. */
const PROTOCOL = /^[\w!#$%&'*+.^`|~-]+$/

/** The code of a WebSocket that has ended without one (RFC 6455, section 7.1.5). */
const ABNORMAL = 1006

/** The path of a WebSocket, as `GET /v1/…`. */
type SocketForm = string

/**
 * Opens a WebSocket; resolves once it is open. When it does not come to that, it rejects with what the node has answered, where the WebSocket
 * tells that (`nodeWebSocket` does), else with UNAVAILABLE: browsers do not tell why. A failure of the stream, told by the close codes 4000 and
 * above, is thrown to who iterates. It is not opened again: answers that were sent would be lost.
 */
export async function openSocket<Request, Message>(
  connection: Connection,
  form: SocketForm,
  { signal, onRefused }: SocketOptions = {},
): Promise<Exchange<Request, Message>> {
  signal?.throwIfAborted()
  const forget = (): void => signal?.removeEventListener('abort', stop)
  const inbox = new Inbox<Message>(connection, { onRefused, onClosed: forget })
  const stop = (): void => inbox.abort(signal?.reason)
  signal?.addEventListener('abort', stop)
  try {
    const url = `${connection.url}${form.replace(/^GET /, '')}`
    const protocols = await protocolsOf(connection)
    signal?.throwIfAborted()
    await dial(connection, url, protocols, inbox)
    return inbox as Exchange<Request, Message>
  } catch (error) {
    forget()
    signal?.throwIfAborted()
    throw explained(connection, error)
  }
}

/** Whom a WebSocket tells what comes. */
export interface SocketListener {
  /** It was made, and is about to be opened. */
  made(socket: SocketLike): void
  message(text: string): void
  closed(code: number, reason: string): void
}

/** The subprotocols to offer, with the token among them; rejects with UNAUTHENTICATED when none can carry it. */
export async function protocolsOf(connection: Connection): Promise<string[]> {
  const token = await tokenOf(connection)
  if (token === undefined) return ['penstock']
  if (PROTOCOL.test(token)) return ['penstock', `penstock.bearer.${token}`]
  throw new PenstockError('UNAUTHENTICATED', 'the token cannot be sent: it holds signs that no subprotocol may have')
}

/** Opens a WebSocket at an address of HTTP; fulfilled once it is open, rejects as `openSocket` does. */
export async function dial(
  connection: Connection,
  url: string,
  protocols: string[],
  listener: SocketListener,
): Promise<void> {
  const make = connection.webSocket ?? ((at: string, names: string[]): SocketLike => new WebSocket(at, names))
  const socket = await make(url.replace(/^http/, 'ws'), protocols)
  await new Promise<void>((resolve, reject) => {
    let isOpen = false
    let isClosed = false
    let cause: unknown
    const end = (code: number, reason: string): void => {
      if (isClosed) return
      isClosed = true
      listener.closed(code, reason)
      const unreached = { loss: 'NO_ANSWER', cause } as const
      reject(
        cause instanceof PenstockError
          ? cause
          : new PenstockError('UNAVAILABLE', `${connection.url} does not answer`, unreached),
      )
    }
    socket.addEventListener('open', () => {
      isOpen = true
      resolve()
    })
    socket.addEventListener('error', ({ error }) => {
      cause ??= error
      // One that was not open is closed now, and that of Node.js 22 does not tell so.
      if (!isOpen) end(ABNORMAL, '')
    })
    socket.addEventListener('message', ({ data }) => listener.message(String(data)))
    socket.addEventListener('close', ({ code, reason }) => end(code, reason))
    // It may be closed there, which that of Node.js 22 tells at once.
    listener.made(socket)
  })
}

/** What a close code says: nothing where the socket just ended, else the failure; `last` is the one that was told before it. */
export function failureOfClose(
  { url }: Connection,
  code: number,
  reason: string,
  last?: PenstockError,
): PenstockError | undefined {
  if (code === 1000) return undefined
  if (code > 4000 && code - 4000 < CODES.length) {
    const own = CODES[code - 4000] as PenstockError['code']
    return last?.code === own ? last : new PenstockError(own, reason)
  }
  return new PenstockError('UNAVAILABLE', `the WebSocket of ${url} broke off (${code})`, { loss: 'BROKEN_OFF' })
}

/** A frame of a node; throws PenstockError when it is none. */
export function readFrame<Frame>(text: string): Frame {
  try {
    return JSON.parse(text) as Frame
  } catch (cause) {
    throw new PenstockError('UNKNOWN', 'a message is not of a node', { loss: 'NOT_A_NODE', cause })
  }
}

/** What came and was not read yet, and who waits for more. */
export class Queue<Message> {
  readonly #messages: Message[] = []
  #wake: () => void = () => {}
  #end: { readonly error?: unknown } | undefined

  push(message: Message): void {
    this.#messages.push(message)
    this.#wake()
  }

  get length(): number {
    return this.#messages.length
  }

  /** Nothing comes any more, and what was not read is not wanted. */
  abort(error: unknown): void {
    this.#messages.length = 0
    this.finish({ error })
  }

  /** Nothing comes any more; the first end is the one that holds. */
  finish(end: { readonly error?: unknown }): void {
    this.#end ??= end
    this.#wake()
  }

  /** The messages until the end; throws its error. */
  async *read(): AsyncGenerator<Message, void, undefined> {
    for (;;) {
      const message = this.#messages.shift()
      if (message !== undefined) yield message
      else if (this.#end !== undefined) {
        if ('error' in this.#end) throw this.#end.error
        return
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
    }
  }
}

interface InboxListeners {
  readonly onRefused: ((error: PenstockError) => void) | undefined
  /** Called once its socket is gone. */
  readonly onClosed: () => void
}

class Inbox<Message> implements Exchange<unknown, Message>, SocketListener {
  readonly #connection: Connection
  readonly #listeners: InboxListeners
  readonly #queue = new Queue<Message>()
  #socket: SocketLike | undefined
  #isAborted = false
  /** The last error that came: the reason, when the socket closes after it. */
  #failure: PenstockError | undefined

  constructor(connection: Connection, listeners: InboxListeners) {
    this.#connection = connection
    this.#listeners = listeners
  }

  made(socket: SocketLike): void {
    this.#socket = socket
    if (this.#isAborted) socket.close()
  }

  send(message: unknown): void {
    this.#socket?.send(JSON.stringify(message))
  }

  close(): void {
    this.#queue.finish({})
    this.#socket?.close()
  }

  abort(reason: unknown): void {
    this.#isAborted = true
    this.#queue.abort(reason)
    this.#socket?.close()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Message, void, undefined> {
    try {
      yield* this.#queue.read()
    } catch (error) {
      throw explained(this.#connection, error)
    } finally {
      this.close()
    }
  }

  message(text: string): void {
    try {
      const { result, error } = readFrame<{ result?: Message; error?: unknown }>(text)
      if (isErrorBody(error)) {
        this.#failure = errorOf(error)
        this.#listeners.onRefused?.(this.#failure)
      } else if (result !== undefined) this.#queue.push(result)
    } catch (error) {
      this.abort(error)
    }
  }

  closed(code: number, reason: string): void {
    this.#listeners.onClosed()
    const error = failureOfClose(this.#connection, code, reason, this.#failure)
    this.#queue.finish(error === undefined ? {} : { error })
  }
}
