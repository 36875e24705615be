/** The open requests of a hub with one server: in its memory, as every one ends with the link that waits; their ids are on disk. */
import type { Verdict } from '../actors/auth-request.ts'
import type { JoiningNode } from '../link/link.ts'
import type { MemberPlace, OpenRequest, RequestDecision, RequestStore, Waiter } from './request-store.ts'

export interface EmbeddedRequestsOptions {
  /** Rising ids that no process gives out twice. */
  nextId(): Promise<number>
  /** Lets an accepted node in; resolves once that is on disk. */
  admit(joiner: JoiningNode): Promise<MemberPlace>
  /** Milliseconds since the epoch. */
  now(): number
}

export class EmbeddedRequests implements RequestStore {
  readonly #options: EmbeddedRequestsOptions
  readonly #open = new Map<bigint, { readonly request: OpenRequest; readonly joiner: JoiningNode }>()
  readonly #listeners: ((request: OpenRequest) => void)[] = []

  constructor(options: EmbeddedRequestsOptions) {
    this.#options = options
  }

  *open(): Iterable<OpenRequest> {
    for (const { request } of this.#open.values()) yield request
  }

  async find(id: bigint): Promise<OpenRequest | undefined> {
    return this.#open.get(id)?.request
  }

  follow(listener: (request: OpenRequest) => void): void {
    this.#listeners.push(listener)
  }

  async wait(waiter: Waiter): Promise<void> {
    const { joiner, network, timeout, withdrawn } = waiter
    const id = BigInt(await this.#options.nextId())
    if (withdrawn.aborted) return
    const { nodeId, record } = joiner
    const request = { id, nodeId, record, network, raisedAt: this.#options.now() }
    this.#open.set(id, { request, joiner })
    waiter.raised(id, timeout)
    for (const listener of this.#listeners) listener(request)
  }

  async decide(id: bigint, verdict: Verdict): Promise<RequestDecision | undefined> {
    const found = this.#open.get(id)
    if (found === undefined) return undefined
    // One whose acceptance cannot be written stays open.
    const place = verdict === 'accepted' ? await this.#options.admit(found.joiner) : null
    this.#open.delete(id)
    return { verdict, place, isOwn: true }
  }

  settle(id: bigint): void {
    this.#open.delete(id)
  }
}
