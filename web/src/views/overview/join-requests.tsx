/** Nodes that ask to join the hub, to be let in or refused. */
import { useEffect } from 'react'
import { answer, joinRequests } from '../../data/join-requests.ts'
import { useLive } from '../../data/live.ts'
import { Failure } from '../../parts/failure.tsx'
import { groupsOf } from '../../parts/format.ts'
import { tellFailure } from '../../parts/toasts.tsx'

export function JoinRequests() {
  const { value, status, error } = useLive(joinRequests)
  const { waiting, refusal } = value
  useEffect(() => {
    if (refusal !== undefined) tellFailure('The answer was not taken', refusal)
  }, [refusal])
  return (
    <div role="status">
      {status === 'failed' && error !== undefined && <Failure error={error} title="Requests to join are not shown" />}
      {waiting.map(({ requestId, node }) => (
        <section className="card request" key={requestId} aria-label={`Request to join of ${node?.name}`}>
          <div>
            <h2>
              <span>{node?.name || 'A node without a name'}</span> asks to join the hub
            </h2>
            <p className="small">
              Fingerprint of its key: <code>{groupsOf(node?.id ?? '')}</code>
            </p>
            <p className="quiet small">
              Compare it with the node’s id, which <code>penstock status</code> shows there. Once it is in, it can be
              managed from here, and see every other node.
            </p>
          </div>
          <div className="actions">
            <button type="button" className="button" onClick={() => give(requestId, false)}>
              Reject
            </button>
            <button type="button" className="button primary" onClick={() => give(requestId, true)}>
              Accept
            </button>
          </div>
        </section>
      ))}
    </div>
  )
}

function give(requestId: string, accept: boolean): void {
  try {
    answer(requestId, accept)
  } catch (error) {
    tellFailure('The answer was not taken', error)
  }
}
