/** Which node of the hub a view is about: several may have pipelines of one name. */
import { useLive } from '../data/live.ts'
import { nodes } from '../data/nodes.ts'
import './on-node.css'

/** Nothing where the node is on no hub. */
export function OnNode({ nodeId }: { readonly nodeId: string }) {
  const { byId, isHub } = useLive(nodes).value
  if (!isHub) return null
  return (
    <span className="on-node quiet" title={nodeId}>
      on <bdi>{byId.get(nodeId)?.name || nodeId.slice(0, 8)}</bdi>
    </span>
  )
}
