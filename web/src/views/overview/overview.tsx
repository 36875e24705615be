/** Every node on the hub with its pipelines. */
import { useLive } from '../../data/live.ts'
import { nodes } from '../../data/nodes.ts'
import { Failure } from '../../parts/failure.tsx'
import './overview.css'
import { NodeCard } from './node-card.tsx'

export function Overview() {
  const { value, status, error } = useLive(nodes)
  const shown = [...value.byId.values()].sort((a, b) => a.name.localeCompare(b.name) || (a.id < b.id ? -1 : 1))
  return (
    <>
      <h1>{value.isHub ? 'Nodes on the hub' : 'This node'}</h1>
      {status === 'opening' && shown.length === 0 && <p className="quiet">Loading…</p>}
      {status === 'failed' && error !== undefined && <Failure error={error} title="The nodes are not known" />}
      {shown.map((node) => (
        <NodeCard key={node.id} node={node} isHub={value.isHub} />
      ))}
    </>
  )
}
