/** Calls that run on another node: an operation's handler whose work is done at the far end of a link. */
import { type Clock, MAX_TIMEOUT_MS } from '../contract/clock.ts'
import { ServiceError } from '../contract/errors.ts'
import type {
  BidiHandler,
  CallContext,
  RequestReceiver,
  Sink,
  StreamHandler,
  UnaryHandler,
} from '../contract/handlers.ts'
import type { UpdatePipelineRequest } from '../contract/types.ts'
import type { LinkOpener, LinkStatus, LinkStream } from '../link/link.ts'
import { Answer, AnswerTurns, MAX_ANSWER_BYTES } from './link-answers.ts'
import { errorOf, MESSAGE, READY, REFUSED, readRefused, TAKEN } from './link-envelope.ts'

/** How long a node may take to answer, or to establish a stream. */
export const ANSWER_MS = 30_000
/** The same for startPipeline, which gives up on its own after 10 s. */
const START_MS = 15_000
/** What updatePipeline may take beyond its instructionsTimeout, for a run that is replaced: it is stopped within that, the next started. */
const RESTART_MS = 15_000
/** Messages of a bidirectional call that may be without an answer. */
const MAX_UNANSWERED_MESSAGES = 256

/** An operation's messages on the wire; both throw ServiceError. */
export interface Codec {
  readonly name: string
  encodeRequest(request: unknown): Uint8Array
  decodeResponse(bytes: Uint8Array): unknown
}

/** Where a call goes: over `session`, to `target` ('': the peer itself). */
export interface Destination {
  readonly session: LinkOpener
  readonly target: string
  /** How the far end is called in errors. */
  readonly called: string
}

export function unaryOver(
  { session, target, called }: Destination,
  codec: Codec,
  clock: Clock,
): UnaryHandler<unknown, unknown> {
  return (request, call) =>
    new Promise((resolve, reject) => {
      const deadlineMs = patience(codec, request)
      const stream = session.open(codec.name, target, codec.encodeRequest(request), { deadlineMs })
      const answer = new Answer(turnsOf(session), () => stream.resume())
      const finish = () => {
        answer.release()
        clock.clearTimeout(timer)
        call.signal.removeEventListener('abort', abandon)
      }
      const giveUp = (error: ServiceError) => {
        finish()
        stream.cancel()
        reject(error)
      }
      const abandon = () => giveUp(new ServiceError('CANCELLED', 'the caller went away'))
      const timer = clock.setTimeout(() => giveUp(late(called, deadlineMs)), deadlineMs)
      if (call.signal.aborted) {
        abandon()
        return
      }
      call.signal.addEventListener('abort', abandon)
      stream.handlers = {
        fragment: (bytes, more) => {
          const isTaken = answer.take(bytes, more)
          if (answer.length > MAX_ANSWER_BYTES) giveUp(tooLong(codec, called))
          return isTaken
        },
        end: (status) => {
          const response = status.code === 'OK' ? answer.finish() : undefined
          finish()
          if (status.code !== 'OK') reject(errorOf(status))
          else if (response === undefined) reject(new ServiceError('INTERNAL', `${called} answered with nothing`))
          else {
            try {
              resolve(decode(codec, called, response))
            } catch (error) {
              reject(error)
            }
          }
        },
      }
    })
}

export function streamOver(destination: Destination, codec: Codec, clock: Clock): StreamHandler<unknown, unknown> {
  return async (request, _call, sink) => {
    await new FarStream(destination, codec, clock, sink, codec.encodeRequest(request)).ready
  }
}

export function bidiOver(destination: Destination, codec: Codec, clock: Clock): BidiHandler<unknown, unknown> {
  return async (_call: CallContext, sink) => {
    const far = new FarStream(destination, codec, clock, sink, undefined)
    await far.ready
    return far
  }
}

/** A streaming call under way: what comes from the far end goes to the sink as fast as the sink takes it. */
class FarStream implements RequestReceiver<unknown> {
  /** Rejects when the stream could not be established. */
  readonly ready: Promise<void>
  readonly #stream: LinkStream
  readonly #codec: Codec
  readonly #called: string
  readonly #sink: Sink<unknown>
  /** Messages sent and not answered yet, in order. */
  #unanswered: { resolve(): void; reject(error: unknown): void }[] = []
  #settle: { resolve(): void; reject(error: unknown): void } | undefined

  constructor(
    { session, target, called }: Destination,
    codec: Codec,
    clock: Clock,
    sink: Sink<unknown>,
    request: Uint8Array | undefined,
  ) {
    this.#codec = codec
    this.#called = called
    this.#sink = sink
    const stream = session.open(codec.name, target, request, { deadlineMs: ANSWER_MS })
    this.#stream = stream
    const timer = clock.setTimeout(() => {
      stream.cancel()
      this.#over(late(called, ANSWER_MS))
    }, ANSWER_MS)
    const established = new Promise<void>((resolve, reject) => {
      this.#settle = { resolve, reject }
    })
    this.ready = established.finally(() => clock.clearTimeout(timer))
    // The sink may be gone before anybody waits.
    this.ready.catch(() => {})
    stream.handlers = {
      message: (bytes) => this.#message(bytes),
      end: (status) => this.#end(status),
    }
    sink.onDrain(() => stream.resume())
    sink.onClose(() => {
      if (!stream.closed) stream.cancel()
      this.#over(new ServiceError('CANCELLED', 'the caller went away'))
    })
  }

  message(request: unknown): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#unanswered.length >= MAX_UNANSWERED_MESSAGES) {
        throw new ServiceError('RESOURCE_EXHAUSTED', `${MAX_UNANSWERED_MESSAGES} messages wait for ${this.#called}`)
      }
      const bytes = this.#codec.encodeRequest(request)
      this.#unanswered.push({ resolve, reject })
      this.#stream.send(bytes)
    })
  }

  end(): void {
    if (!this.#stream.closed) this.#stream.halfClose()
  }

  #message(bytes: Uint8Array): boolean {
    const content = bytes.subarray(1)
    switch (bytes[0]) {
      case READY:
        this.#settle?.resolve()
        this.#settle = undefined
        return true
      case MESSAGE:
        try {
          return this.#sink.send(decode(this.#codec, this.#called, content))
        } catch (error) {
          this.#break(error)
          return true
        }
      case TAKEN:
        this.#unanswered.shift()?.resolve()
        return true
      case REFUSED:
        this.#unanswered.shift()?.reject(readRefused(content))
        return true
      default:
        this.#break(new ServiceError('INTERNAL', `${this.#called} sent what this node does not understand`))
        return true
    }
  }

  #end(status: LinkStatus): void {
    if (status.code === 'OK') this.#over()
    else this.#over(errorOf(status))
  }

  #break(error: unknown): void {
    this.#stream.cancel()
    this.#over(error)
  }

  /** Before the stream stands a failure rejects `ready`, after it ends the sink. */
  #over(error?: unknown): void {
    const unanswered = this.#unanswered
    this.#unanswered = []
    for (const { reject } of unanswered) {
      reject(error ?? new ServiceError('UNAVAILABLE', 'the stream ended before this message was answered'))
    }
    const settle = this.#settle
    this.#settle = undefined
    if (settle !== undefined && error !== undefined) {
      settle.reject(error)
      return
    }
    settle?.resolve()
    this.#sink.end(error)
  }
}

const turns = new WeakMap<LinkOpener, AnswerTurns>()

function turnsOf(session: LinkOpener): AnswerTurns {
  let known = turns.get(session)
  if (known === undefined) {
    known = new AnswerTurns()
    turns.set(session, known)
  }
  return known
}

function tooLong({ name }: Codec, called: string): ServiceError {
  const most = `${MAX_ANSWER_BYTES / 1024 / 1024} MiB`
  const less =
    name === 'getPipelines'
      ? 'ask for one pipeline, by its id or name, or ask at that node itself'
      : 'ask for less at a time'
  return new ServiceError(
    'RESOURCE_EXHAUSTED',
    `the answer of ${called} is longer than ${most}, the most that comes over a link: ${less}`,
  )
}

function decode(codec: Codec, called: string, bytes: Uint8Array): unknown {
  try {
    return codec.decodeResponse(bytes)
  } catch (error) {
    throw new ServiceError('INTERNAL', `${called} answered ${codec.name} with bytes that are no response to it`, {
      cause: error,
    })
  }
}

/** How long a node may take to answer this request, milliseconds. */
function patience({ name }: Codec, request: unknown): number {
  if (name === 'startPipeline') return START_MS
  if (name !== 'updatePipeline') return ANSWER_MS
  const seconds = Number((request as UpdatePipelineRequest).instructionsTimeout)
  return Math.min(MAX_TIMEOUT_MS, Math.max(ANSWER_MS, seconds * 1000 + RESTART_MS))
}

function late(called: string, milliseconds: number): ServiceError {
  return new ServiceError('DEADLINE_EXCEEDED', `${called} did not answer within ${milliseconds / 1000} s`)
}
