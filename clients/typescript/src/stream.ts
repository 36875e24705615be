/** One request, many messages: server-sent events read by fetch, or a WebSocket for all streams, over as many connections as it takes. */
import { send } from './call.ts'
import { type Connection, explained } from './connection.ts'
import { errorOf, failureOf, foreign, isErrorBody, isMessage, PenstockError } from './error.ts'
import { type Event, eventsOf } from './events.ts'
import type { FetchInit } from './fetch.ts'
import { type Form, prepare, queryForm } from './request.ts'
import { streamBySocket } from './streams-socket.ts'
import { LONGEST_TIMER } from './timers.ts'

export interface StreamOptions {
  /** Ends the stream: the iterator throws the signal's reason. Leaving the loop ends it too. */
  readonly signal?: AbortSignal
  /** Whether a connection that breaks, or a node that is away, is waited for and asked again; default that of the connection, else true. */
  readonly reconnect?: boolean
  /**
   * Called each time the stream stands, the first included, with how many times it had broken before. What happened in between is not told by
   * streams of changes: whoever keeps a list reads it again.
   */
  readonly onOpen?: (breaks: number) => void
  /** Called each time the stream has broken, or could not be opened, and is about to be asked for again; with why. */
  readonly onBreak?: (error: PenstockError) => void
}

/** The messages of a stream, which begins when the first is asked for, or `opened` is called. */
export interface MessageStream<Message> extends AsyncGenerator<Message, void, undefined> {
  /**
   * Connects without waiting for a message; fulfilled once the stream stands, so that whatever happens from then on is told: a list read
   * now misses nothing. Rejects with what the first message would. The signal ends a stream of which no message was asked for.
   */
  opened(): Promise<void>
}

/** Milliseconds before the first attempt to connect again, and at most; each waits twice as long as the last, and at random between half of that and all. */
const FIRST_WAIT = 500
const LONGEST_WAIT = 30_000
const DEFAULT_SILENCE = 45_000
/** Milliseconds that an attempt has for its answer: Node.js 20's fetch never ends where a connection is closed as soon as it stands. */
const LONGEST_OPENING = 15_000

/**
 * Follows a stream. Ends when the node ends it; throws PenstockError when the node refuses it or ends it with a failure other than UNAVAILABLE,
 * and that too without `reconnect`.
 */
export function stream<Message>(
  connection: Connection,
  forms: readonly Form[],
  request: object,
  options: StreamOptions = {},
): MessageStream<Message> {
  let stands: () => void = () => {}
  const standing = new Promise<void>((resolve) => {
    stands = resolve
  })
  const { onOpen, ...others } = options
  const opening = (breaks: number): void => {
    stands()
    onOpen?.(breaks)
  }
  return new Opening(follow<Message>(connection, forms, request, { ...others, onOpen: opening }), standing)
}

/** Messages of which the first may be asked for before anybody reads. */
class Opening<Message> implements MessageStream<Message> {
  readonly #messages: AsyncGenerator<Message, void, undefined>
  readonly #standing: Promise<void>
  #first: Promise<IteratorResult<Message, void>> | undefined

  constructor(messages: AsyncGenerator<Message, void, undefined>, standing: Promise<void>) {
    this.#messages = messages
    this.#standing = standing
  }

  async opened(): Promise<void> {
    this.#first ??= this.#messages.next()
    await Promise.race([this.#standing, this.#first])
  }

  next(): Promise<IteratorResult<Message, void>> {
    const first = this.#first
    this.#first = undefined
    return first ?? this.#messages.next()
  }

  return(): Promise<IteratorResult<Message, void>> {
    return this.#messages.return()
  }

  throw(error: unknown): Promise<IteratorResult<Message, void>> {
    return this.#messages.throw(error)
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}

async function* follow<Message>(
  connection: Connection,
  forms: readonly Form[],
  request: object,
  options: StreamOptions,
): AsyncGenerator<Message, void, undefined> {
  const { signal, reconnect = connection.reconnect ?? true, onOpen, onBreak } = options
  let breaks = 0
  let waits = 0
  for (;;) {
    signal?.throwIfAborted()
    try {
      yield* followOnce<Message>(connection, forms, request, signal, () => {
        waits = 0
        onOpen?.(breaks)
      })
      return
    } catch (error) {
      signal?.throwIfAborted()
      const isAway = error instanceof PenstockError && error.code === 'UNAVAILABLE'
      if (!reconnect || !isAway) throw explained(connection, error)
      onBreak?.(error)
    }
    breaks++
    await pause(Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** waits++) * (0.5 + Math.random() / 2), signal)
  }
}

/** One connection's worth of a stream. */
async function* followOnce<Message>(
  connection: Connection,
  forms: readonly Form[],
  request: object,
  signal: AbortSignal | undefined,
  opened: () => void,
): AsyncGenerator<Message, void, undefined> {
  const silence = Math.min(connection.silence ?? DEFAULT_SILENCE, LONGEST_TIMER)
  const broken = new AbortController()
  const opening = Math.min(silence, LONGEST_OPENING)
  const watch = new Silence(silence, opening, () => broken.abort(new Error('nothing was heard for too long')))
  const forward = (): void => broken.abort(signal?.reason)
  signal?.addEventListener('abort', forward)
  if (signal?.aborted === true) forward()
  const form = connection.streams === 'socket' ? queryForm(forms, request) : undefined
  const following = { signal: broken.signal, opened, watch, silence }
  try {
    if (form === undefined) yield* events<Message>(connection, forms, request, following)
    else yield* messages<Message>(connection, form, request, following)
  } catch (cause) {
    if (broken.signal.aborted && !(cause instanceof PenstockError)) throw brokenOff(connection, cause)
    throw cause
  } finally {
    watch.end()
    signal?.removeEventListener('abort', forward)
    // Of a loop that was left: the node is told by the end of the connection.
    broken.abort()
  }
}

interface Following {
  readonly signal: AbortSignal
  /** The stream stands. */
  readonly opened: () => void
  readonly watch: Silence
  readonly silence: number
}

/** As server-sent events. */
async function* events<Message>(
  connection: Connection,
  forms: readonly Form[],
  request: object,
  { signal, opened, watch }: Following,
): AsyncGenerator<Message, void, undefined> {
  const { url, init } = await prepare(connection, forms, request)
  const answer = await send(connection, url, init, signal)
  if (!answer.ok) throw await failureOf(answer)
  opened()
  const coming = eventsOf(answer.body, () => watch.heard())
  for (;;) {
    // Of what came before the end that was asked for, nothing more is told.
    signal.throwIfAborted()
    watch.heard()
    const { done, value } = await coming.next().catch((cause: unknown) => {
      throw brokenOff(connection, signal.reason ?? cause)
    })
    if (done) return
    // Who reads may take any time.
    watch.end()
    yield messageOf<Message>(value, answer)
  }
}

/** By the WebSocket of all streams, which watches by itself that it is not silent. */
async function* messages<Message>(
  connection: Connection,
  form: Form,
  request: object,
  { signal, opened, watch, silence }: Following,
): AsyncGenerator<Message, void, undefined> {
  // What failures are explained as, is for who reads the stream.
  const { url, init } = await prepare(connection, [form], request)
  let stands = false
  const onOpen = (): void => {
    watch.end()
    stands = true
    opened()
  }
  try {
    yield* streamBySocket<Message>(connection, url.slice(connection.url.length), silence, signal, onOpen)
  } catch (cause) {
    signal.throwIfAborted()
    const isUnreached = !stands && cause instanceof PenstockError && cause.loss !== undefined
    if (isUnreached) await refuse(connection, url, init, signal)
    throw cause
  }
}

/** Throws why the node refuses a WebSocket, which browsers do not tell: it answers a request for the same with the same. */
async function refuse(connection: Connection, url: string, init: FetchInit, signal: AbortSignal): Promise<void> {
  const enough = new AbortController()
  const answer = await send(connection, url, init, AbortSignal.any([signal, enough.signal]))
  if (!answer.ok) throw await failureOf(answer)
  enough.abort()
}

function brokenOff({ url }: Connection, cause: unknown): PenstockError {
  return new PenstockError('UNAVAILABLE', `the stream from ${url} broke off`, { loss: 'BROKEN_OFF', cause })
}

function messageOf<Message>({ event, data }: Event, answer: { status: number; statusText: string }): Message {
  let value: unknown
  try {
    value = JSON.parse(data)
  } catch (cause) {
    throw foreign(answer, cause)
  }
  if (event === 'error' && isErrorBody(value)) throw errorOf(value)
  if (!isMessage(value)) throw foreign(answer)
  return value as Message
}

/** Says when nothing was heard for so long. */
class Silence {
  readonly #milliseconds: number
  readonly #onSilence: () => void
  #timer: ReturnType<typeof setTimeout>

  /** `opening`: how long the first word may take. */
  constructor(milliseconds: number, opening: number, onSilence: () => void) {
    this.#milliseconds = milliseconds
    this.#onSilence = onSilence
    this.#timer = setTimeout(onSilence, opening)
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
