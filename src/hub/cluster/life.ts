/** One life of this server: its lease in the engine, renewed every second until it is lost. */
import { randomBytes } from 'node:crypto'
import type { KV } from '@nats-io/kv'
import { type ActorRefFrom, createActor } from 'xstate'
import { isHeld, type OwnLeaseEvent, ownLease } from '../../actors/own-lease.ts'
import type { Clock } from '../../contract/clock.ts'
import { messageOf } from '../../text/error-message.ts'
import { classify, write } from './changes.ts'
import type { Engine } from './engine.ts'
import { decodeLease, encodeLease, type Revision } from './entries.ts'

/** From one renewal to the next, milliseconds; as long an answer may take. */
const RENEWAL_MS = 1_000
/** Of a server that is up, some renewal of the lease is taken in any time that long, milliseconds. */
export const RENEWED_WITHIN_MS = 2_500
/** A connection on which no renewal was answered for that long is tried, and given up for another when it is dead; milliseconds. */
const MAX_SILENCE_MS = 2_000
/** A NATS server that answers pings and no renewal for that long has no way to the others: longer than they take to elect a leader, milliseconds. */
const MAX_WITHOUT_LEADER_MS = 12_000
/** Renewals whose time of sending is remembered until they come back in the watch. */
const MAX_REMEMBERED = 16

export const leaseKey = (life: string): string => `server.${life}`

export interface LifeOptions {
  readonly engine: Engine
  readonly clock: Clock
  /** Node id of this server. */
  readonly server: string
  /** What the others need to reach it. */
  readonly details: () => Uint8Array
  readonly onHeld: () => void
  /** The renewal that was sent then was acknowledged. */
  readonly onRenewed: (sentAt: number) => void
  /** `error`: why the last renewal failed, where it did. */
  readonly onLost: (error: unknown) => void
  /** A renewal was not taken; it is tried again. */
  readonly onFailed: (error: unknown) => void
}

export class Life {
  /** 16 random bytes as hexadecimal text. */
  readonly name = randomBytes(16).toString('hex')
  readonly #options: LifeOptions
  readonly #actor: ActorRefFrom<typeof ownLease>
  /** When each renewal was sent, by its number; the newest ones. */
  readonly #sent = new Map<bigint, number>()
  #renewal = 0n
  #revision: Revision = 0
  #isOver = false
  #answeredAt: number
  /** Why the last renewal failed; undefined: it did not. */
  #failure: unknown
  #timer: unknown
  /** The renewal that is under way, if any, and whether another is wanted right after it. */
  #renewing: Promise<void> | undefined
  #isHurried = false

  /** Begins at once; `onHeld` tells when the lease is. */
  constructor(options: LifeOptions) {
    const { clock, onHeld, onLost } = options
    this.#options = options
    this.#answeredAt = clock.now()
    this.#actor = createActor(ownLease, { input: { now: () => clock.now() }, clock })
    this.#actor.on('held', onHeld)
    this.#actor.on('lost', () => {
      this.#isOver = true
      onLost(this.#failure)
    })
    this.#actor.start()
    this.#renew()
  }

  get isHeld(): boolean {
    const snapshot = this.#actor.getSnapshot()
    return snapshot.value === 'held' && isHeld(snapshot.context)
  }

  /** Why the last renewal failed; undefined: it did not. */
  get failure(): unknown {
    return this.#failure
  }

  /** The revision of the lease as it was acknowledged last. */
  get revision(): Revision {
    return this.#revision
  }

  /** When this server sent a renewal, if it is one of the last. */
  sentAt(renewal: bigint): number | undefined {
    return this.#sent.get(renewal)
  }

  /** Lets the others know at once what `details` gives now. */
  renewNow(): void {
    this.#isHurried = true
    if (this.#renewing !== undefined) return
    this.#options.clock.clearTimeout(this.#timer)
    this.#renew()
  }

  /** Gives the lease up, so that the others see its end at once. */
  async close(): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    this.#options.clock.clearTimeout(this.#timer)
    this.#tell({ type: 'CLOSE' })
    // Its answer says at which revision the lease is.
    await this.#renewing
    const { session } = this.#options.engine
    if (session !== undefined && this.#revision > 0) await this.#giveUp(session.presence)
  }

  async #giveUp(presence: KV): Promise<void> {
    const key = leaseKey(this.name)
    try {
      await presence.delete(key, { previousSeq: this.#revision })
    } catch (error) {
      if (classify(error) !== 'changed') throw error
      // A renewal whose answer was lost, or the others have ended this life.
      const found = await presence.get(key)
      if (found?.operation === 'PUT') await presence.delete(key, { previousSeq: found.revision })
    }
  }

  /** Sends one renewal, and sees to the next. */
  #renew(): void {
    const { clock } = this.#options
    if (this.#isOver) return
    this.#isHurried = false
    const sentAt = clock.now()
    this.#renewing = this.#renewOnce(sentAt).then(() => {
      this.#renewing = undefined
      if (this.#isOver) return
      const pause = this.#isHurried ? 0 : Math.max(RENEWAL_MS / 10, sentAt + RENEWAL_MS - clock.now())
      this.#timer = clock.setTimeout(() => this.#renew(), pause)
    })
  }

  async #renewOnce(sentAt: number): Promise<void> {
    const { engine, clock } = this.#options
    const { session } = engine
    if (session === undefined) {
      this.#answeredAt = sentAt
      return
    }
    try {
      await this.#send(session.presence, sentAt)
    } catch (error) {
      // Asked again soon; what goes on for too long is the lease's end, which is told.
      this.#failure = error
      if (!this.#isOver) this.#options.onFailed(error)
    }
    if (this.#isOver) return
    const silence = clock.now() - this.#answeredAt
    if (silence > MAX_WITHOUT_LEADER_MS) engine.reconnect(unanswered(this.#failure))
    else if (silence > MAX_SILENCE_MS && engine.session === session) engine.reconnectIfDead()
  }

  async #send(presence: KV, sentAt: number): Promise<void> {
    const renewal = ++this.#renewal
    this.#sent.set(renewal, sentAt)
    for (const old of this.#sent.keys()) if (this.#sent.size > MAX_REMEMBERED) this.#sent.delete(old)
    const { server, details } = this.#options
    const key = leaseKey(this.name)
    try {
      const value = encodeLease({ server, renewal, details: details() })
      this.#acknowledge(await write(presence, key, value, this.#revision, RENEWAL_MS), sentAt)
    } catch (error) {
      if (classify(error) !== 'changed') throw error
      // Nobody else writes it: an answer was lost, or the others have ended this life.
      const found = await presence.get(key)
      if (found?.operation !== 'PUT') {
        this.#tell({ type: 'TAKEN' })
        return
      }
      const at = this.#sent.get(decodeLease(found.value).renewal)
      if (at === undefined) this.#revision = found.revision
      else this.#acknowledge(found.revision, at)
    }
  }

  #acknowledge(revision: Revision, sentAt: number): void {
    this.#revision = revision
    this.#answeredAt = this.#options.clock.now()
    this.#failure = undefined
    this.#tell({ type: 'ACKNOWLEDGED', sentAt })
    if (!this.#isOver) this.#options.onRenewed(sentAt)
  }

  #tell(event: OwnLeaseEvent): void {
    if (this.#actor.getSnapshot().status === 'active') this.#actor.send(event)
  }
}

const unanswered = (cause: unknown): Error =>
  new Error(
    `it has taken no renewal of this server's lease for ${MAX_WITHOUT_LEADER_MS / 1_000} s: ${messageOf(cause)}`,
  )
