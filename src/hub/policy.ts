/** Whom the hub lets in: members at once, joiners when an operator has accepted them. */

import { ServiceError } from '../contract/errors.ts'
import type { Admission, HubPolicy, LinkSession, NodeRecord } from '../link/link.ts'
import type { HubFact } from './facts.ts'
import type { JoinRequests } from './join-requests.ts'
import type { Claim, NodeRegistry } from './registry.ts'

export interface HubPolicyOptions {
  registry: NodeRegistry
  /** Absent: the hub does not accept authentication by request. */
  requests?: JoinRequests
  /** Sets who serves what the node opens on a new session. */
  serve(session: LinkSession): void
  /** Hears of every link that is up, and of its end. */
  onFact?(fact: HubFact): void
}

export function hubPolicy({ registry, requests, serve, onFact }: HubPolicyOptions): HubPolicy {
  const claims = new ClaimedAdmissions(registry)
  return {
    admit: (nodeId, record, withdrawn) => claims.claim(nodeId, recordOfMember(record), { admitted: true }, withdrawn),
    join: async (given, withdrawn) => {
      const joiner = { ...given, record: recordOfMember(given.record) }
      if (requests !== undefined) {
        const admission = await requests.join(joiner, withdrawn)
        const claimed = await claims.claim(joiner.nodeId, joiner.record, admission, withdrawn)
        if (!claimed.admitted && claimed.reason === 'UNAVAILABLE') requests.leaveBehind(admission)
        return claimed
      }
      const message = 'this hub does not accept authentication by request'
      return { admitted: false, reason: 'NO_AUTHENTICATION_BY_REQUEST', message }
    },
    established: (session, given, admission) => {
      serve(session)
      const record = recordOfMember(given)
      let { name } = record
      const about = { nodeId: session.peerId, address: session.remoteAddress }
      onFact?.({ kind: 'link up', ...about, name })
      void session.closed.then((end) => onFact?.({ kind: 'link down', ...about, name, end }))
      registry.connect(session, record, claims.take(admission))
      const request = requests?.established(session, admission)
      session.onRecord((changed) => {
        request?.confirm()
        name = changed.name
        registry.update(session, recordOfMember(changed))
      })
    },
  }
}

/** What a node says about itself, but that it hosts this hub: its servers say that of themselves, and none of them comes as a member. */
function recordOfMember({ services, ...record }: NodeRecord): NodeRecord {
  return { ...record, services: services.filter((service) => service !== 'HUB_SERVER') }
}

/** Who is let in is claimed before it hears so; what was claimed for a link that never stood is given back. */
class ClaimedAdmissions {
  readonly #registry: NodeRegistry
  readonly #claims = new WeakMap<Admission, { claim: Claim; settle(): void }>()

  constructor(registry: NodeRegistry) {
    this.#registry = registry
  }

  /** `admission`, once its node is claimed, or why it is not let in. */
  claim(
    nodeId: string,
    record: NodeRecord,
    admission: Admission,
    withdrawn: AbortSignal,
  ): Admission | Promise<Admission> {
    if (!admission.admitted || withdrawn.aborted) return admission
    const claim = this.#registry.claim(nodeId, record, withdrawn)
    if (!(claim instanceof Promise)) return this.#note(claim, admission, withdrawn)
    return claim.then((claimed) => this.#note(claimed, admission, withdrawn), refuseUnavailable)
  }

  /** The claim of an admission whose session stands. */
  take(admission: Admission): Claim {
    const claimed = this.#claims.get(admission)
    if (claimed === undefined) throw new Error('a session whose admission was not claimed')
    claimed.settle()
    return claimed.claim
  }

  #note(claim: Claim | undefined, admission: Admission, withdrawn: AbortSignal): Admission {
    if (claim === undefined) {
      return { admitted: false, reason: 'NOT_A_MEMBER', message: 'the node is not on this hub, or was removed from it' }
    }
    const { release } = claim
    if (release === undefined) {
      this.#claims.set(admission, { claim, settle: () => {} })
      return admission
    }
    if (withdrawn.aborted) release()
    else withdrawn.addEventListener('abort', release, { once: true })
    this.#claims.set(admission, { claim, settle: () => withdrawn.removeEventListener('abort', release) })
    return admission
  }
}

/** What cannot be made certain now is no verdict: the node stays signed in, and tries again or elsewhere. */
function refuseUnavailable(error: unknown): Admission {
  if (!(error instanceof ServiceError) || error.code !== 'UNAVAILABLE') throw error
  return { admitted: false, reason: 'UNAVAILABLE', message: error.message }
}
