/** Stores what is edited: creates the pipeline, and starts it if so wished, or updates the one there is. */
import { createPipeline, type PenstockError, type Pipeline, startPipeline } from '@penstock/client'
import { useState } from 'react'
import { flushSync } from 'react-dom'
import { go, hashOf } from '../../app/routes.ts'
import { failureOf } from '../../data/live.ts'
import { node } from '../../data/session.ts'
import type { Settings } from '../../data/settings.ts'
import { nameText } from '../../parts/format.ts'
import { tell, tellFailure } from '../../parts/toasts.tsx'
import { UpdateDialog } from '../configuration/update-dialog.tsx'

interface Props {
  readonly nodeId: string
  readonly pipeline: Pipeline | undefined
  readonly settings: Settings
  readonly isDirty: boolean
  readonly isStale: boolean
  /** The node has it: nothing is lost any more by leaving. */
  readonly onStored: () => void
}

export function Saving({ nodeId, pipeline, settings, isDirty, isStale, onStored }: Props) {
  const [updating, setUpdating] = useState<Settings>()
  const [isBusy, setBusy] = useState(false)
  const leave = (pipelineId: string): void => {
    // The page has to know that nothing is lost before it is left.
    flushSync(onStored)
    go({ view: 'pipeline', nodeId, pipelineId })
  }
  const create = async (isStarted: boolean): Promise<void> => {
    setBusy(true)
    try {
      const { pipeline: made } = await createPipeline(node, { nodeId, ...settings })
      if (made === undefined) return
      tell(`${nameText(settings.name)} is created`)
      if (isStarted) await start(nodeId, made)
      leave(made.id)
    } catch (error) {
      tellRefusal(failureOf(error))
      setBusy(false)
    }
  }
  if (pipeline === undefined) {
    return (
      <>
        <a className="button" href="#/">
          Cancel
        </a>
        <button type="button" className="button" disabled={isBusy} onClick={() => create(false)}>
          Create
        </button>
        <button type="button" className="button primary" disabled={isBusy} onClick={() => create(true)}>
          Create and start
        </button>
      </>
    )
  }
  return (
    <>
      <a className="button" href={hashOf({ view: 'pipeline', nodeId, pipelineId: pipeline.id })}>
        Close
      </a>
      <button type="button" className="button primary" disabled={!isDirty} onClick={() => setUpdating(settings)}>
        Save
      </button>
      {updating !== undefined && (
        <UpdateDialog
          nodeId={nodeId}
          id={pipeline.id}
          settings={updating}
          isStale={isStale}
          onUpdated={({ name }) => {
            setUpdating(undefined)
            tell(`${nameText(name)} is updated`)
            leave(pipeline.id)
          }}
          onClose={() => setUpdating(undefined)}
        />
      )}
    </>
  )
}

function tellRefusal(error: PenstockError): void {
  tellFailure('It was not created', error)
}

/** A pipeline that does not start is there all the same. */
async function start(nodeId: string, { id, name }: Pipeline): Promise<void> {
  try {
    await startPipeline(node, { nodeId, id })
    tell(`${nameText(name)} is running`)
  } catch (error) {
    tellFailure(`${nameText(name)} is created, but was not started`, error)
  }
}
