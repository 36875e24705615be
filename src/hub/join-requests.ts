/** The nodes that ask to join: one request a call, shown to every operator, ended by the first answer, by time, or by the caller's leaving. */
import { type ActorRefFrom, createActor } from 'xstate'
import { type AuthOutcome, authRequest } from '../actors/auth-request.ts'
import { networkOf } from '../contract/address.ts'
import type { Clock } from '../contract/clock.ts'
import { ServiceError } from '../contract/errors.ts'
import type { AuthenticationByRequestRequest } from '../contract/types.ts'
import type { Admission, Joiner } from '../link/link.ts'
import { nodeView } from './embedded-registry.ts'
import type { FactCaller, HubFact } from './facts.ts'

/** Requests pending at once, at most. */
export const PENDING_MOST = 1_000
/** Of them from one remote address, at most; an IPv6 /64 counts as one. */
export const PENDING_MOST_PER_ADDRESS = 20

export interface JoinRequestsOptions {
  /** Milliseconds. */
  timeout: number
  /** Rising ids that no process gives out twice. */
  nextId(): Promise<number>
  /** Lets an accepted node in; resolves, once that is on disk, to whether it was not in before. */
  admit(joiner: Joiner): Promise<boolean>
  /** Takes back what `admit` did: the joiner left before it could hear of it. */
  expel(nodeId: string): Promise<unknown>
  /** What nobody waits for has failed. */
  onError(message: string, error: unknown): void
  /** Hears of every request and what became of it. */
  onFact?(fact: HubFact): void
  clock?: Clock
}

interface Pending {
  readonly request: AuthenticationByRequestRequest
  readonly joiner: Joiner
  readonly actor: ActorRefFrom<typeof authRequest>
  /** Fulfilled when an accepted node is on disk. */
  readonly admitted: { promise: Promise<void>; resolve(): void; reject(error: unknown): void }
}

export class JoinRequests {
  readonly #options: JoinRequestsOptions
  readonly #pending = new Map<bigint, Pending>()
  /** Requests raised or being raised, by remote address (`networkOf`); those from inside the process count together. */
  readonly #byAddress = new Map<string, number>()
  /** Nodes that were let in just now and have no session yet. */
  readonly #fresh = new Set<string>()
  #count = 0
  #listener: ((request: AuthenticationByRequestRequest) => void) | undefined

  constructor(options: JoinRequestsOptions) {
    this.#options = options
  }

  /** Sets who hears of every request the moment it is raised. */
  onRequest(listener: (request: AuthenticationByRequestRequest) => void): void {
    this.#listener = listener
  }

  /** What waits for an answer now, oldest first. */
  pending(): AuthenticationByRequestRequest[] {
    return Array.from(this.#pending.values(), ({ request }) => request)
  }

  /** Raises a request and waits for its outcome; `withdrawn` aborts when the joiner goes away. */
  async join(joiner: Joiner, withdrawn: AbortSignal): Promise<Admission> {
    const { remoteAddress } = joiner
    const network = networkOf(remoteAddress)
    const fromAddress = this.#byAddress.get(network) ?? 0
    if (this.#count >= PENDING_MOST) return refusal('TOO_MANY', `${PENDING_MOST} requests are pending on this hub`)
    if (fromAddress >= PENDING_MOST_PER_ADDRESS) {
      return refusal('TOO_MANY', `${PENDING_MOST_PER_ADDRESS} requests from ${network} are pending on this hub`)
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
   * raised, answered by another, timed out or withdrawn.
   */
  async answer(requestId: bigint, accept: boolean, caller: FactCaller): Promise<void> {
    if (requestId === 0n) {
      throw new ServiceError('INVALID_ARGUMENT', '/requestId: say which request is answered', {
        problems: [{ pointer: '/requestId', message: 'say which request is answered' }],
      })
    }
    const pending = this.#pending.get(requestId)
    if (pending === undefined) {
      throw new ServiceError(
        'NOT_FOUND',
        `no request ${requestId} is pending: it was answered, timed out, was withdrawn or never was`,
      )
    }
    this.#options.onFact?.({ kind: 'answered', ...about(pending.joiner), requestId, accept, caller })
    pending.actor.send({ type: 'ANSWER', accept })
    if (accept) await pending.admitted.promise
  }

  /** Whether the session that is made for this node now is the first one after it was let in. */
  takeFresh(nodeId: string): boolean {
    return this.#fresh.delete(nodeId)
  }

  async #raise(joiner: Joiner, withdrawn: AbortSignal): Promise<Admission> {
    const id = BigInt(await this.#options.nextId())
    if (withdrawn.aborted) return refusal('WITHDRAWN', 'the caller went away')
    const { timeout, clock } = this.#options
    const actor = createActor(authRequest, {
      input: { timeout },
      ...(clock === undefined ? {} : { clock: timers(clock) }),
    })
    const outcome = new Promise<AuthOutcome>((resolve) => {
      actor.subscribe({
        complete: () => {
          this.#pending.delete(id)
          resolve(actor.getSnapshot().output as AuthOutcome)
        },
      })
    })
    // It waits at the door: not online before it is let in, and then by the link it comes back with.
    const request = { requestId: id, node: nodeView(joiner.nodeId, joiner.record, false, Date.now()) }
    const pending: Pending = { request, joiner, actor, admitted: deferred() }
    const withdraw = () => {
      if (this.#pending.has(id)) actor.send({ type: 'WITHDRAW' })
    }
    this.#pending.set(id, pending)
    actor.start()
    withdrawn.addEventListener('abort', withdraw)
    const { onFact } = this.#options
    onFact?.({ kind: 'asked', ...about(joiner), requestId: id, address: joiner.remoteAddress })
    this.#listener?.(request)
    try {
      const decided = await outcome
      if (decided === 'withdrawn') onFact?.({ kind: 'withdrawn', ...about(joiner), requestId: id })
      if (decided === 'timedOut') onFact?.({ kind: 'timed out', ...about(joiner), requestId: id })
      return await this.#settle(pending, decided, withdrawn)
    } finally {
      withdrawn.removeEventListener('abort', withdraw)
    }
  }

  async #settle({ joiner, admitted }: Pending, outcome: AuthOutcome, withdrawn: AbortSignal): Promise<Admission> {
    if (outcome === 'rejected') return refusal('REJECTED', 'the operator of the hub rejected the request')
    if (outcome === 'timedOut') return refusal('TIMED_OUT', 'nobody answered the request in time')
    if (outcome === 'withdrawn') return refusal('WITHDRAWN', 'the caller went away')
    let isNew: boolean
    try {
      isNew = await this.#options.admit(joiner)
    } catch (error) {
      admitted.reject(error)
      throw error
    }
    if (withdrawn.aborted) {
      if (isNew) await this.#options.expel(joiner.nodeId)
      const message = `node ${joiner.nodeId} went away while its request was being accepted`
      admitted.reject(new ServiceError('NOT_FOUND', message))
      return refusal('WITHDRAWN', message)
    }
    admitted.resolve()
    if (isNew) {
      this.#fresh.add(joiner.nodeId)
      // Only before its session stands; from then on the session tells.
      const left = () => {
        if (!this.takeFresh(joiner.nodeId)) return
        this.#options.expel(joiner.nodeId).catch((error: unknown) => {
          const what = `node ${joiner.nodeId} went away before it heard that it was accepted, and could not be taken off the list`
          this.#options.onError(what, error)
        })
      }
      withdrawn.addEventListener('abort', left, { once: true })
    }
    return { admitted: true }
  }
}

function about({ nodeId, record }: Joiner): { nodeId: string; name: string } {
  return { nodeId, name: record.name }
}

function refusal(reason: 'REJECTED' | 'TIMED_OUT' | 'TOO_MANY' | 'WITHDRAWN', message: string): Admission {
  return { admitted: false, reason, message }
}

function timers(clock: Clock) {
  return {
    setTimeout: (fn: (...args: unknown[]) => void, timeout: number) => clock.setTimeout(fn, timeout),
    clearTimeout: (timer: unknown) => clock.clearTimeout(timer),
  }
}

function deferred(): Pending['admitted'] {
  let resolve: () => void = () => {}
  let reject: (error: unknown) => void = () => {}
  const promise = new Promise<void>((yes, no) => {
    resolve = yes
    reject = no
  })
  // Nobody waits for it when the answer came over a stream that has gone.
  promise.catch(() => {})
  return { promise, resolve, reject }
}
