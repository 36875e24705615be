/** One node: how it is, and its pipelines. */
import type { Node } from '@penstock/client'
import { hashOf } from '../../app/routes.ts'
import { useLive } from '../../data/live.ts'
import { pipelinesOf } from '../../data/pipelines.ts'
import { Badge } from '../../parts/badge.tsx'
import { Failure } from '../../parts/failure.tsx'
import { PipelineRow } from './pipeline-row.tsx'

export function NodeCard({ node, isHub }: { readonly node: Node; readonly isHub: boolean }) {
  return (
    <section className="card node" aria-label={`Node ${node.name || node.id}`}>
      <header>
        <h2>{node.name || node.id.slice(0, 8)}</h2>
        <code className="quiet small">{node.id}</code>
        <Badge tone={node.online ? 'good' : 'idle'}>{node.online ? 'online' : 'offline'}</Badge>
        {isHub && node.services.includes('HUB_SERVER') && <Badge tone="busy">hub server</Badge>}
        <a className="button small" href={hashOf({ view: 'editor', nodeId: node.id })}>
          New pipeline
        </a>
      </header>
      {node.online ? (
        <Pipelines nodeId={node.id} />
      ) : (
        <p className="quiet">Its pipelines are not known while it is away.</p>
      )}
    </section>
  )
}

function Pipelines({ nodeId }: { readonly nodeId: string }) {
  const { value, status, error } = useLive(pipelinesOf(nodeId))
  if (status === 'failed' && error !== undefined) return <Failure error={error} title="Its pipelines are not known" />
  if (status === 'opening') return <p className="quiet">Loading…</p>
  if (value.size === 0) return <p className="quiet">No pipelines yet.</p>
  const shown = [...value.values()].sort((a, b) => a.name.localeCompare(b.name) || (a.id < b.id ? -1 : 1))
  return (
    <ul className="pipelines">
      {shown.map((pipeline) => (
        <PipelineRow key={pipeline.id} nodeId={nodeId} pipeline={pipeline} />
      ))}
    </ul>
  )
}
