/** The nodes that ask to join: one request a call, shown to every operator; what becomes of each is its machine's to say (actors/auth-request.ts). */
import { type ActorRefFrom, createActor, fromPromise } from 'xstate'
import {
  type AuthOutcome,
  type AuthRequestEvent,
  type AuthRequestOutput,
  authRequest,
  type Decision,
  holdsNewPlace,
  type Place,
  type Verdict,
} from '../actors/auth-request.ts'
import { networkOf } from '../contract/address.ts'
import { type Clock, systemClock } from '../contract/clock.ts'
import { mayPass, NotStored, ServiceError } from '../contract/errors.ts'
import type { AuthenticationByRequestRequest } from '../contract/types.ts'
import type { Admission, JoiningNode, LinkSession } from '../link/link.ts'
import type { FactCaller, HubFact } from './facts.ts'
import { notPending, refusal, refusalOf, unavailable, wentAway } from './join-refusals.ts'
import { requestView } from './node-records.ts'
import { type Asking, RequestsExhausted, tooMany } from './request-limits.ts'
import type { MemberPlace, RequestDecision, RequestStore, WaitEnd, Waiter } from './request-store.ts'

export interface JoinRequestsOptions {
  /** How long a request waits, milliseconds. */
  timeout: number
  store: RequestStore
  /** Takes back the place that an acceptance has given, unless the node has been let in anew since. */
  expel(place: MemberPlace): Promise<unknown>
  /** What nobody waits for has failed. */
  onError(message: string, error: unknown): void
  /** Hears of every request that waits here and what became of it. */
  onFact?(fact: HubFact): void
  clock?: Clock
}

/** A request that waits here and is not over: for its answer, until that is written, or for the node to confirm that it holds its sign-in. */
interface Raised {
  readonly id: bigint
  readonly joiner: JoiningNode
  readonly actor: ActorRefFrom<typeof authRequest>
  /** What is told to the joiner and, of an acceptance, to the operator; never rejects. */
  readonly outcome: Promise<Outcome>
  /** The last verdict that was asked for here. */
  deciding: Promise<Decision>
}

/** A place with what the registry knows it by. */
interface HeldPlace extends Place {
  readonly onList: MemberPlace
}

type Answer = Omit<Extract<HubFact, { kind: 'answered' }>, 'kind'>

/** `admitted`: for good; otherwise how the request ended before that. */
type Outcome = 'admitted' | AuthRequestOutput

const WAIT_ENDS: Partial<Record<AuthOutcome, WaitEnd>> = {
  confirmed: 'confirmed',
  failed: 'unheard',
  leftBehind: 'unheard',
}

/** An accepted request whose node's session stands. */
export interface AcceptedRequest {
  /** The node has said that it holds its sign-in. */
  confirm(): void
}

export class JoinRequests {
  readonly #options: JoinRequestsOptions
  readonly #clock: Clock
  /** One for all requests: a machine of its own would cost each of them 34 KB. */
  readonly #machine: typeof authRequest
  /** Those that wait here, oldest first. */
  readonly #raised = new Map<bigint, Raised>()
  /** The requests behind what `join` resolved to. */
  readonly #admitted = new WeakMap<Admission, Raised>()
  /** Whose requests are about to be raised here. */
  readonly #raising = new Set<Waiter>()
  /** Who is to go on with a request that is open already, and is counted as that. */
  readonly #goingOn = new Set<Waiter>()

  constructor(options: JoinRequestsOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#machine = authRequest.provide({
      actors: {
        decide: fromPromise<Decision, { requestId: bigint; verdict: Verdict }>(({ input: { requestId, verdict } }) => {
          const raised = this.#raised.get(requestId) as Raised
          raised.deciding = this.#decide(raised, verdict)
          return raised.deciding
        }),
        expel: fromPromise<unknown, Place>(({ input }) => options.expel((input as HeldPlace).onList)),
      },
    })
  }

  /** Sets who hears of every request the moment it is raised, at whichever server. */
  onRequest(listener: (request: AuthenticationByRequestRequest) => void): void {
    this.#options.store.follow((request) => listener(requestView(request)))
  }

  /** What waits for an answer now, oldest first. */
  pending(): AuthenticationByRequestRequest[] {
    return Array.from(this.#options.store.open())
      .filter(({ id }) => {
        const here = this.#raised.get(id)
        return here === undefined || isPending(here)
      })
      .map(requestView)
  }

  /** Raises a request, or goes on with one, and waits for its outcome; `withdrawn` aborts when the joiner goes away. */
  async join(joiner: JoiningNode, withdrawn: AbortSignal): Promise<Admission> {
    const { store, timeout } = this.#options
    const { nodeId } = joiner
    const network = networkOf(joiner.remoteAddress)
    const goesOn = this.#mayGoOn(nodeId)
    const refused = goesOn ? undefined : tooMany(nodeId, network, this.#unanswered())
    if (refused !== undefined) return refusal('TOO_MANY', refused)
    let raised: Raised | undefined
    const waiter: Waiter = {
      joiner,
      network,
      timeout,
      withdrawn,
      requireRoom: () => {
        // Once: from then on it is among those that are counted.
        if (!this.#goingOn.delete(waiter)) return
        const refused = tooMany(nodeId, network, this.#unanswered())
        if (refused !== undefined) throw new RequestsExhausted(refused)
        this.#raising.add(waiter)
      },
      raised: (id, left) => {
        this.#leaveLine(waiter)
        raised = this.#start(id, joiner, left, withdrawn)
      },
      decided: (decision) => {
        if (raised === undefined) return
        const isTaken = isPending(raised)
        tell(raised, { type: 'DECIDED', decision: isTaken ? this.#held(raised, decision) : withPlace(decision) })
      },
    }
    if (goesOn) this.#goingOn.add(waiter)
    else this.#raising.add(waiter)
    try {
      await store.wait(waiter)
    } catch (error) {
      if (error instanceof RequestsExhausted) return refusal('TOO_MANY', error.message)
      if (!mayPass(error)) throw error
      if (error instanceof NotStored) this.#options.onError('a request to join could not be raised', error)
      return unavailable(error)
    } finally {
      this.#leaveLine(waiter)
    }
    if (raised === undefined) return refusal('WITHDRAWN', 'the caller went away')
    return await this.#admission(raised)
  }

  /**
   * Answers a request; resolves once the answer counts, an accepted node being on the list for good. Throws NOT_FOUND when the request is not pending: never
   * raised, answered by another, timed out or withdrawn; or when the joiner goes away before the acceptance is written. UNAVAILABLE and UNKNOWN: it cannot
   * be answered now, or whether it was is not known.
   */
  async answer(requestId: bigint, accept: boolean, caller: FactCaller): Promise<void> {
    if (requestId === 0n) {
      throw new ServiceError('INVALID_ARGUMENT', '/requestId: say which request is answered', {
        problems: [{ pointer: '/requestId', message: 'say which request is answered' }],
      })
    }
    const raised = this.#raised.get(requestId)
    if (raised === undefined) return await this.#answerElsewhere(requestId, accept, caller)
    if (!isPending(raised)) throw notPending(requestId)
    const answer = { ...about(raised.joiner), requestId, accept, caller }
    raised.actor.send({ type: 'ANSWER', accept })
    await this.#told(answer, raised.deciding)
    if (!accept) return
    if ((await raised.outcome) !== 'admitted') throw new ServiceError('NOT_FOUND', wentAway(raised.joiner))
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

  /** This server cannot let the node in now: another may. */
  leaveBehind(admission: Admission): void {
    const raised = this.#admitted.get(admission)
    if (raised !== undefined) tell(raised, { type: 'LEAVE_BEHIND' })
  }

  #leaveLine(waiter: Waiter): void {
    this.#raising.delete(waiter)
    this.#goingOn.delete(waiter)
  }

  /** Whether a request of this node is open that does not wait here, as of one whose server has gone, and that nobody goes on with yet. */
  #mayGoOn(nodeId: string): boolean {
    let open = 0
    for (const request of this.#options.store.open()) {
      if (request.nodeId === nodeId && !this.#raised.has(request.id)) open++
    }
    for (const { joiner } of this.#goingOn) if (joiner.nodeId === nodeId) open--
    return open > 0
  }

  *#unanswered(): Iterable<Asking> {
    yield* this.#options.store.open()
    for (const { joiner, network } of this.#raising) yield { nodeId: joiner.nodeId, network }
  }

  async #admission(raised: Raised): Promise<Admission> {
    const { id, joiner } = raised
    const { onFact } = this.#options
    const outcome = await raised.outcome
    if (outcome === 'admitted') {
      const admission: Admission = { admitted: true }
      this.#admitted.set(admission, raised)
      return admission
    }
    if (outcome.outcome === 'timedOut') onFact?.({ kind: 'timed out', ...about(joiner), requestId: id })
    if (outcome.outcome === 'withdrawn') onFact?.({ kind: 'withdrawn', ...about(joiner), requestId: id })
    return refusalOf(outcome, joiner)
  }

  #start(id: bigint, joiner: JoiningNode, left: number, withdrawn: AbortSignal): Raised {
    const clock = this.#clock
    const input = { requestId: id, timeout: left, now: () => clock.now() }
    const actor = createActor(this.#machine, { input, clock })
    const outcome = new Promise<Outcome>((resolve) => {
      actor.on('admitted', () => resolve('admitted'))
      actor.subscribe({ complete: () => resolve(actor.getSnapshot().output as AuthRequestOutput) })
    })
    const deciding = new Promise<never>(() => {})
    const raised: Raised = { id, joiner, actor, outcome, deciding }
    const withdraw = () => tell(raised, { type: 'WITHDRAW' })
    actor.subscribe({
      complete: () => {
        withdrawn.removeEventListener('abort', withdraw)
        this.#over(raised)
      },
    })
    this.#raised.set(id, raised)
    actor.start()
    withdrawn.addEventListener('abort', withdraw)
    this.#options.onFact?.({ kind: 'asked', ...about(joiner), requestId: id, address: joiner.remoteAddress })
    if (withdrawn.aborted) withdraw()
    return raised
  }

  async #decide(raised: Raised, verdict: Verdict): Promise<Decision> {
    const decision = await this.#options.store.decide(raised.id, verdict)
    return this.#held(raised, decision ?? { verdict: 'withdrawn', place: null, isOwn: false })
  }

  /** A request whose node waits at another server. */
  async #answerElsewhere(requestId: bigint, accept: boolean, caller: FactCaller): Promise<void> {
    const { store } = this.#options
    const request = await store.find(requestId)
    if (request === undefined) throw notPending(requestId)
    const answer = { ...about(request), requestId, accept, caller }
    await this.#told(answer, store.decide(requestId, accept ? 'accepted' : 'rejected'))
  }

  /** Tells of an answer once it is known what has become of it. Throws NOT_FOUND when another was faster, and what `deciding` fails with. */
  async #told(answer: Answer, deciding: Promise<Pick<Decision, 'isOwn'> | undefined>): Promise<void> {
    const { onFact } = this.#options
    let decision: Pick<Decision, 'isOwn'> | undefined
    try {
      decision = await deciding
    } catch (error) {
      onFact?.({ kind: 'not answered', ...answer, error })
      throw error
    }
    if (decision?.isOwn !== true) throw notPending(answer.requestId)
    onFact?.({ kind: 'answered', ...answer })
  }

  /** The node's place is this request's from now on: the last one accepted says whether the node stays. */
  #held({ id, joiner }: Raised, decision: RequestDecision): Decision<HeldPlace> {
    if (decision.place === null) return withPlace(decision)
    const before = this.#others(id, joiner.nodeId).filter(({ actor }) => holdsNewPlace(actor.getSnapshot().context))
    for (const other of before) tell(other, { type: 'HELD_BY_ANOTHER' })
    return withPlace(decision, before.length > 0)
  }

  #over({ id, actor, joiner }: Raised): void {
    const { store, onError } = this.#options
    this.#raised.delete(id)
    const { outcome, error } = actor.getSnapshot().output as AuthRequestOutput
    store.settle(id, WAIT_ENDS[outcome] ?? 'heard')
    if (outcome === 'confirmed') {
      for (const other of this.#others(id, joiner.nodeId)) tell(other, { type: 'HELD_BY_ANOTHER' })
    } else if (outcome === 'gone' && error !== undefined) {
      const what = `node ${joiner.nodeId} went away before it heard that it was accepted, and could not be taken off the list`
      onError(what, error)
    }
  }

  /** The other requests of the same node that wait here and are not over. */
  #others(id: bigint, nodeId: string): Raised[] {
    return Array.from(this.#raised.values()).filter((other) => other.joiner.nodeId === nodeId && other.id !== id)
  }
}

function isPending({ actor }: Raised): boolean {
  return actor.getSnapshot().matches('pending')
}

/** `isNew`: the place is that of another request that nobody has confirmed. */
function withPlace({ place, ...decision }: RequestDecision, isNew = false): Decision<HeldPlace> {
  return { ...decision, place: place && { isNew: place.isNew || isNew, onList: place } }
}

/** What comes after the end of a request changes nothing. */
function tell({ actor }: Raised, event: AuthRequestEvent): void {
  if (actor.getSnapshot().status === 'active') actor.send(event)
}

function about({ nodeId, record }: Pick<JoiningNode, 'nodeId' | 'record'>): { nodeId: string; name: string } {
  return { nodeId, name: record.name }
}
