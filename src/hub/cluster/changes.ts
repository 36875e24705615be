/** Changes of keys on the condition that nobody else has changed them since: made once, looked up when no answer comes. */
import { randomBytes } from 'node:crypto'
import { JetStreamApiCodes, JetStreamApiError } from '@nats-io/jetstream'
import { jserrors } from '@nats-io/jetstream/internal'
import type { KV, KvEntry } from '@nats-io/kv'
import { errors } from '@nats-io/transport-node'
import type { Clock } from '../../contract/clock.ts'
import { ServiceError } from '../../contract/errors.ts'
import { REQUEST_MS } from './buckets.ts'
import type { Engine, EngineSession } from './engine.ts'
import {
  decodeNodeEntry,
  type EngineTime,
  encodeNodeEntry,
  MAX_OPERATIONS,
  type NodeEntry,
  type Revision,
} from './entries.ts'
import { notPermitted } from './not-permitted.ts'

/** How long a change is tried, from its first write; milliseconds. */
const CHANGE_MS = 5_000
/** Between two tries, milliseconds. */
const PAUSE_MS = 100

/** The entry of a node and its revision, 0 when there is none; a deleted key has one. */
export interface Versioned {
  readonly entry: NodeEntry
  readonly revision: Revision
  /** When the engine took it. */
  readonly at: EngineTime
}

/** What an entry is to become; undefined: it stays. */
export type Next = Partial<Pick<NodeEntry, 'member' | 'requests'>> | undefined

/** `revision`: that of the change; undefined: nothing was to be changed. `before`: what it was made of. */
export interface Changed {
  readonly revision: Revision | undefined
  readonly before: Versioned
}

/** There is no connection to a NATS server now. */
export class NotConnected extends Error {
  override readonly name = 'NotConnected'

  constructor() {
    super('no connection to a NATS server')
  }
}

export const NO_ENTRY: NodeEntry = { member: undefined, requests: [], operations: [] }

export interface ChangesOptions {
  readonly engine: Engine
  readonly clock: Clock
  /** Throws UNAVAILABLE when this server may not write now. */
  readonly mayWrite: () => void
}

export class Changes {
  readonly #options: ChangesOptions

  constructor(options: ChangesOptions) {
    this.#options = options
  }

  /**
   * Changes the entry of a node; `next` is asked again whenever somebody else was faster. `known` is the entry as it was seen last. Throws
   * UNAVAILABLE when nothing was written, UNKNOWN when that cannot be told.
   */
  async change(key: string, known: Versioned, next: (entry: NodeEntry) => Next | Promise<Next>): Promise<Changed> {
    const { clock, mayWrite } = this.#options
    const id = randomBytes(16)
    const until = clock.now() + CHANGE_MS
    let before = known
    let isUncertain = false
    for (;;) {
      const wanted = await Promise.resolve(next(before.entry)).catch((error: unknown) => {
        throw isUncertain ? unknown(error) : error
      })
      if (wanted === undefined) {
        if (isUncertain) throw unknown(new Error('not wanted any more, and what was tried before may have been made'))
        return { revision: undefined, before }
      }
      const value = encodeNodeEntry(withOperation({ ...before.entry, ...wanted }, id))
      try {
        mayWrite()
        const { members } = await this.#session(until)
        return { revision: await write(members, key, value, before.revision), before }
      } catch (error) {
        const failure = classify(error)
        if (failure === 'uncertain') isUncertain = true
        if (failure === 'final' || clock.now() >= until) throw isUncertain ? unknown(error) : unavailable(error)
        if (failure !== 'changed') {
          await this.#pause()
          continue
        }
      }
      const read = await this.#read(key, until, isUncertain)
      const own = read.entry.operations.find((operation) => Buffer.compare(operation.id, id) === 0)
      if (own !== undefined) return { revision: own.revision, before }
      if (read.revision === before.revision) {
        // Refused by a write that is under way and may be an earlier attempt of this one: that nothing has come of it yet tells nothing.
        await this.#pause()
        continue
      }
      if (isUncertain && forgets(before, read)) throw unknown(new Error('too many other changes followed'))
      before = read
      isUncertain = false
    }
  }

  /** The entry as the stream's leader has it. */
  async read(key: string): Promise<Versioned> {
    return await this.#read(key, this.#options.clock.now() + CHANGE_MS, false)
  }

  async #read(key: string, until: number, isUncertain: boolean): Promise<Versioned> {
    for (;;) {
      try {
        const { members } = await this.#session(until)
        return versioned(await members.get(key))
      } catch (error) {
        if (this.#options.clock.now() >= until) throw isUncertain ? unknown(error) : unavailable(error)
        await this.#pause()
      }
    }
  }

  /** The connection there is, or the next one. */
  async #session(until: number): Promise<EngineSession> {
    for (;;) {
      const { session } = this.#options.engine
      if (session !== undefined) return session
      if (this.#options.clock.now() >= until) throw new NotConnected()
      await this.#pause()
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#options.clock.setTimeout(resolve, PAUSE_MS)
    })
  }
}

/** Writes a key whose revision is still `revision`; resolves to its new one. `timeout`: milliseconds. */
export async function write(
  bucket: KV,
  key: string,
  value: Uint8Array,
  revision: Revision,
  timeout = REQUEST_MS,
): Promise<Revision> {
  return await bucket.put(key, value, { previousSeq: revision, timeout })
}

/** What became of a write that failed: somebody else was faster, it cannot be told, it was not made but may be later, or never. */
export function classify(error: unknown): 'changed' | 'uncertain' | 'later' | 'final' {
  // A subscription that is refused is the one to answers: what was asked for is done all the same.
  if (error instanceof ServiceError || notPermitted(error)?.operation === 'publish') return 'final'
  if (error instanceof JetStreamApiError) {
    const { code } = error
    return code === JetStreamApiCodes.StreamWrongLastSequence ||
      code === JetStreamApiCodes.StreamWrongLastSequenceUnknown
      ? 'changed'
      : 'later'
  }
  // Nobody answers for the stream, which has no leader now; or there is no connection to send on.
  const isUnsent =
    error instanceof jserrors.JetStreamNotEnabled ||
    error instanceof errors.ClosedConnectionError ||
    error instanceof NotConnected
  return isUnsent ? 'later' : 'uncertain'
}

function versioned(found: KvEntry | null): Versioned {
  if (found === null) return { entry: NO_ENTRY, revision: 0, at: 0 }
  const { revision, operation, value } = found
  const at = found.created.getTime()
  return { entry: operation === 'PUT' ? decodeNodeEntry(value, revision, at) : NO_ENTRY, revision, at }
}

function withOperation(entry: NodeEntry, id: Uint8Array): NodeEntry {
  return { ...entry, operations: [...entry.operations, { id, revision: 0 }].slice(-MAX_OPERATIONS) }
}

/** Whether between the two there may have been more changes than an entry remembers. */
function forgets(before: Versioned, now: Versioned): boolean {
  const { operations } = now.entry
  if (operations.length < MAX_OPERATIONS) return false
  return operations.every(({ revision }) => revision > before.revision)
}

/** UNAVAILABLE: nothing was changed. */
export function unavailable(cause: unknown): ServiceError {
  if (cause instanceof ServiceError) return cause
  const refusal = cause instanceof JetStreamApiError && classify(cause) === 'later' ? cause : notPermitted(cause)
  const why = refusal
    ? `NATS takes no change of this hub now (${refusal.message})`
    : 'the state of this hub cannot be reached from this server now'
  const message = `${why}, and nothing was changed: try again, or at another of its servers`
  return new ServiceError('UNAVAILABLE', message, { cause })
}

function unknown(cause: unknown): ServiceError {
  const message =
    'the state of this hub did not answer, and whether the change was made is not known: look before trying again'
  return new ServiceError('UNKNOWN', message, { cause })
}
