/** The open requests to join of a hub with several servers: each stands in the entry of its node, and every server sees and may decide it. */
import { randomBytes } from 'node:crypto'
import type { Verdict } from '../../actors/auth-request.ts'
import type { Clock } from '../../contract/clock.ts'
import { ServiceError } from '../../contract/errors.ts'
import type { OpenRequest, RequestDecision, RequestStore, WaitEnd, Waiter } from '../request-store.ts'
import type { DecisionEntry, EngineTime, RequestEntry, Revision } from './entries.ts'
import type { Members } from './members.ts'
import type { Picture } from './picture.ts'
import { decide, settle, waitHere } from './request-changes.ts'

/** How long a node that comes waits until the server that has a request of it counts as gone, milliseconds: as long as a lease is seen to stand, and more. */
const MAX_TAKING_UP_MS = 6_000

/** As of the request's server, for whoever wants to take it up. */
export interface RequestPlaces {
  /** Whether a life is this server's, now or before. */
  readonly isOwn: (life: string) => boolean
  /** Whether it is that of another server whose lease stands. */
  readonly isElsewhere: (life: string) => boolean
  /** The name of this server's life. */
  readonly life: () => string
}

export interface ClusterRequestsOptions {
  readonly members: Members
  readonly picture: Picture
  readonly places: RequestPlaces
  readonly clock: Clock
  readonly isInTouch: () => boolean
  /** What the ids of requests begin at. */
  readonly base: () => bigint
  /** Resolves when everything that was answered anywhere has been seen here. Throws UNAVAILABLE. */
  readonly current: () => Promise<void>
  /** Milliseconds since the epoch, by the engine's clock: those of the servers may be anything. */
  readonly hubTime: () => number
  /** What nobody waits for has failed, and is done later. */
  readonly onLater: (error: unknown) => void
}

interface Waiting {
  readonly waiter: Waiter
  /** Once it is raised. */
  id: bigint | undefined
  /** Whether it has heard what was decided. */
  isTold: boolean
  /** NATS has acknowledged it. */
  isWritten: boolean
  readonly resolve: () => void
}

export class ClusterRequests implements RequestStore {
  readonly #options: ClusterRequestsOptions
  readonly #listeners: ((request: OpenRequest) => void)[] = []
  #open = new Map<bigint, OpenRequest>()
  /** What was seen last, by node. */
  readonly #known = new Map<string, readonly RequestEntry[]>()
  readonly #nodeOf = new Map<bigint, string>()
  /** By RequestEntry.waiter. */
  readonly #waiting = new Map<string, Waiting>()
  /** Who waits for a change. */
  readonly #looks = new Set<() => void>()

  constructor(options: ClusterRequestsOptions) {
    this.#options = options
  }

  open(): Iterable<OpenRequest> {
    return this.#open.values()
  }

  async find(id: bigint): Promise<OpenRequest | undefined> {
    if (!this.#open.has(id)) await this.#options.current()
    return this.#open.get(id)
  }

  follow(listener: (request: OpenRequest) => void): void {
    this.#listeners.push(listener)
  }

  async wait(waiter: Waiter): Promise<void> {
    const { members, places } = this.#options
    const { joiner, network, timeout, withdrawn } = waiter
    const { nodeId, key, record } = joiner
    await this.#leftByOthers(nodeId, withdrawn)
    if (withdrawn.aborted) return
    const token = randomBytes(8).toString('hex')
    const raised = new Promise<void>((resolve) => {
      this.#waiting.set(token, { waiter, id: undefined, isTold: false, isWritten: false, resolve })
      withdrawn.addEventListener('abort', () => resolve(), { once: true })
    })
    const isRaised = () => this.#waiting.get(token)?.id !== undefined
    try {
      await members.change(nodeId, (entry) => {
        const wait = { key, record, network, timeout, waiter: token, life: places.life() }
        const isLeft = (request: RequestEntry) => this.#isLeft(request)
        if (!entry.requests.some(isLeft)) waiter.requireRoom()
        return waitHere(entry, wait, isLeft)
      })
      const waiting = this.#waiting.get(token)
      if (waiting !== undefined) waiting.isWritten = true
      this.#endUnseen()
      await raised
      if (!isRaised() && !withdrawn.aborted) {
        throw new ServiceError('UNAVAILABLE', 'the request to join was over before this server saw it: ask again')
      }
    } catch (error) {
      if (!isRaised()) throw error
    } finally {
      // Should it have been raised all the same, it is seen to have nobody who waits.
      if (!isRaised()) this.#waiting.delete(token)
    }
  }

  async decide(id: bigint, verdict: Verdict): Promise<RequestDecision | undefined> {
    const { members, hubTime } = this.#options
    const nodeId = this.#nodeOf.get(id)
    if (nodeId === undefined) return undefined
    const of = this.#revisionOf(id)
    let known: RequestEntry | undefined
    let isNew = false
    const { revision } = await members.change(nodeId, (entry) => {
      known = entry.requests.find((each) => each.revision === of)
      const next = decide(entry, of, verdict, new Date(hubTime()))
      isNew = next?.requests?.find((each) => each.revision === of)?.decision?.isNew === true
      return next
    })
    if (revision === undefined) return known?.decision && decisionOf(nodeId, known.decision)
    const place = verdict === 'accepted' ? { nodeId, isNew, admission: revision } : null
    return { verdict, place, isOwn: true }
  }

  settle(id: bigint, end: WaitEnd): void {
    const { members, onLater } = this.#options
    const nodeId = this.#nodeOf.get(id)
    const over = () => {
      for (const [token, { id: of }] of this.#waiting) if (of === id) this.#waiting.delete(token)
    }
    if (nodeId === undefined || end === 'unheard') over()
    else {
      members
        .change(nodeId, (entry) => settle(entry, this.#revisionOf(id), end === 'confirmed'))
        .catch(onLater)
        .finally(over)
    }
  }

  /** All requests that stand in the engine, by node. */
  known(): Iterable<readonly [nodeId: string, requests: readonly RequestEntry[]]> {
    return this.#known
  }

  /** Whether somebody waits here for it. */
  hasWaiter({ waiter }: RequestEntry): boolean {
    return this.#waiting.has(waiter)
  }

  /** To be called when an entry may have changed. */
  refresh(nodeId: string): void {
    const { picture } = this.#options
    const { entry, at } = picture.versioned(nodeId)
    const { requests } = entry
    const before = this.#known.get(nodeId) ?? []
    if (requests.length === 0 && before.length === 0) return
    if (requests.length === 0) this.#known.delete(nodeId)
    else this.#known.set(nodeId, requests)
    for (const old of before) if (!requests.some(({ revision }) => revision === old.revision)) this.#gone(old)
    for (const request of requests) {
      const old = before.find(({ revision }) => revision === request.revision)
      if (old !== undefined && old.waiter !== request.waiter) this.#notWaitedFor(old)
      this.#take(nodeId, request, at)
    }
    this.look()
  }

  /** Everything has been read. */
  refreshAll(): void {
    for (const nodeId of new Set([...this.#known.keys(), ...this.#options.picture.asking()])) this.refresh(nodeId)
    this.#open = new Map([...this.#open].sort(([a], [b]) => (a < b ? -1 : 1)))
    this.#endUnseen()
  }

  /** To be called when leases may have ended. */
  look(): void {
    for (const look of [...this.#looks]) look()
  }

  /** Of a key that was written twice NATS may tell the last value alone: a request that was written, and is not there where everything is known, is over. */
  #endUnseen(): void {
    if (!this.#options.isInTouch()) return
    for (const { id, isWritten, resolve } of this.#waiting.values()) if (isWritten && id === undefined) resolve()
  }

  #take(nodeId: string, request: RequestEntry, at: EngineTime): void {
    const { revision, record, network, raised, timeout, decision } = request
    const id = this.#options.base() + BigInt(revision)
    this.#nodeOf.set(id, nodeId)
    const waiting = this.#waiting.get(request.waiter)
    if (waiting !== undefined && waiting.id === undefined) {
      waiting.id = id
      waiting.waiter.raised(id, timeout - (at - raised))
      waiting.resolve()
    }
    if (decision !== undefined) {
      this.#open.delete(id)
      // Told again when this server is in touch: nobody could be let in before.
      if (waiting !== undefined && this.#options.isInTouch()) tell(waiting, decisionOf(nodeId, decision))
    } else if (!this.#open.has(id)) {
      const open = { id, nodeId, record, network, raisedAt: raised }
      this.#open.set(id, open)
      for (const listener of this.#listeners) listener(open)
    }
  }

  #gone(request: RequestEntry): void {
    const id = this.#options.base() + BigInt(request.revision)
    this.#open.delete(id)
    this.#nodeOf.delete(id)
    this.#notWaitedFor(request)
  }

  #notWaitedFor({ waiter }: RequestEntry): void {
    const waiting = this.#waiting.get(waiter)
    if (waiting !== undefined) tell(waiting, { verdict: 'withdrawn', place: null, isOwn: false })
  }

  #revisionOf(id: bigint): Revision {
    return Number(id - this.#options.base())
  }

  /** Whether its server is gone, or this is it and nobody waits for it. */
  #isLeft(request: RequestEntry): boolean {
    const { isOwn, isElsewhere } = this.#options.places
    return isOwn(request.life) ? !this.hasWaiter(request) : !isElsewhere(request.life)
  }

  /** Resolves when no other server has a request of this node any more, or has one for longer than it could without being there. */
  async #leftByOthers(nodeId: string, withdrawn: AbortSignal): Promise<void> {
    const { picture, places, clock } = this.#options
    const there = () => picture.versioned(nodeId).entry.requests.filter(({ life }) => places.isElsewhere(life))
    const awaited = new Set(there().map(({ revision }) => revision))
    if (awaited.size === 0) return
    await new Promise<void>((resolve) => {
      const end = () => {
        clock.clearTimeout(timer)
        this.#looks.delete(look)
        withdrawn.removeEventListener('abort', end)
        resolve()
      }
      const look = () => {
        if (!there().some(({ revision }) => awaited.has(revision))) end()
      }
      const timer = clock.setTimeout(end, MAX_TAKING_UP_MS)
      this.#looks.add(look)
      withdrawn.addEventListener('abort', end)
    })
  }
}

/** The first verdict is the last. */
function tell(waiting: Waiting, decision: RequestDecision): void {
  if (waiting.isTold) return
  waiting.isTold = true
  waiting.waiter.decided(decision)
}

function decisionOf(nodeId: string, { verdict, revision, isNew }: DecisionEntry): RequestDecision {
  const place = verdict === 'accepted' ? { nodeId, isNew, admission: revision } : null
  return { verdict, place, isOwn: false }
}
