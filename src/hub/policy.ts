/** Whom the hub lets in: members at once, joiners when an operator has accepted them. */

import type { HubPolicy, LinkSession } from '../link/link.ts'
import type { HubFact } from './facts.ts'
import type { JoinRequests } from './join-requests.ts'
import type { NodeRegistry } from './registry.ts'

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
  return {
    admit: (nodeId) =>
      registry.isMember(nodeId)
        ? { admitted: true }
        : { admitted: false, reason: 'NOT_A_MEMBER', message: 'the node is not on this hub, or was removed from it' },
    join: async (joiner, withdrawn) => {
      if (requests !== undefined) return await requests.join(joiner, withdrawn)
      const message = 'this hub does not accept authentication by request'
      return { admitted: false, reason: 'NO_AUTHENTICATION_BY_REQUEST', message }
    },
    established: (session, record, admission) => {
      serve(session)
      const about = { nodeId: session.peerId, name: record.name, address: session.remoteAddress }
      onFact?.({ kind: 'link up', ...about })
      void session.closed.then((end) => onFact?.({ kind: 'link down', ...about, end }))
      registry.connect(session, record)
      const request = requests?.established(session, admission)
      session.onRecord((changed) => {
        request?.confirm()
        registry.update(session, changed)
      })
    },
  }
}
