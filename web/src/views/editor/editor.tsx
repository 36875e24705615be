/** The settings of a pipeline, to create or to change it. */
import { createPipeline, type PenstockError, type Pipeline, updatePipeline } from '@penstock/client'
import { useId, useState } from 'react'
import { go, hashOf } from '../../app/routes.ts'
import { failureOf, useLive } from '../../data/live.ts'
import { pipelinesOf } from '../../data/pipelines.ts'
import { node } from '../../data/session.ts'
import { Failure } from '../../parts/failure.tsx'
import { tell } from '../../parts/toasts.tsx'

const EMPTY = `{
  "version": 1,
  "engine_config": { "pipeline": {} }
}
`

interface Props {
  readonly nodeId: string
  readonly pipelineId: string | undefined
}

export default function EditorView({ nodeId, pipelineId }: Props) {
  const { value, status, error } = useLive(pipelinesOf(nodeId))
  const pipeline = pipelineId === undefined ? undefined : value.get(pipelineId)
  if (status === 'failed' && error !== undefined) return <Failure error={error} title="The node does not answer" />
  if (status === 'opening') return <p className="quiet">Loading…</p>
  if (pipelineId !== undefined && pipeline === undefined) return <p>There is no such pipeline on this node.</p>
  return <Form nodeId={nodeId} pipeline={pipeline} />
}

function Form({ nodeId, pipeline }: { readonly nodeId: string; readonly pipeline: Pipeline | undefined }) {
  const [failure, setFailure] = useState<PenstockError>()
  const [isBusy, setBusy] = useState(false)
  const id = useId()
  const save = async (data: FormData): Promise<void> => {
    const settings = { nodeId, name: String(data.get('name')), jsonConfig: String(data.get('configuration')) }
    setBusy(true)
    setFailure(undefined)
    try {
      const answer =
        pipeline === undefined
          ? await createPipeline(node, settings)
          : await updatePipeline(node, { ...pipeline, ...settings })
      tell(`${settings.name} is stored`)
      go({ view: 'pipeline', nodeId, pipelineId: answer.pipeline?.id ?? '' })
    } catch (error) {
      setFailure(failureOf(error))
    } finally {
      setBusy(false)
    }
  }
  const back = pipeline === undefined ? '#/' : hashOf({ view: 'pipeline', nodeId, pipelineId: pipeline.id })
  return (
    <form
      className="card editor"
      onSubmit={(event) => {
        event.preventDefault()
        void save(new FormData(event.currentTarget))
      }}
    >
      <h1>{pipeline === undefined ? 'New pipeline' : `Edit ${pipeline.name}`}</h1>
      <label htmlFor={`${id}name`}>Name</label>
      <input id={`${id}name`} name="name" required defaultValue={pipeline?.name} />
      <label htmlFor={`${id}json`}>Configuration (JSON)</label>
      <textarea
        id={`${id}json`}
        name="configuration"
        rows={24}
        spellCheck={false}
        defaultValue={pipeline?.jsonConfig ?? EMPTY}
      />
      {failure !== undefined && <Failure error={failure} title="It was not stored" />}
      <div className="actions">
        <a className="button" href={back}>
          Cancel
        </a>
        <button type="submit" className="button primary" disabled={isBusy}>
          {pipeline === undefined ? 'Create' : 'Save'}
        </button>
      </div>
    </form>
  )
}
