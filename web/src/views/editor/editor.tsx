/** Builds a pipeline or changes one: as a drawing with forms, and as text. */
import type { Pipeline } from '@penstock/client'
import { useMemo } from 'react'
import { configSchema } from '../../data/config-schema.ts'
import { useLive } from '../../data/live.ts'
import { pipelinesOf } from '../../data/pipelines.ts'
import { Failure } from '../../parts/failure.tsx'
import { catalogueOf, type Schema } from './model-schema.ts'
import { Workbench } from './workbench.tsx'

interface Props {
  readonly nodeId: string
  /** Undefined: a new one. */
  readonly pipelineId: string | undefined
}

export default function EditorView({ nodeId, pipelineId }: Props) {
  const { value, status, error } = useLive(pipelinesOf(nodeId))
  const { value: schema, ...schemaState } = useLive(configSchema)
  const pipeline = pipelineId === undefined ? undefined : value.get(pipelineId)
  if (status === 'failed' && error !== undefined) return <Failure error={error} title="The node does not answer" />
  if (schemaState.status === 'failed' && schemaState.error !== undefined) {
    return <Failure error={schemaState.error} title="The components are not known" />
  }
  if (status === 'opening' || schema === undefined) return <p className="quiet">Loading…</p>
  if (pipelineId !== undefined && pipeline === undefined) return <p>There is no such pipeline on this node.</p>
  return <Known nodeId={nodeId} pipeline={pipeline} schema={schema} />
}

interface KnownProps {
  readonly nodeId: string
  readonly pipeline: Pipeline | undefined
  readonly schema: Schema
}

function Known({ nodeId, pipeline, schema }: KnownProps) {
  const catalogue = useMemo(() => catalogueOf(schema), [schema])
  return <Workbench nodeId={nodeId} pipeline={pipeline} schema={schema} catalogue={catalogue} />
}
