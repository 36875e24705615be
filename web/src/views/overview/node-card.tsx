/** One node: how it is, and its pipelines. */
import { type Node, removeNode } from '@penstock/client'
import { hashOf } from '../../app/routes.ts'
import { useLive } from '../../data/live.ts'
import { pipelinesOf } from '../../data/pipelines.ts'
import { node as api } from '../../data/session.ts'
import { Badge } from '../../parts/badge.tsx'
import { confirm } from '../../parts/confirm.tsx'
import { Failure } from '../../parts/failure.tsx'
import { agoText, nameText } from '../../parts/format.ts'
import { tell, tellFailure } from '../../parts/toasts.tsx'
import { useMinute } from '../../parts/use-minute.ts'
import { PipelineRow } from './pipeline-row.tsx'

/** Of names; many times as fast as localeCompare. */
const { compare } = new Intl.Collator()

interface Props {
  readonly node: Node
  readonly isHub: boolean
  /** Whether it is the node that serves the page. */
  readonly isOwn: boolean
}

export function NodeCard({ node, isHub, isOwn }: Props) {
  const name = node.name || node.id.slice(0, 8)
  const isHubServer = isHub && node.services.includes('HUB_SERVER')
  return (
    <section className="card node" aria-label={`Node ${name}`}>
      <header>
        <h2>{name}</h2>
        <Badge tone={node.online ? 'good' : 'idle'}>{node.online ? 'online' : 'offline'}</Badge>
        {isHubServer && <Badge tone="busy">hub server</Badge>}
        {isOwn && isHub && <Badge tone="idle">serves this page</Badge>}
        {!node.online && <LastSeen node={node} />}
        <code className="quiet id">{node.id}</code>
        <span className="actions">
          {isHub && !isHubServer && (
            <button type="button" className="button small plain" onClick={() => remove(node.id, name)}>
              Remove
            </button>
          )}
          {node.online && (
            <a className="button small" href={hashOf({ view: 'editor', nodeId: node.id })}>
              New pipeline
            </a>
          )}
        </span>
      </header>
      {node.online ? (
        <Pipelines nodeId={node.id} />
      ) : (
        <p className="quiet">Its pipelines are not known while it is away.</p>
      )}
    </section>
  )
}

function LastSeen({ node: { lastSeen } }: { readonly node: Node }) {
  const now = useMinute()
  return lastSeen === undefined ? null : (
    <span className="quiet small">last seen {agoText(Date.parse(lastSeen), Math.max(now, Date.parse(lastSeen)))}</span>
  )
}

async function remove(nodeId: string, nodeName: string): Promise<void> {
  const name = nameText(nodeName)
  const text = 'It leaves the hub at once and keeps its pipelines. To come back it has to ask to join again.'
  if (!(await confirm({ title: `Remove ${name} from the hub?`, text, action: 'Remove' }))) return
  try {
    await removeNode(api, { nodeId })
    tell(`${name} is off the hub`)
  } catch (error) {
    tellFailure(`${name} was not removed`, error)
  }
}

function Pipelines({ nodeId }: { readonly nodeId: string }) {
  const { value, status, error } = useLive(pipelinesOf(nodeId))
  if (status === 'failed' && error !== undefined) return <Failure error={error} title="Its pipelines are not known" />
  if (status === 'opening' && value.size === 0) return <p className="quiet">Loading…</p>
  if (status === 'lost' && value.size === 0) {
    return <p className="quiet">Its pipelines are not known while it is not reached.</p>
  }
  if (value.size === 0) {
    return (
      <p className="quiet">
        No pipelines yet. <a href={hashOf({ view: 'editor', nodeId })}>Draw the first one</a>, or give the node one from
        a file: <code>penstock pipelines create NAME FILE</code>
      </p>
    )
  }
  const shown = [...value.values()].sort((a, b) => compare(a.name, b.name) || (a.id < b.id ? -1 : 1))
  return (
    <ul className="pipelines">
      {shown.map((pipeline) => (
        <PipelineRow key={pipeline.id} nodeId={nodeId} pipeline={pipeline} />
      ))}
    </ul>
  )
}
