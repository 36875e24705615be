/** Builds a pipeline or changes one: as a drawing with forms, and as text. */
import type { Pipeline } from '@penstock/client'
import { useMemo, useState } from 'react'
import { configSchema } from '../../data/documents.ts'
import { useLive } from '../../data/live.ts'
import { pipelinesOf } from '../../data/pipelines.ts'
import { catalogueOf, type Schema } from '../../data/schema.ts'
import { NodeLost } from '../../parts/connection-lost.tsx'
import { Failure } from '../../parts/failure.tsx'
import { nameText } from '../../parts/format.ts'
import { Nothing } from '../../parts/nothing.tsx'
import { useTitle } from '../../parts/use-title.ts'
import { Workbench } from './workbench.tsx'

interface Props {
  readonly nodeId: string
  /** Undefined: a new one. */
  readonly pipelineId: string | undefined
}

export default function EditorView({ nodeId, pipelineId }: Props) {
  const { value, status, error } = useLive(pipelinesOf(nodeId))
  const { value: schema, ...schemaState } = useLive(configSchema)
  const found = pipelineId === undefined ? undefined : value.get(pipelineId)
  /** What is being edited is shown on, whatever becomes of the stream and the pipeline. */
  const [pipeline, setPipeline] = useState(found)
  if (found !== undefined && found !== pipeline) setPipeline(found)
  useTitle(pipelineId === undefined ? 'New pipeline' : pipeline && `Edit ${nameText(pipeline.name)}`)
  const isKnown = pipelineId === undefined || pipeline !== undefined
  if (schema === undefined) {
    if (schemaState.status !== 'failed' || schemaState.error === undefined) return <p className="quiet">Loading…</p>
    return (
      <Nothing title="No editor">
        <Failure error={schemaState.error} title="The components are not known" />
      </Nothing>
    )
  }
  if (isKnown) {
    const isGone = status === 'live' && pipelineId !== undefined && found === undefined
    return (
      <>
        <NodeLost nodeId={nodeId} />
        <Known nodeId={nodeId} pipeline={pipeline} isGone={isGone} schema={schema} />
      </>
    )
  }
  if (status === 'failed' && error !== undefined) {
    return (
      <Nothing title="No pipeline">
        <Failure error={error} title="The pipeline is not known" />
      </Nothing>
    )
  }
  if (status === 'opening') return <p className="quiet">Loading…</p>
  // Whether there is one is not known while the node is away.
  if (status === 'lost') return <NodeLost nodeId={nodeId} />
  return (
    <Nothing title="No pipeline">
      <p>There is no such pipeline on this node.</p>
    </Nothing>
  )
}

interface KnownProps {
  readonly nodeId: string
  readonly pipeline: Pipeline | undefined
  /** It was deleted. */
  readonly isGone: boolean
  readonly schema: Schema
}

function Known({ schema, ...props }: KnownProps) {
  const catalogue = useMemo(() => catalogueOf(schema), [schema])
  return <Workbench schema={schema} catalogue={catalogue} {...props} />
}
