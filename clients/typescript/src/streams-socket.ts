/** One WebSocket for all streams of a connection: each is opened on it with an id, and its messages come with that. */
import type { Connection, SocketLike } from './connection.ts'
import { errorOf, isErrorBody, PenstockError } from './error.ts'
import { dial, failureOfClose, protocolsOf, Queue, readFrame, type SocketListener } from './socket.ts'

const PATH = '/v1/streams'
/** Messages of a stream that wait to be read: a WebSocket cannot be read for one stream and not for the others. */
const MAX_UNREAD = 4_096
/** Milliseconds between looks at how long the socket is silent, at most. */
const LOOK = 1_000

interface Frame {
  readonly id?: number
  readonly result?: unknown
  readonly error?: unknown
  readonly closed?: object
}

/** One of the streams. */
interface Carried {
  readonly queue: Queue<unknown>
  readonly onOpen: () => void
}

/** By connection, the socket that new streams are opened on. */
const current = new WeakMap<Connection, StreamsSocket>()

/**
 * The messages of the stream at `path`, with its query; `onOpen` is called once it stands. The socket is opened for the first of its streams
 * and closed after the last. Rejects as `openSocket` where it cannot be opened; throws the signal's reason when that comes first, and UNAVAILABLE
 * when nothing is heard on the socket for `silence` milliseconds.
 */
export async function* streamBySocket<Message>(
  connection: Connection,
  path: string,
  silence: number,
  signal: AbortSignal,
  onOpen: () => void,
): AsyncGenerator<Message, void, undefined> {
  const protocols = await protocolsOf(connection)
  signal.throwIfAborted()
  let socket = current.get(connection)
  if (socket === undefined || !socket.takes(protocols)) {
    socket = new StreamsSocket(connection, protocols, silence)
    current.set(connection, socket)
  }
  yield* socket.follow<Message>(path, signal, onOpen)
}

class StreamsSocket implements SocketListener {
  readonly #connection: Connection
  readonly #protocols: string[]
  readonly #silence: number
  readonly #streams = new Map<number, Carried>()
  readonly #opened: Promise<void>
  #socket: SocketLike | undefined
  #isOver = false
  #lastId = 0
  #heardAt = performance.now()
  #watch: ReturnType<typeof setInterval> | undefined

  constructor(connection: Connection, protocols: string[], silence: number) {
    this.#connection = connection
    this.#protocols = protocols
    this.#silence = silence
    this.#opened = dial(connection, `${connection.url}${PATH}`, protocols, this)
    this.#opened.catch(() => {
      this.#isOver = true
    })
  }

  /** Whether a stream with this token can be opened on it. */
  takes(protocols: readonly string[]): boolean {
    return !this.#isOver && protocols.join() === this.#protocols.join()
  }

  async *follow<Message>(
    path: string,
    signal: AbortSignal,
    onOpen: () => void,
  ): AsyncGenerator<Message, void, undefined> {
    const id = ++this.#lastId
    const queue = new Queue<unknown>()
    this.#streams.set(id, { queue, onOpen })
    let isAsked = false
    const leave = (): void => {
      if (this.#streams.delete(id) && isAsked) this.#say({ close: { id } })
      if (this.#streams.size === 0) this.#close()
    }
    const stop = (): void => {
      queue.abort(signal.reason)
      // At once: whoever had a message of it need not ask for another.
      leave()
    }
    signal.addEventListener('abort', stop, { once: true })
    try {
      await Promise.race([this.#opened, aborted(signal)])
      signal.throwIfAborted()
      this.#say({ open: { id, path } })
      isAsked = true
      yield* queue.read() as AsyncGenerator<Message, void, undefined>
    } finally {
      signal.removeEventListener('abort', stop)
      leave()
    }
  }

  #say(message: object): void {
    if (!this.#isOver) this.#socket?.send(JSON.stringify(message))
  }

  #close(): void {
    this.#isOver = true
    clearInterval(this.#watch)
    this.#socket?.close()
  }

  made(socket: SocketLike): void {
    this.#socket = socket
    if (this.#isOver) {
      socket.close()
      return
    }
    this.#watch = setInterval(
      () => {
        const isSilent = performance.now() - this.#heardAt > this.#silence
        if (isSilent) this.#fail(this.#brokenOff('nothing was heard for too long'))
      },
      Math.min(LOOK, this.#silence / 3),
    )
  }

  message(text: string): void {
    this.#heardAt = performance.now()
    try {
      const { id, result, error, closed } = readFrame<Frame>(text)
      const stream = id === undefined ? undefined : this.#streams.get(id)
      // One that was closed meanwhile, or the answer to a close that crossed the end of its stream.
      if (id === undefined || stream === undefined) return
      if (result !== undefined) this.#push(id, stream, result)
      else if (isErrorBody(error)) this.#end(id, stream, { error: errorOf(error) })
      else if (closed !== undefined) this.#end(id, stream, {})
      else this.#opens(id, stream)
    } catch (error) {
      this.#fail(error)
    }
  }

  closed(code: number, reason: string): void {
    this.#fail(failureOfClose(this.#connection, code, reason) ?? this.#brokenOff(`code ${code}`))
  }

  #push(id: number, stream: Carried, message: unknown): void {
    if (stream.queue.length < MAX_UNREAD) stream.queue.push(message)
    else this.#leave(id, stream, new PenstockError('RESOURCE_EXHAUSTED', 'messages come faster than they are read'))
  }

  #opens(id: number, stream: Carried): void {
    try {
      stream.onOpen()
    } catch (error) {
      this.#leave(id, stream, error)
    }
  }

  /** Ends a stream from this side. */
  #leave(id: number, stream: Carried, error: unknown): void {
    this.#end(id, stream, { error })
    this.#say({ close: { id } })
  }

  #end(id: number, { queue }: Carried, end: { readonly error?: unknown }): void {
    this.#streams.delete(id)
    queue.finish(end)
  }

  #fail(error: unknown): void {
    for (const [id, stream] of [...this.#streams]) this.#end(id, stream, { error })
    this.#close()
  }

  #brokenOff(why: string): PenstockError {
    return new PenstockError('UNAVAILABLE', `the WebSocket of ${this.#connection.url} broke off: ${why}`, {
      loss: 'BROKEN_OFF',
    })
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = (): void => reject(signal.reason)
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
}
