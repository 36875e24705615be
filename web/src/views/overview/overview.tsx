/** Every node on the hub with its pipelines, and who asks to join. */
import { useLive } from '../../data/live.ts'
import { localNodeId } from '../../data/local-node.ts'
import { nodes } from '../../data/nodes.ts'
import { Failure } from '../../parts/failure.tsx'
import { countText } from '../../parts/format.ts'
import { JoinRequests } from './join-requests.tsx'
import { NodeCard } from './node-card.tsx'
import './overview.css'

export function Overview() {
  const { value, status, error } = useLive(nodes)
  const { value: own } = useLive(localNodeId)
  const shown = [...value.byId.values()].sort(
    (a, b) => Number(b.id === own) - Number(a.id === own) || a.name.localeCompare(b.name) || (a.id < b.id ? -1 : 1),
  )
  const online = shown.filter((node) => node.online).length
  return (
    <>
      <div className="title">
        <h1>{value.isHub ? 'Nodes on the hub' : 'This node'}</h1>
        {value.isHub && (
          <p className="quiet">
            {countText(shown.length, 'node')}, {online === shown.length ? 'all online' : `${online} online`}
          </p>
        )}
      </div>
      {value.isHub && <JoinRequests />}
      {status === 'opening' && shown.length === 0 && <p className="quiet">Loading…</p>}
      {status === 'failed' && error !== undefined && <Failure error={error} title="The nodes are not known" />}
      {shown.map((node) => (
        <NodeCard key={node.id} node={node} isHub={value.isHub} isOwn={node.id === own} />
      ))}
    </>
  )
}
