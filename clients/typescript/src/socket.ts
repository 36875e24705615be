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

/** The path of a WebSocket, as `GET /v1/…`. */
type SocketForm = string

/**
 * Opens a WebSocket; resolves once it is open. When it does not come to that, it rejects with what the node has answered, where the WebSocket
 * tells that (`nodeWebSocket` does), else with UNAVAILABLE: browsers do not tell why. A failure of the stream, told by the close codes 4000 and
 * above, is thrown to who iterates. It is not opened again: answers that were sent would be lost.
 */
export function openSocket<Request, Message>(
  connection: Connection,
  form: SocketForm,
  options: SocketOptions = {},
): Promise<Exchange<Request, Message>> {
  return openAt(connection, `${connection.url}${form.replace(/^GET /, '')}`, options)
}

/** The same at an address of HTTP; `onHeard` is called at each message that is no error, one that says nothing included. */
export async function openAt<Request, Message>(
  connection: Connection,
  url: string,
  { signal, onRefused, onHeard }: SocketOptions & { readonly onHeard?: () => void },
): Promise<Exchange<Request, Message>> {
  signal?.throwIfAborted()
  try {
    const token = await tokenOf(connection)
    if (token !== undefined && !PROTOCOL.test(token)) {
      throw new PenstockError(
        'UNAUTHENTICATED',
        'the token cannot be sent: it holds signs that no subprotocol may have',
      )
    }
    const protocols = token === undefined ? ['penstock'] : ['penstock', `penstock.bearer.${token}`]
    const make = connection.webSocket ?? ((at: string, names: string[]): SocketLike => new WebSocket(at, names))
    const socket = await make(url.replace(/^http/, 'ws'), protocols)
    const inbox = new Inbox<Message>(connection, socket, { onRefused, onHeard })
    const stop = (): void => inbox.abort(signal?.reason)
    signal?.addEventListener('abort', stop, { once: true })
    await inbox.opened
    return inbox as Exchange<Request, Message>
  } catch (error) {
    signal?.throwIfAborted()
    throw explained(connection, error)
  }
}

interface Listeners {
  readonly onRefused: ((error: PenstockError) => void) | undefined
  readonly onHeard: (() => void) | undefined
}

/** What came and was not read yet, and who waits for more. */
class Inbox<Message> implements Exchange<unknown, Message> {
  readonly opened: Promise<void>
  readonly #socket: SocketLike
  readonly #connection: Connection
  readonly #listeners: Listeners
  readonly #messages: Message[] = []
  #wake: () => void = () => {}
  #end: { readonly error?: unknown } | undefined
  /** The last error that came: the reason, when the socket closes after it. */
  #failure: PenstockError | undefined

  constructor(connection: Connection, socket: SocketLike, listeners: Listeners) {
    this.#connection = connection
    this.#socket = socket
    this.#listeners = listeners
    this.opened = new Promise((resolve, reject) => {
      let cause: unknown
      socket.addEventListener('open', resolve)
      socket.addEventListener('error', ({ error }) => {
        cause ??= error
      })
      socket.addEventListener('message', ({ data }) => this.#message(String(data)))
      socket.addEventListener('close', ({ code, reason }) => {
        this.#finish(this.#closed(code, reason))
        const unreached = { loss: 'NO_ANSWER', cause } as const
        reject(
          cause instanceof PenstockError
            ? cause
            : new PenstockError('UNAVAILABLE', `${connection.url} does not answer`, unreached),
        )
      })
    })
  }

  send(message: unknown): void {
    this.#socket.send(JSON.stringify(message))
  }

  close(): void {
    this.#finish({})
    this.#socket.close()
  }

  abort(reason: unknown): void {
    this.#finish({ error: reason })
    this.#socket.close()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Message, void, undefined> {
    try {
      for (;;) {
        const message = this.#messages.shift()
        if (message !== undefined) yield message
        else if (this.#end !== undefined) {
          if ('error' in this.#end) throw explained(this.#connection, this.#end.error)
          return
        } else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve
          })
        }
      }
    } finally {
      this.close()
    }
  }

  #message(text: string): void {
    let frame: { result?: Message; error?: unknown }
    try {
      frame = JSON.parse(text)
    } catch (cause) {
      this.abort(new PenstockError('UNKNOWN', 'a message is not of a node', { loss: 'NOT_A_NODE', cause }))
      return
    }
    const { result, error } = frame
    if (isErrorBody(error)) {
      this.#failure = errorOf(error)
      this.#listeners.onRefused?.(this.#failure)
      return
    }
    this.#listeners.onHeard?.()
    if (result === undefined) return
    this.#messages.push(result)
    this.#wake()
  }

  #closed(code: number, reason: string): { error?: unknown } {
    if (code === 1000) return {}
    if (code > 4000 && code - 4000 < CODES.length) {
      const own = CODES[code - 4000] as PenstockError['code']
      return { error: this.#failure?.code === own ? this.#failure : new PenstockError(own, reason) }
    }
    const message = `the WebSocket of ${this.#connection.url} broke off (${code})`
    return { error: new PenstockError('UNAVAILABLE', message, { loss: 'BROKEN_OFF' }) }
  }

  /** The first end is the one that holds. */
  #finish(end: { error?: unknown }): void {
    this.#end ??= end
    this.#wake()
  }
}
