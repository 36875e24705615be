/** One request, many messages: server-sent events (html.spec.whatwg.org, section 9.2) read by fetch, or WebSockets, over as many connections as it takes. */
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { send } from './call.ts'
import type { Connection } from './connection.ts'
import { errorOf, failureOf, isErrorBody, PenstockError } from './error.ts'
import { type Form, prepare, queryForm } from './request.ts'
import { openAt } from './socket.ts'

export interface StreamOptions {
  /** Ends the stream: the iterator throws the signal's reason. Leaving the loop ends it too. */
  readonly signal?: AbortSignal
  /** Whether a connection that breaks, or a node that is away, is waited for and asked again; default true. */
  readonly reconnect?: boolean
  /**
   * Called each time the stream stands, the first included, with how many times it had broken before. What happened in between is not told by
   * streams of changes: whoever keeps a list reads it again.
   */
  readonly onOpen?: (breaks: number) => void
  /** Called each time the stream has broken, or could not be opened, and is about to be asked for again; with why. */
  readonly onBreak?: (error: PenstockError) => void
}

/** Milliseconds before the first attempt to connect again, and at most; each waits twice as long as the last, and at random between half of that and all. */
const FIRST_WAIT = 500
const LONGEST_WAIT = 30_000
const DEFAULT_SILENCE = 45_000

/**
 * Follows a stream. Ends when the node ends it; throws PenstockError when the node refuses it or ends it with a failure other than UNAVAILABLE,
 * and that too without `reconnect`.
 */
export async function* stream<Message>(
  connection: Connection,
  forms: readonly Form[],
  request: object,
  options: StreamOptions = {},
): AsyncGenerator<Message, void, undefined> {
  const { signal, reconnect = true, onOpen, onBreak } = options
  let breaks = 0
  let waits = 0
  for (;;) {
    signal?.throwIfAborted()
    try {
      yield* follow<Message>(connection, forms, request, signal, () => {
        waits = 0
        onOpen?.(breaks)
      })
      return
    } catch (error) {
      signal?.throwIfAborted()
      if (!reconnect || !(error instanceof PenstockError) || error.code !== 'UNAVAILABLE') throw error
      onBreak?.(error)
    }
    breaks++
    await pause(Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** waits++) * (0.5 + Math.random() / 2), signal)
  }
}

/** One connection's worth of a stream. */
async function* follow<Message>(
  connection: Connection,
  forms: readonly Form[],
  request: object,
  signal: AbortSignal | undefined,
  opened: () => void,
): AsyncGenerator<Message, void, undefined> {
  const { silence = DEFAULT_SILENCE } = connection
  const broken = new AbortController()
  const watch = new Silence(silence, () => broken.abort(new Error(`silent for ${silence} ms`)))
  const forward = (): void => broken.abort(signal?.reason)
  signal?.addEventListener('abort', forward)
  if (signal?.aborted === true) forward()
  const form = connection.streams === 'sockets' ? queryForm(forms, request) : undefined
  const heard = (): void => watch.heard()
  try {
    if (form === undefined) yield* events<Message>(connection, forms, request, { signal: broken.signal, opened, heard })
    else yield* messages<Message>(connection, form, request, { signal: broken.signal, opened, heard })
  } catch (cause) {
    if (broken.signal.aborted && !(cause instanceof PenstockError)) throw unavailable(connection, cause)
    throw cause
  } finally {
    watch.end()
    signal?.removeEventListener('abort', forward)
    // Of a loop that was left: the node is told by the end of the connection.
    broken.abort()
  }
}

interface Watch {
  readonly signal: AbortSignal
  /** The stream stands. */
  readonly opened: () => void
  /** Something came. */
  readonly heard: () => void
}

/** As server-sent events. */
async function* events<Message>(
  connection: Connection,
  forms: readonly Form[],
  request: object,
  { signal, opened, heard }: Watch,
): AsyncGenerator<Message, void, undefined> {
  const { url, init } = await prepare(connection, forms, request)
  const response = await send(connection, url, init, signal)
  if (!response.ok) throw await failureOf(response)
  heard()
  opened()
  const parsed: EventSourceMessage[] = []
  const parser = createParser({ onEvent: (event) => parsed.push(event) })
  for await (const text of texts(connection, response)) {
    heard()
    parser.feed(text)
    for (const event of parsed.splice(0)) yield messageOf<Message>(event)
  }
}

/** By a WebSocket. */
async function* messages<Message>(
  connection: Connection,
  form: Form,
  request: object,
  { signal, opened, heard }: Watch,
): AsyncGenerator<Message, void, undefined> {
  const { url, init } = await prepare(connection, [form], request)
  let isOpen = false
  const onHeard = (): void => {
    heard()
    if (!isOpen) opened()
    isOpen = true
  }
  const socket = await openAt<never, Message>(connection, url, { signal, onHeard }).catch(async (cause: unknown) => {
    signal.throwIfAborted()
    await refuse(connection, url, init)
    throw cause
  })
  yield* socket
}

/** Throws why the node refuses a WebSocket, which browsers do not tell: it answers a request for the same with the same. */
async function refuse(connection: Connection, url: string, init: RequestInit): Promise<void> {
  const enough = new AbortController()
  const response = await send(connection, url, init, enough.signal)
  if (!response.ok) throw await failureOf(response)
  enough.abort()
}

/** What comes in, as text; a connection that breaks is UNAVAILABLE. */
async function* texts(connection: Connection, response: Response): AsyncGenerator<string, void, undefined> {
  if (response.body === null) return
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  for (;;) {
    const { done, value } = await reader.read().catch((cause: unknown) => {
      throw unavailable(connection, cause)
    })
    if (done) return
    yield decoder.decode(value, { stream: true })
  }
}

function messageOf<Message>({ event, data }: EventSourceMessage): Message {
  const value: unknown = JSON.parse(data)
  if (event === 'error' && isErrorBody(value)) throw errorOf(value)
  return value as Message
}

function unavailable({ url }: Connection, cause: unknown): PenstockError {
  return new PenstockError('UNAVAILABLE', `the stream of ${url} broke off`, { cause })
}

/** Says when nothing was heard for so long. */
class Silence {
  readonly #milliseconds: number
  readonly #onSilence: () => void
  #timer: ReturnType<typeof setTimeout>

  constructor(milliseconds: number, onSilence: () => void) {
    this.#milliseconds = milliseconds
    this.#onSilence = onSilence
    this.#timer = setTimeout(onSilence, milliseconds)
  }

  heard(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(this.#onSilence, this.#milliseconds)
  }

  end(): void {
    clearTimeout(this.#timer)
  }
}

/** Rejects with the signal's reason when that comes first. */
function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, milliseconds)
    signal?.addEventListener('abort', stop, { once: true })
  })
}
