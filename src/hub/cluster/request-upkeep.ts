/** Requests to join that nobody else sees to: those of servers that are gone run out, those of this one's earlier lives are its own again. */

import type { Next } from './changes.ts'
import type { EngineTime, NodeEntry, RequestEntry } from './entries.ts'
import { inTurns } from './in-turns.ts'
import type { Members } from './members.ts'
import { decide, moved, settle } from './request-changes.ts'
import type { ClusterRequests, RequestPlaces } from './requests.ts'
import { ToldOnce } from './told-once.ts'

/** How long a decision is kept for a node that has not heard it, milliseconds: longer than the node looks for another server. */
const DECISION_KEPT_MS = 60_000

export interface RequestUpkeepOptions {
  readonly requests: ClusterRequests
  readonly members: Members
  readonly places: RequestPlaces
  readonly isInTouch: () => boolean
  /** Whether this is the server that does what one of all has to do. */
  readonly isFirst: () => boolean
  readonly engineTime: () => EngineTime
  /** Milliseconds since the epoch, by the engine's clock: those of the servers may be anything. */
  readonly hubTime: () => number
  /** Something has failed, and is tried again; whether that was to be told. */
  readonly onLater: (error: unknown) => boolean
}

export class RequestUpkeep {
  readonly #options: RequestUpkeepOptions
  readonly #failure: ToldOnce
  #isUnderWay = false

  constructor(options: RequestUpkeepOptions) {
    this.#options = options
    this.#failure = new ToldOnce(options.onLater)
  }

  /** To be called every second, and when everything has been read. */
  async tick(): Promise<void> {
    const { requests, members, isInTouch } = this.#options
    if (this.#isUnderWay || !isInTouch()) return
    const due: { readonly nodeId: string; readonly next: (entry: NodeEntry) => Next }[] = []
    for (const [nodeId, all] of requests.known()) {
      for (const request of all) {
        const next = this.#due(request)
        if (next !== undefined) due.push({ nodeId, next })
      }
    }
    if (due.length === 0) {
      this.#failure.worked()
      return
    }
    this.#isUnderWay = true
    try {
      await inTurns(due, ({ nodeId, next }) => members.change(nodeId, next))
      this.#failure.worked()
    } catch (error) {
      this.#failure.failed(error)
    } finally {
      this.#isUnderWay = false
    }
  }

  /** What is to be made of it now. */
  #due(request: RequestEntry): ((entry: NodeEntry) => Next) | undefined {
    const { requests, places, isFirst, engineTime, hubTime } = this.#options
    const { revision, waiter, life, decision } = request
    const isOwn = places.isOwn(life)
    if (isOwn && requests.hasWaiter(request)) {
      const current = places.life()
      return life === current ? undefined : (entry) => moved(entry, waiter, current)
    }
    if (!isOwn && (places.isElsewhere(life) || !isFirst())) return undefined
    const time = engineTime()
    const left = (next: (entry: NodeEntry) => Next) => (entry: NodeEntry) =>
      isStillLeft(entry, request) ? next(entry) : undefined
    if (decision !== undefined) {
      const isOver = time - decision.at >= DECISION_KEPT_MS
      return isOver ? left((entry) => settle(entry, revision, false)) : undefined
    }
    const verdict = time - request.raised >= request.timeout ? 'timedOut' : isOwn ? 'withdrawn' : undefined
    return verdict && left((entry) => decide(entry, revision, verdict, new Date(hubTime())))
  }
}

/** Nobody has taken it up meanwhile. */
function isStillLeft({ requests }: NodeEntry, { revision, waiter }: RequestEntry): boolean {
  return requests.some((each) => each.revision === revision && each.waiter === waiter)
}
