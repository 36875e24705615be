/** The lines that the log has of what happens between this server and the state of its hub in NATS. */
import { JetStreamApiError, jserrors } from '@nats-io/jetstream/internal'
import { errors } from '@nats-io/transport-node'
import type { Clock } from '../contract/clock.ts'
import { ServiceError } from '../contract/errors.ts'
import { NotConnected } from '../hub/cluster/changes.ts'
import type { ClusterFact } from '../hub/cluster/cluster-registry.ts'
import { notPermitted, reasonOf } from '../hub/cluster/not-permitted.ts'
import { messageOf } from '../text/error-message.ts'
import type { FactLog } from './facts.ts'

/** Attempts to connect that fail with the same cause have one line in that time, milliseconds. */
export const FAILURE_LINE_MS = 60_000

/** NATS has not answered, as while it elects another leader, or has refused, as when it is full: the cause says all, and where it was met nothing. */
const OF_NATS = [
  errors.TimeoutError,
  errors.RequestError,
  errors.NoRespondersError,
  errors.ClosedConnectionError,
  jserrors.JetStreamNotEnabled,
  JetStreamApiError,
  NotConnected,
]

export class ClusterLog {
  readonly #log: FactLog
  readonly #clock: Pick<Clock, 'now'>
  /** The reason that was told last, and when. */
  #told: { readonly reason: string; readonly at: number } | undefined

  constructor(log: FactLog, clock: Pick<Clock, 'now'>) {
    this.#log = log
    this.#clock = clock
  }

  tell(fact: ClusterFact): void {
    switch (fact.kind) {
      case 'connected':
        this.#told = undefined
        this.#log.info({ nats: fact.server }, 'connected to the state of the hub')
        break
      case 'outdated':
        this.#log.warn(
          { nats: fact.server, version: fact.version },
          `this NATS server may lose a change when two are made at once in buckets with replicas: update it to ${fact.safer} or later`,
        )
        break
      case 'lost': {
        const error = fact.error === undefined ? {} : { error: messageOf(fact.error) }
        this.#log.warn(
          { nats: fact.server, ...error },
          'the connection to the state of the hub is lost; another is tried',
        )
        break
      }
      case 'failed':
        this.#failed(fact.error)
        break
      case 'unusable':
        this.#log.warn(
          { error: messageOf(fact.error) },
          'a NATS server in the list cannot be used; another one is used',
        )
        break
      case 'lease held':
        this.#log.info({ life: fact.life }, 'this server holds its lease: it is one of the hub')
        break
      case 'lease lost':
        this.#log.warn(
          fact.error === undefined ? {} : { error: messageOf(fact.error) },
          'this server has lost its lease: it cannot reach the state of the hub, lets nobody in and removes nobody until it can, and lets its nodes look for another server',
        )
        break
      case 'identity in use':
        this.#log.warn(
          { life: fact.life },
          "another server of the hub runs with this node's identity: is the data directory, or a copy of it, in use by another node?",
        )
        break
      case 'removed':
        this.#log.warn(
          {},
          'this server was removed from the hub while the others could not see it, and is a member of it again: stop it before removing it',
        )
        break
    }
  }

  /** Something could not be done in NATS; `message` says what. */
  error(message: string, error: unknown): void {
    const causes = causesOf(error)
    const violation = notPermitted(error)
    if (violation !== undefined) {
      const missing =
        "this server's account lacks a permission on the NATS servers (docs/cluster-internals.md has the list)"
      this.#log.error({ error: messageOf(violation) }, `${message}: ${missing}`)
      return
    }
    const known = causes
      .filter((cause, i) => isOfNats(cause) || (i === causes.length - 1 && isUnavailable(cause)))
      .at(-1)
    if (known === undefined) this.#log.error({ err: error }, message)
    else this.#log.warn({ error: messageOf(known) }, message)
  }

  #failed(error: unknown): void {
    const at = this.#clock.now()
    const reason = reasonOf(error)
    if (this.#told?.reason === reason && at - this.#told.at < FAILURE_LINE_MS) return
    this.#told = { reason, at }
    this.#log.warn({ error: messageOf(error) }, 'the state of the hub cannot be reached; it is tried again')
  }
}

/** What was thrown, what that was thrown for, and so on. */
function causesOf(error: unknown): unknown[] {
  const causes: unknown[] = [error]
  for (let at = error; at instanceof Error && at.cause !== undefined; at = at.cause) causes.push(at.cause)
  return causes
}

const isOfNats = (error: unknown): boolean => OF_NATS.some((kind) => error instanceof kind)

/** This server has no lease to write with. */
const isUnavailable = (error: unknown): boolean => error instanceof ServiceError && error.code === 'UNAVAILABLE'
