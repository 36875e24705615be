/** What becomes of a node's entry when a request of it is raised, taken up, decided and settled. */
import type { Verdict } from '../../actors/auth-request.ts'
import type { Next } from './changes.ts'
import { admitted, type NodeEntry, type RequestEntry, type Revision } from './entries.ts'

/** What a node that waits says, and where it waits. */
export type Wait = Pick<RequestEntry, 'key' | 'record' | 'network' | 'life' | 'waiter' | 'timeout'>

/** The oldest request that `isLeft` by its server is waited for here from now on, with the time that it has left; where there is none, a new one. */
export function waitHere(entry: NodeEntry, wait: Wait, isLeft: (request: RequestEntry) => boolean): Next {
  const left = entry.requests.find(isLeft)
  if (left !== undefined) return { requests: replaced(entry, { ...left, ...wait, timeout: left.timeout }) }
  return { requests: [...entry.requests, { ...wait, revision: 0, raised: 0, decision: undefined }] }
}

/** An open request has this verdict, an accepted node being a member by the same write. Undefined: it is not open. */
export function decide(entry: NodeEntry, revision: Revision, verdict: Verdict, lastSeen: Date): Next {
  const request = entry.requests.find((each) => each.revision === revision)
  if (request === undefined || request.decision !== undefined) return undefined
  if (verdict === 'withdrawn') return { requests: entry.requests.filter((each) => each !== request) }
  const isAccepted = verdict === 'accepted'
  const isNew = isAccepted && (entry.member === undefined || entry.requests.some(({ decision }) => decision?.isNew))
  const requests = replaced(entry, { ...request, decision: { verdict, revision: 0, at: 0, isNew } })
  if (!isAccepted) return { requests }
  const { key, record } = request
  return { requests, member: { ...admitted(entry.member), key, record, lastSeen } }
}

/** A decision has been heard, or nobody will hear it; one that was confirmed leaves no other the place to give back. */
export function settle(entry: NodeEntry, revision: Revision, isConfirmed: boolean): Next {
  const requests = entry.requests.filter((each) => each.revision !== revision || each.decision === undefined)
  const isHeld = isConfirmed && requests.some(({ decision }) => decision?.isNew)
  if (!isHeld && requests.length === entry.requests.length) return undefined
  if (!isHeld) return { requests }
  return {
    requests: requests.map(({ decision, ...request }) => ({
      ...request,
      decision: decision && { ...decision, isNew: false },
    })),
  }
}

/** The server at which a request waits has another life. */
export function moved(entry: NodeEntry, waiter: string, life: string): Next {
  const request = entry.requests.find((each) => each.waiter === waiter)
  return request === undefined || request.life === life
    ? undefined
    : { requests: replaced(entry, { ...request, life }) }
}

function replaced({ requests }: NodeEntry, by: RequestEntry): RequestEntry[] {
  return requests.map((request) => (request.revision === by.revision ? by : request))
}
