/** One pipeline in the overview: its state, and what can be done with it. */
import { deletePipeline, type Pipeline, startPipeline, stopPipeline } from '@penstock/client'
import { memo, useState } from 'react'
import { hashOf } from '../../app/routes.ts'
import { node } from '../../data/session.ts'
import { ActionButton } from '../../parts/action-button.tsx'
import { Badge } from '../../parts/badge.tsx'
import { confirm } from '../../parts/confirm.tsx'
import { nameText } from '../../parts/format.ts'
import { stateOf } from '../../parts/pipeline-state.ts'
import { tell, tellFailure } from '../../parts/toasts.tsx'
import { useVisible } from '../../parts/use-visible.ts'
import { RunTraffic } from './run-traffic.tsx'

interface Props {
  readonly nodeId: string
  readonly pipeline: Pipeline
}

/** Drawn again where it has changed itself: a node may have thousands. */
export const PipelineRow = memo(function PipelineRow({ nodeId, pipeline }: Props) {
  const { id, started } = pipeline
  const name = nameText(pipeline.name)
  const [isBusy, setBusy] = useState(false)
  const [tone, text] = stateOf(pipeline)
  const act = async (call: () => Promise<unknown>, done: string, failed: string): Promise<void> => {
    setBusy(true)
    try {
      await call()
      tell(done)
    } catch (error) {
      tellFailure(failed, error)
    } finally {
      setBusy(false)
    }
  }
  const start = () => act(() => startPipeline(node, { nodeId, id }), `${name} is running`, `${name} was not started`)
  const stop = () => act(() => stopPipeline(node, { nodeId, id }), `${name} stops`, `${name} was not stopped`)
  const remove = async (): Promise<void> => {
    const what = started ? 'It is running: its run is stopped first. ' : ''
    const question = { title: `Delete ${name}?`, text: `${what}Its configuration and logs are gone.`, action: 'Delete' }
    if (!(await confirm(question))) return
    await act(() => deletePipeline(node, { nodeId, id }), `${name} is deleted`, `${name} was not deleted`)
  }
  const { currentRun } = pipeline
  const [row, isVisible] = useVisible<HTMLLIElement>()
  return (
    <li ref={row}>
      <a className="name" title={pipeline.name} href={hashOf({ view: 'pipeline', nodeId, pipelineId: id })}>
        {pipeline.name}
      </a>
      <span className="state">
        <Badge tone={tone}>{text}</Badge>
      </span>
      {!started && currentRun?.error !== undefined && <span className="cause small">{currentRun.error}</span>}
      {isVisible && started && currentRun?.state === 'RUNNING' && <RunTraffic nodeId={nodeId} runId={currentRun.id} />}
      <span className="actions">
        <ActionButton className="button small" isOff={isBusy} onClick={started ? stop : start}>
          {started ? 'Stop' : 'Start'}
        </ActionButton>
        <ActionButton className="button small plain" isOff={isBusy} onClick={remove}>
          Delete
        </ActionButton>
      </span>
    </li>
  )
})
