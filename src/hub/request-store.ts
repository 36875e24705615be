/** Requests to join that are open, kept with the hub's state: in the memory of its only server, or where several servers share it. */
import type { Decision, Place, Verdict } from '../actors/auth-request.ts'
import type { JoiningNode, NodeRecord } from '../link/link.ts'

/** A request that waits for its answer, whichever server its node waits at. */
export interface OpenRequest {
  /** Rises over all requests that the hub ever had. */
  readonly id: bigint
  readonly nodeId: string
  readonly record: NodeRecord
  /** What the node's address is counted as (`networkOf`). */
  readonly network: string
  /** Milliseconds since the epoch. */
  readonly raisedAt: number
}

/** A node's place on the list, as the request has it that was accepted last; a later acceptance of the same node makes a new one. */
export interface MemberPlace extends Place {
  readonly nodeId: string
}

/** Of an acceptance: with the place that was made by the same write. */
export type RequestDecision = Decision<MemberPlace>

/** A node that waits at this server. */
export interface Waiter {
  readonly joiner: JoiningNode
  readonly network: string
  /** How long a new request waits, milliseconds. */
  readonly timeout: number
  /** Aborts when the node goes away. */
  readonly withdrawn: AbortSignal
  /** To be called before a new request is raised for a node that has one elsewhere. Throws RequestsExhausted where as many are open as may be. */
  requireRoom(): void
  /** Its request is open, before anybody is shown it; `left`: the milliseconds that it still has. Called once at most. */
  raised(id: bigint, left: number): void
  /** It was decided, or is waited for elsewhere, and not by `decide` here. */
  decided(decision: RequestDecision): void
}

export interface RequestStore {
  /** All of them, oldest first. */
  open(): Iterable<OpenRequest>
  /** The open request with this id, also one that another server has shown a moment ago. Throws UNAVAILABLE. */
  find(id: bigint): Promise<OpenRequest | undefined>
  /** Hears of every request that is raised from now on, wherever that is. */
  follow(listener: (request: OpenRequest) => void): void
  /**
   * A node waits here: raises a request of it, or goes on with one of it whose server is gone, which keeps its id and its time. Resolves once the waiter knows
   * that it was raised, or has gone. Throws RequestsExhausted, UNAVAILABLE and UNKNOWN.
   */
  wait(waiter: Waiter): Promise<void>
  /** Decides an open request; resolves, once that cannot be lost, to the verdict that counts; undefined: there is none now. Throws as `wait` does. */
  decide(id: bigint, verdict: Verdict): Promise<RequestDecision | undefined>
  /** Nobody waits for it here any more. */
  settle(id: bigint, end: WaitEnd): void
}

/** How a wait ended: its node has heard what was decided, or gone; has said that it holds its sign-in; or has yet to hear it, from another server. */
export type WaitEnd = 'heard' | 'confirmed' | 'unheard'
