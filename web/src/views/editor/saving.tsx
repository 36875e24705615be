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

/** How long a creation is waited for, milliseconds, while nothing can be typed: somewhat longer than for an answer over a link. */
const CREATION_MS = 35_000

interface Props {
  readonly nodeId: string
  readonly pipeline: Pipeline | undefined
  readonly settings: Settings
  readonly isDirty: boolean
  readonly isStale: boolean
  readonly isCreating: boolean
  readonly onCreating: (isCreating: boolean) => void
  /** What the node has now; `left` are the settings that it was given where the view is left with them: of those nothing is lost. */
  readonly onStored: (after: Pipeline, left?: Settings) => void
}

export function Saving(props: Props) {
  const { nodeId, pipeline, settings, isDirty, isStale, isCreating, onCreating, onStored } = props
  const [updating, setUpdating] = useState<Settings>()
  const leave = (sent: Settings, after: Pipeline): void => {
    // The page has to know that nothing is lost before it is left.
    flushSync(() => onStored(after, sent))
    go({ view: 'pipeline', nodeId, pipelineId: after.id })
  }
  const create = async (button: HTMLButtonElement, isStarted: boolean): Promise<void> => {
    onCreating(true)
    try {
      const { pipeline: made } = await createPipeline(node, { nodeId, ...settings }, { timeout: CREATION_MS })
      if (made === undefined) return
      tell(`${nameText(settings.name)} is created`)
      if (isStarted) void start(nodeId, made)
      // Who has left meanwhile stays where they are.
      if (button.isConnected) leave(settings, made)
    } catch (error) {
      tellRefusal(failureOf(error))
    } finally {
      flushSync(() => onCreating(false))
      // What could not be used meanwhile has lost the keyboard.
      button.focus()
    }
  }
  if (pipeline === undefined) {
    return (
      <>
        <a className="button" href="#/">
          Cancel
        </a>
        <button
          type="button"
          className="button"
          disabled={isCreating}
          onClick={(event) => create(event.currentTarget, false)}
        >
          Create
        </button>
        <button
          type="button"
          className="button primary"
          disabled={isCreating}
          onClick={(event) => create(event.currentTarget, true)}
        >
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
          onSend={() => (after, isShown) => {
            tell(`${nameText(after.name)} is updated`)
            if (!isShown) return onStored(after)
            setUpdating(undefined)
            leave(updating, after)
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
