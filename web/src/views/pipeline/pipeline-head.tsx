/** A pipeline's name, its state and that of its run, and what can be done with it now. */
import { deletePipeline, type Pipeline, startPipeline, stopPipeline } from '@penstock/client'
import { useState } from 'react'
import { go, hashOf, routeOf } from '../../app/routes.ts'
import { pipelinesOf } from '../../data/pipelines.ts'
import { node } from '../../data/session.ts'
import { ActionButton } from '../../parts/action-button.tsx'
import { Badge } from '../../parts/badge.tsx'
import { confirm } from '../../parts/confirm.tsx'
import { agoText, countText, nameText } from '../../parts/format.ts'
import { OnNode } from '../../parts/on-node.tsx'
import { stateOf } from '../../parts/pipeline-state.ts'
import { tell, tellFailure } from '../../parts/toasts.tsx'
import { useMinute } from '../../parts/use-minute.ts'
import { actionsOf } from './actions.ts'

/** What a timer can be set to, in milliseconds. */
const MAX_TIMEOUT = 2_147_483_647

interface Props {
  readonly nodeId: string
  readonly pipeline: Pipeline
}

export function PipelineHead({ nodeId, pipeline }: Props) {
  const { id } = pipeline
  const name = nameText(pipeline.name)
  const [busy, setBusy] = useState<string>()
  /** The run that was restarted: what the stream tells of the new one may come after the answer. */
  const [replaced, setReplaced] = useState<string>()
  const [tone, text] = stateOf(pipeline)
  const can = actionsOf(pipeline)
  const act = async (what: string, call: () => Promise<unknown>, done: string, failed: string): Promise<boolean> => {
    setBusy(what)
    try {
      await call()
      tell(done)
      return true
    } catch (error) {
      tellFailure(failed, error)
      return false
    } finally {
      setBusy(undefined)
    }
  }
  const start = () =>
    act('start', () => startPipeline(node, { nodeId, id }), `${name} is running`, `${name} was not started`)
  const stop = () => act('stop', () => stopPipeline(node, { nodeId, id }), `${name} stops`, `${name} was not stopped`)
  const restart = async (): Promise<void> => {
    setReplaced(pipeline.currentRun?.id)
    const call = () => again(nodeId, pipeline)
    if (!(await act('restart', call, `${name} runs again`, `${name} was not restarted`))) setReplaced(undefined)
  }
  const isRestarting = busy === 'restart' || (replaced !== undefined && replaced === pipeline.currentRun?.id)
  const remove = async (): Promise<void> => {
    const what = pipeline.started ? 'It is running: its run is stopped first. ' : ''
    const question = { title: `Delete ${name}?`, text: `${what}Its configuration and logs are gone.`, action: 'Delete' }
    if (!(await confirm(question))) return
    const call = () => deletePipeline(node, { nodeId, id })
    const isDone = await act('delete', call, `${name} is deleted`, `${name} was not deleted`)
    // Who has left meanwhile stays where they are.
    if (isDone && isShown(nodeId, id)) go({ view: 'overview' })
  }
  const button = (label: string, isPossible: boolean, call: () => unknown, kind = '') => (
    <ActionButton className={`button ${kind}`} isOff={!isPossible || busy !== undefined} onClick={call}>
      {busy === label.toLowerCase() ? `${label}…` : label}
    </ActionButton>
  )
  return (
    <header className="pipeline-head">
      <div className="about">
        <h1>{pipeline.name}</h1>
        <Badge tone={tone}>{text}</Badge>
        <OnNode nodeId={nodeId} />
        <RunFacts pipeline={pipeline} />
      </div>
      <div className="actions">
        {/* One button, which has the keyboard before and after. */}
        {pipeline.started ? button('Stop', can.has('stop'), stop) : button('Start', can.has('start'), start, 'primary')}
        {(pipeline.started || isRestarting) && button('Restart', can.has('restart'), restart)}
        <a className="button" href={hashOf({ view: 'editor', nodeId, pipelineId: id })}>
          Edit
        </a>
        {button('Delete', can.has('delete'), remove, 'plain')}
      </div>
    </header>
  )
}

/** Whether the page shows this pipeline, deleted or not. */
function isShown(nodeId: string, pipelineId: string): boolean {
  const route = routeOf(location.hash)
  return route.view === 'pipeline' && route.nodeId === nodeId && route.pipelineId === pipelineId
}

/** In its place once the pipeline is deleted. */
export function GoneHead({ nodeId, name }: { readonly nodeId: string; readonly name: string }) {
  return (
    <header className="pipeline-head">
      <div className="about">
        <h1>{name}</h1>
        <Badge tone="warn">deleted</Badge>
        <OnNode nodeId={nodeId} />
        <p className="quiet small" role="status">
          The pipeline was deleted meanwhile. What is typed here is kept. <a href="#/">Go to the overview</a>
        </p>
      </div>
    </header>
  )
}

function RunFacts({ pipeline: { started, currentRun, restarts } }: { readonly pipeline: Pipeline }) {
  const now = useMinute()
  if (currentRun === undefined) return null
  const { id, startedAt, endedAt, cpu, outcome, error } = currentRun
  // The time here goes on in steps: seconds would stand still.
  const ago = (time: string): string =>
    now - Date.parse(time) < 60_000 ? 'less than a minute ago' : agoText(Date.parse(time), now)
  return (
    <>
      <p className="quiet small">
        {started && startedAt !== undefined && <>Started {ago(startedAt)}. </>}
        {!started && endedAt !== undefined && (
          <>
            Last run {String(outcome ?? 'ended').toLowerCase()} {ago(endedAt)}.{' '}
          </>
        )}
        {started && cpu !== undefined && <>On CPU {cpu}. </>}
        {restarts !== undefined && <>Restarted {countText(restarts.count, 'time')} in a row. </>}
        Run <code title={id}>{id.slice(0, 8)}</code>
      </p>
      {error !== undefined && <p className="cause small">{error}</p>}
    </>
  )
}

/** Milliseconds that the end of a run may take to be told, beyond the time that it has. */
const SPARE = 15_000

/** Stops the run, waits for its end, and starts the next one; one that somebody else has started meanwhile is the next one. */
async function again(nodeId: string, { id, currentRun, instructionsTimeout }: Pipeline): Promise<void> {
  const pipelines = pipelinesOf(nodeId)
  const current = (): Pipeline | undefined => pipelines.snapshot().value.get(id)
  const stopped = (current()?.currentRun ?? currentRun)?.id
  await stopPipeline(node, { nodeId, id })
  // A stop and a start between two frames are one change.
  const isOver = (): boolean => current()?.started !== true || current()?.currentRun?.id !== stopped
  await new Promise<void>((resolve, reject) => {
    const look = (): void => {
      if (isOver()) leave(resolve)
    }
    const unsubscribe = pipelines.subscribe(look)
    const late = (): void => leave(() => reject(new Error('its run was told to stop, but its end did not come')))
    const timer = setTimeout(late, Math.min(instructionsTimeout * 1000 + SPARE, MAX_TIMEOUT))
    const leave = (then: () => void): void => {
      unsubscribe()
      clearTimeout(timer)
      then()
    }
    look()
  })
  if (current()?.started !== true) await startPipeline(node, { nodeId, id })
}
