/** Messages both ways: a WebSocket. */
import { type Connection, type SocketLike, tokenOf } from './connection.ts'
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

/** The path of a WebSocket, as `GET /v1/…`. */
type SocketForm = string

/**
 * Opens a WebSocket; resolves once it is open. Rejects with UNAVAILABLE when it does not come to that: browsers do not tell why. A failure of
 * the stream, told by the close codes 4000 and above, is thrown to who iterates. It is not opened again: answers that were sent would be lost.
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
  const token = await tokenOf(connection)
  const protocols = token === undefined ? ['penstock'] : ['penstock', `penstock.bearer.${token}`]
  const make = connection.webSocket ?? ((at: string, names: string[]): SocketLike => new WebSocket(at, names))
  const inbox = new Inbox<Message>(connection, make(url.replace(/^http/, 'ws'), protocols), { onRefused, onHeard })
  const stop = (): void => inbox.abort(signal?.reason)
  signal?.addEventListener('abort', stop, { once: true })
  await inbox.opened
  return inbox as Exchange<Request, Message>
}

interface Listeners {
  readonly onRefused: ((error: PenstockError) => void) | undefined
  readonly onHeard: (() => void) | undefined
}

/** What came and was not read yet, and who waits for more. */
class Inbox<Message> implements Exchange<unknown, Message> {
  readonly opened: Promise<void>
  readonly #socket: SocketLike
  readonly #listeners: Listeners
  readonly #messages: Message[] = []
  #wake: () => void = () => {}
  #end: { readonly error?: unknown } | undefined
  /** The last error that came: the reason, when the socket closes after it. */
  #failure: PenstockError | undefined

  constructor(connection: Connection, socket: SocketLike, listeners: Listeners) {
    this.#socket = socket
    this.#listeners = listeners
    this.opened = new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve)
      socket.addEventListener('error', () => {})
      socket.addEventListener('message', ({ data }) => this.#message(JSON.parse(String(data))))
      socket.addEventListener('close', ({ code, reason }) => {
        this.#finish(this.#closed(connection, code, reason))
        reject(this.#end?.error ?? new PenstockError('UNAVAILABLE', `${connection.url} does not answer`))
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
          if ('error' in this.#end) throw this.#end.error
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

  #message(frame: unknown): void {
    const { result, error } = frame as { result?: Message; error?: unknown }
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

  #closed(connection: Connection, code: number, reason: string): { error?: unknown } {
    if (code === 1000) return {}
    if (code > 4000 && code - 4000 < CODES.length) {
      const own = CODES[code - 4000] as PenstockError['code']
      return { error: this.#failure?.code === own ? this.#failure : new PenstockError(own, reason) }
    }
    return { error: new PenstockError('UNAVAILABLE', `the WebSocket of ${connection.url} broke off (${code})`) }
  }

  /** The first end is the one that holds. */
  #finish(end: { error?: unknown }): void {
    this.#end ??= end
    this.#wake()
  }
}
