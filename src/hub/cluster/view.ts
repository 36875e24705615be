/** Keeps the picture: both buckets watched over each connection there is, read anew when it breaks, and known to be whole. */
import { JetStreamApiCodes, JetStreamApiError } from '@nats-io/jetstream'
import type { Clock } from '../../contract/clock.ts'
import { REQUEST_MS } from './buckets.ts'
import { NotConnected } from './changes.ts'
import type { Engine, EngineSession } from './engine.ts'
import { EngineClock } from './engine-clock.ts'
import { decodeLease, type EngineTime, type Revision } from './entries.ts'
import { type Life, leaseKey } from './life.ts'
import { notPermitted } from './not-permitted.ts'
import type { Picture } from './picture.ts'
import { Servers } from './servers.ts'
import { ToldOnce } from './told-once.ts'
import type { Bucket } from './tombstones.ts'
import { BARRIER_KEY, Watch, type WatchedKey } from './watch.ts'

/** A renewal that has not come back after that long says that the watch is broken, milliseconds. */
const MAX_LAG_MS = 2_000
/** NATS that does not let this server watch is asked again that long after, milliseconds. */
const RETRY_MS = 2_000
/** Everything is read within that, milliseconds. */
const MAX_READING_MS = 60_000

export interface ViewOptions {
  readonly engine: Engine
  readonly picture: Picture
  readonly servers: Servers
  /** This server's life. */
  readonly life: () => Life | undefined
  readonly clock: Clock
  /** Hears of each key that is in the picture from now on. */
  readonly onKey: (bucket: Bucket, key: WatchedKey) => void
  /** Hears of each node that may have changed. */
  readonly onNode: (nodeId: string) => void
  /** A renewal of the lease has come back. */
  readonly onRenewal: () => void
  /** Everything has been read over this connection, and the lease is held. */
  readonly onWhole: () => void
  /** The connection has broken, or there is none. */
  readonly onBroken: () => void
  /** The presence is another than before, and empty: its revisions begin anew. */
  readonly onPresenceLost: () => void
  readonly onError: (message: string, error: unknown) => void
}

/** What is watched over one connection. */
interface Reading {
  readonly session: EngineSession
  readonly members: Watch
  readonly presence: Watch
}

export class View {
  readonly #options: ViewOptions
  #reading: Reading | undefined
  #isWhole = false
  #isChecking = false
  /** Both watches stand, and NATS did not take what shows that they have told all: tried again with the next renewal. */
  #isIncomplete = false
  /** Why not everything could be read; undefined: it was, or may yet be. */
  #failure: unknown
  readonly #told: ToldOnce
  #presenceMade = 0
  /** The bucket of presence is not the one of the last whole picture. */
  #isPresenceLost = false
  /** The lives whose leases were read since the picture was whole, and whether they stand. */
  readonly #leases = new Map<string, boolean>()
  /** When the newest of this server's renewals that has come back was sent; when reading began, before that. */
  #currentAsOf = 0
  /** The oldest renewal that was acknowledged and has not come back: when it was sent, and when that was known. */
  #missing: { readonly sentAt: number; readonly since: number } | undefined
  #engineTime: EngineTime = 0
  readonly #engineClock = new EngineClock()

  constructor(options: ViewOptions) {
    this.#options = options
    this.#told = new ToldOnce((error) => {
      options.onError('the state of the hub could not be read; it is tried again', error)
      return true
    })
  }

  /** Why not everything could be read; undefined: it was, or may yet be. */
  get failure(): unknown {
    return this.#failure
  }

  get isWhole(): boolean {
    return this.#isWhole
  }

  /** The time stamp of this server's newest renewal that has come back. */
  get engineTime(): EngineTime {
    return this.#engineTime
  }

  /** What the engine's clock says by now, as far as is known; 0 before the first time stamp. */
  get engineNow(): EngineTime {
    return this.#engineClock.at(this.#options.clock.now())
  }

  begin(): void {
    const { engine } = this.#options
    engine.follow((session) => this.#follow(session))
    this.#follow(engine.session)
  }

  /** A new lease is held: what has been read is read up to it. */
  lifeHeld(): void {
    const reading = this.#reading
    if (reading !== undefined) this.#complete(reading).catch((error: unknown) => this.#failed(reading.session, error))
  }

  /** The renewal that was sent then was acknowledged: those before it should have come back by now. */
  renewed(sentAt: number): void {
    const { engine, clock } = this.#options
    const limit = this.#isWhole ? MAX_LAG_MS : MAX_READING_MS
    const now = clock.now()
    if (this.#currentAsOf < sentAt) this.#missing ??= { sentAt, since: now }
    if (engine.session !== undefined && this.#missing !== undefined && now - this.#missing.since > limit) {
      engine.reconnect(new Error(`what this server has written does not come back within ${limit / 1_000} s`))
      return
    }
    // Also of one that is whole, for a new lease.
    if (this.#isIncomplete) {
      this.#isIncomplete = false
      this.lifeHeld()
    }
    if (this.#isWhole) void this.#checkMembers(this.#require())
  }

  /**
   * Nothing of this server's comes back in the watch of members: what the stream has is to have come. One that has less than the watch has told was put back to
   * what it was before, and one that is gone may be: the watch says nothing of either.
   */
  async #checkMembers(reading: Reading): Promise<void> {
    const { engine, clock } = this.#options
    if (this.#isChecking) return
    this.#isChecking = true
    const isBroken = () =>
      this.#reading === reading && engine.reconnect(new Error('its bucket of members is not what was read of it'))
    try {
      const { reached } = reading.members
      const { streamInfo } = await reading.session.members.status()
      if (streamInfo.state.last_seq < reached) {
        isBroken()
        return
      }
      const timer = clock.setTimeout(isBroken, MAX_LAG_MS)
      await reading.members.passed(streamInfo.state.last_seq).finally(() => clock.clearTimeout(timer))
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound) isBroken()
      // The renewals of the lease tell whether the engine answers; a watch that has ended is begun anew anyway.
    } finally {
      this.#isChecking = false
    }
  }

  /** Writes a barrier and waits until the watch has passed it. */
  async current(): Promise<void> {
    const reading = this.#require()
    const revision = await reading.session.members.put(BARRIER_KEY, new Uint8Array(0), { timeout: REQUEST_MS })
    await reading.members.passed(revision)
    if (!this.#isWhole) throw new Error('the state of the hub is being read')
  }

  /** Resolves when a change that was acknowledged has been told here, or the connection breaks. */
  async membersPassed(revision: Revision): Promise<void> {
    await this.#reading?.members.passed(revision).catch(() => undefined)
  }

  async presencePassed(revision: Revision): Promise<void> {
    await this.#reading?.presence.passed(revision).catch(() => undefined)
  }

  #require(): Reading {
    if (this.#reading === undefined) throw new NotConnected()
    return this.#reading
  }

  #follow(session: EngineSession | undefined): void {
    const { picture, clock, onBroken, onPresenceLost } = this.#options
    this.#reading = undefined
    this.#isWhole = false
    this.#isIncomplete = false
    this.#leases.clear()
    picture.beginReading()
    onBroken()
    if (session === undefined) return
    if (session.presenceMade !== this.#presenceMade) {
      this.#isPresenceLost = true
      picture.forgetPresence()
      onPresenceLost()
    }
    this.#presenceMade = session.presenceMade
    this.#currentAsOf = clock.now()
    this.#missing = undefined
    this.#read(session).catch((error: unknown) => this.#failed(session, error))
  }

  #failed(session: EngineSession, error: unknown): void {
    const { engine, clock } = this.#options
    if (engine.session !== session) return
    this.#failure = error
    this.#told.failed(error)
    if (!(error instanceof JetStreamApiError) && notPermitted(error) === undefined) engine.reconnect()
    // NATS has answered, and would answer the same over another connection: it is full, or at a limit, or does not permit it.
    else if (this.#reading?.session === session) this.#isIncomplete = true
    else clock.setTimeout(() => engine.session === session && engine.reconnect(), RETRY_MS)
  }

  async #read(session: EngineSession): Promise<void> {
    const { engine } = this.#options
    const isNow = () => engine.session === session
    const onEnd = () => {
      if (isNow()) engine.reconnect()
    }
    const members = await Watch.begin(session.members, (key) => isNow() && this.#onMember(key), onEnd)
    const presence = await Watch.begin(session.presence, (key) => isNow() && this.#onPresence(key), onEnd)
    if (!isNow()) return
    const reading = { session, members, presence }
    this.#reading = reading
    await this.#complete(reading)
  }

  /** Once both watches have passed what was written after they began, and the lease is held, the picture is whole. */
  async #complete(reading: Reading): Promise<void> {
    const { life, picture, servers, onWhole, onNode } = this.#options
    const { session, members, presence } = reading
    const own = life()
    if (own?.isHeld !== true) return
    const barrier = await session.members.put(BARRIER_KEY, new Uint8Array(0), { timeout: REQUEST_MS })
    const { streamInfo } = await session.presence.status()
    await Promise.all([members.passed(barrier), presence.passed(Math.max(own.revision, streamInfo.state.last_seq))])
    if (this.#reading !== reading || life() !== own) return
    this.#failure = undefined
    this.#told.worked()
    if (!this.#isWhole) {
      this.#isWhole = true
      servers.resumed(this.#leases, this.#isPresenceLost)
      this.#isPresenceLost = false
      picture.endReading(members.takeSeen(), presence.takeSeen())
      for (const { id } of picture.nodes()) onNode(id)
    }
    onWhole()
  }

  #onMember(key: WatchedKey): void {
    this.#guarded(key, () => this.#changed('members', this.#options.picture.takeMember(key), key))
  }

  #onPresence(key: WatchedKey): void {
    const { servers, picture } = this.#options
    const life = Servers.lifeOfKey(key.key)
    this.#guarded(key, () => {
      if (life === undefined) this.#changed('presence', picture.takePresence(key), key)
      else if (key.key === this.#ownLeaseKey()) this.#onOwnLease(key)
      else {
        // While all is read anew, one that has ended comes before that which its server has now: it would seem to be gone.
        if (!this.#isWhole) this.#leases.set(life, key.value !== undefined)
        if (this.#isWhole || key.value !== undefined) servers.take(life, key)
        this.#options.onKey('presence', key)
      }
    })
  }

  /** One wrong value is no reason to see nothing more. */
  #guarded({ key }: WatchedKey, take: () => void): void {
    try {
      take()
    } catch (error) {
      this.#options.onError(`the key ${key} of the hub's state cannot be read, and counts for nothing`, error)
    }
  }

  #changed(bucket: Bucket, nodeId: string | undefined, key: WatchedKey): void {
    const { picture, onKey, onNode } = this.#options
    if (nodeId === undefined) return
    onKey(bucket, key)
    picture.refresh(nodeId)
    if (this.#isWhole) onNode(nodeId)
  }

  #ownLeaseKey(): string | undefined {
    const name = this.#options.life()?.name
    return name === undefined ? undefined : leaseKey(name)
  }

  #onOwnLease({ value, at }: WatchedKey): void {
    const { life, servers, clock, onRenewal } = this.#options
    const sentAt = value === undefined ? undefined : life()?.sentAt(decodeLease(value).renewal)
    if (sentAt === undefined) return
    this.#currentAsOf = sentAt
    if (this.#missing !== undefined && sentAt >= this.#missing.sentAt) this.#missing = undefined
    this.#engineTime = at
    this.#engineClock.take(at, sentAt, clock.now())
    if (!this.#isWhole) return
    servers.current(sentAt)
    onRenewal()
  }
}
