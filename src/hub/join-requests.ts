/** The nodes that ask to join: one request a call, shown to every operator; what becomes of each is its machine's to say (actors/auth-request.ts). */
import { type ActorRefFrom, createActor, fromPromise } from 'xstate'
import {
  type AuthRequestEvent,
  type AuthRequestOutput,
  authRequest,
  holdsNewPlace,
  type Place,
} from '../actors/auth-request.ts'
import { networkOf } from '../contract/address.ts'
import type { Clock } from '../contract/clock.ts'
import { ServiceError } from '../contract/errors.ts'
import type { AuthenticationByRequestRequest } from '../contract/types.ts'
import type { Admission, JoiningNode, LinkSession } from '../link/link.ts'
import type { FactCaller, HubFact } from './facts.ts'
import { nodeView } from './node-records.ts'
import type { MemberPlace } from './registry.ts'

/** Requests pending at once, at most. */
const MAX_PENDING = 1_000
/** Of them from one remote address, at most; an IPv6 /64 counts as one. */
export const MAX_PENDING_PER_ADDRESS = 20

export interface JoinRequestsOptions {
  /** Milliseconds. */
  timeout: number
  /** Rising ids that no process gives out twice. */
  nextId(): Promise<number>
  /** Lets an accepted node in; resolves once that is on disk. */
  admit(joiner: JoiningNode): Promise<MemberPlace>
  /** Takes back what `admit` did, unless the node has been let in anew since. */
  expel(place: MemberPlace): Promise<unknown>
  /** What nobody waits for has failed. */
  onError(message: string, error: unknown): void
  /** Hears of every request and what became of it. */
  onFact?(fact: HubFact): void
  clock?: Clock
}

/** A request that is not over: it waits for its answer, for the disk, or for the node to confirm that it holds its sign-in. */
interface Raised {
  readonly request: AuthenticationByRequestRequest
  readonly joiner: JoiningNode
  readonly actor: ActorRefFrom<typeof authRequest>
  /** What is told to the joiner and, of an acceptance, to the operator; never rejects. */
  readonly decision: Promise<Decision>
}

/** A place with what the registry knows it by. */
interface HeldPlace extends Place {
  readonly onList: MemberPlace
}

/** `admitted`: on disk; otherwise how the request ended before that. */
type Decision = 'admitted' | AuthRequestOutput

/** An accepted request whose node's session stands. */
export interface AcceptedRequest {
  /** The node has said that it holds its sign-in. */
  confirm(): void
}

export class JoinRequests {
  readonly #options: JoinRequestsOptions
  /** One for all requests: a machine of its own would cost each of them 34 KB. */
  readonly #machine: typeof authRequest
  /** By id, oldest first. */
  readonly #raised = new Map<bigint, Raised>()
  /** The requests behind what `join` resolved to. */
  readonly #admitted = new WeakMap<Admission, Raised>()
  /** Requests raised or being raised, by remote address (`networkOf`); those from inside the process count together. */
  readonly #byAddress = new Map<string, number>()
  #count = 0
  #listener: ((request: AuthenticationByRequestRequest) => void) | undefined

  constructor(options: JoinRequestsOptions) {
    this.#options = options
    this.#machine = authRequest.provide({
      actors: {
        admit: fromPromise<Place, { requestId: bigint }>(({ input }) => this.#admit(input.requestId)),
        expel: fromPromise<unknown, Place>(({ input }) => options.expel((input as HeldPlace).onList)),
      },
    })
  }

  /** Sets who hears of every request the moment it is raised. */
  onRequest(listener: (request: AuthenticationByRequestRequest) => void): void {
    this.#listener = listener
  }

  /** What waits for an answer now, oldest first. */
  pending(): AuthenticationByRequestRequest[] {
    return Array.from(this.#raised.values())
      .filter(isPending)
      .map(({ request }) => request)
  }

  /** Raises a request and waits for its outcome; `withdrawn` aborts when the joiner goes away. */
  async join(joiner: JoiningNode, withdrawn: AbortSignal): Promise<Admission> {
    const { remoteAddress } = joiner
    const network = networkOf(remoteAddress)
    const fromAddress = this.#byAddress.get(network) ?? 0
    if (this.#count >= MAX_PENDING) return refusal('TOO_MANY', `${MAX_PENDING} requests are pending on this hub`)
    if (fromAddress >= MAX_PENDING_PER_ADDRESS) {
      return refusal('TOO_MANY', `${MAX_PENDING_PER_ADDRESS} requests from ${network} are pending on this hub`)
    }
    this.#count++
    this.#byAddress.set(network, fromAddress + 1)
    try {
      return await this.#raise(joiner, withdrawn)
    } finally {
      this.#count--
      const left = (this.#byAddress.get(network) ?? 1) - 1
      if (left === 0) this.#byAddress.delete(network)
      else this.#byAddress.set(network, left)
    }
  }

  /**
   * Answers a request; resolves once the answer counts, an accepted node being on disk. Throws NOT_FOUND when the request is not pending: never
   * raised, answered by another, timed out or withdrawn; or when the joiner goes away before the acceptance is on disk.
   */
  async answer(requestId: bigint, accept: boolean, caller: FactCaller): Promise<void> {
    if (requestId === 0n) {
      throw new ServiceError('INVALID_ARGUMENT', '/requestId: say which request is answered', {
        problems: [{ pointer: '/requestId', message: 'say which request is answered' }],
      })
    }
    const raised = this.#raised.get(requestId)
    if (raised === undefined || !isPending(raised)) {
      throw new ServiceError(
        'NOT_FOUND',
        `no request ${requestId} is pending: it was answered, timed out, was withdrawn or never was`,
      )
    }
    this.#options.onFact?.({ kind: 'answered', ...about(raised.joiner), requestId, accept, caller })
    raised.actor.send({ type: 'ANSWER', accept })
    if (!accept) return
    const decision = await raised.decision
    if (decision === 'admitted') return
    if (decision.outcome === 'failed') throw decision.error
    throw new ServiceError('NOT_FOUND', wentAway(raised.joiner))
  }

  /** A session stands that was let in by `admission`; undefined when that was no request's. */
  established(session: LinkSession, admission: Admission): AcceptedRequest | undefined {
    let raised = this.#admitted.get(admission)
    if (raised === undefined) return undefined
    // A session lives for long: it keeps nothing of a request that is over.
    raised.actor.subscribe({
      complete: () => {
        raised = undefined
      },
    })
    tell(raised, { type: 'SESSION' })
    void session.closed.then(({ reason, byPeer }) => {
      if (raised !== undefined) tell(raised, { type: 'LINK_CLOSED', isHangUp: byPeer && reason === 'SHUTDOWN' })
    })
    return {
      confirm: () => {
        if (raised !== undefined) tell(raised, { type: 'CONFIRMED' })
      },
    }
  }

  async #raise(joiner: JoiningNode, withdrawn: AbortSignal): Promise<Admission> {
    const id = BigInt(await this.#options.nextId())
    if (withdrawn.aborted) return refusal('WITHDRAWN', 'the caller went away')
    const raised = this.#start(id, joiner, withdrawn)
    const { onFact } = this.#options
    onFact?.({ kind: 'asked', ...about(joiner), requestId: id, address: joiner.remoteAddress })
    this.#listener?.(raised.request)
    const decision = await raised.decision
    if (decision === 'admitted') {
      const admission: Admission = { admitted: true }
      this.#admitted.set(admission, raised)
      return admission
    }
    switch (decision.outcome) {
      case 'rejected':
        return refusal('REJECTED', 'the operator of the hub rejected the request')
      case 'timedOut':
        onFact?.({ kind: 'timed out', ...about(joiner), requestId: id })
        return refusal('TIMED_OUT', 'nobody answered the request in time')
      case 'withdrawn':
        onFact?.({ kind: 'withdrawn', ...about(joiner), requestId: id })
        return refusal('WITHDRAWN', 'the caller went away')
      case 'failed':
        throw decision.error
      default:
        return refusal('WITHDRAWN', wentAway(joiner))
    }
  }

  #start(id: bigint, joiner: JoiningNode, withdrawn: AbortSignal): Raised {
    const { timeout, clock } = this.#options
    const actor = createActor(this.#machine, {
      input: { requestId: id, timeout },
      ...(clock === undefined ? {} : { clock }),
    })
    const decision = new Promise<Decision>((resolve) => {
      actor.on('admitted', () => resolve('admitted'))
      actor.subscribe({ complete: () => resolve(actor.getSnapshot().output as AuthRequestOutput) })
    })
    // It waits at the door: not online before it is let in, and then by the link it comes back with.
    const request = { requestId: id, node: nodeView(joiner.nodeId, joiner.record, false, Date.now()) }
    const raised: Raised = { request, joiner, actor, decision }
    const withdraw = () => tell(raised, { type: 'WITHDRAW' })
    actor.subscribe({
      complete: () => {
        withdrawn.removeEventListener('abort', withdraw)
        this.#over(id, raised)
      },
    })
    this.#raised.set(id, raised)
    actor.start()
    withdrawn.addEventListener('abort', withdraw)
    return raised
  }

  /** The node's place, which is this request's from now on: the last one accepted says whether the node stays. */
  async #admit(id: bigint): Promise<HeldPlace> {
    const { joiner } = this.#raised.get(id) as Raised
    const onList = await this.#options.admit(joiner)
    const before = this.#others(id, joiner.nodeId).filter(({ actor }) => holdsNewPlace(actor.getSnapshot().context))
    for (const other of before) tell(other, { type: 'HELD_BY_ANOTHER' })
    return { isNew: onList.isNew || before.length > 0, onList }
  }

  #over(id: bigint, { actor, joiner }: Raised): void {
    this.#raised.delete(id)
    const { outcome, error } = actor.getSnapshot().output as AuthRequestOutput
    if (outcome === 'confirmed') {
      for (const other of this.#others(id, joiner.nodeId)) tell(other, { type: 'HELD_BY_ANOTHER' })
    } else if (outcome === 'gone' && error !== undefined) {
      const what = `node ${joiner.nodeId} went away before it heard that it was accepted, and could not be taken off the list`
      this.#options.onError(what, error)
    }
  }

  /** The other requests of the same node that are not over. */
  #others(id: bigint, nodeId: string): Raised[] {
    return Array.from(this.#raised.values()).filter(
      ({ request, joiner }) => joiner.nodeId === nodeId && request.requestId !== id,
    )
  }
}

function isPending({ actor }: Raised): boolean {
  return actor.getSnapshot().matches('pending')
}

/** What comes after the end of a request changes nothing. */
function tell({ actor }: Raised, event: AuthRequestEvent): void {
  if (actor.getSnapshot().status === 'active') actor.send(event)
}

function wentAway({ nodeId }: JoiningNode): string {
  return `node ${nodeId} went away while its request was being accepted`
}

function about({ nodeId, record }: JoiningNode): { nodeId: string; name: string } {
  return { nodeId, name: record.name }
}

function refusal(reason: 'REJECTED' | 'TIMED_OUT' | 'TOO_MANY' | 'WITHDRAWN', message: string): Admission {
  return { admitted: false, reason, message }
}
