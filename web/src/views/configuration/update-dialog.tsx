/** Says what an update applies at once and what it restarts the run for, then updates. */
import {
  type ExplainUpdateResponse,
  explainUpdate,
  type FieldChange,
  type PenstockError,
  type Pipeline,
  updatePipeline,
} from '@penstock/client'
import { useEffect, useRef, useState } from 'react'
import { failureOf } from '../../data/live.ts'
import { node } from '../../data/session.ts'
import type { Settings } from '../../data/settings.ts'
import { ActionButton } from '../../parts/action-button.tsx'
import { Failure } from '../../parts/failure.tsx'
import { nameText } from '../../parts/format.ts'
import { keepKeys } from '../../parts/keys.ts'
import { tellFailure } from '../../parts/toasts.tsx'
import './update-dialog.css'

interface Props {
  readonly nodeId: string
  readonly id: string
  readonly settings: Settings
  /** Somebody else has stored other settings since these were begun. */
  readonly isStale: boolean
  /**
   * Called as the update is sent; what is returned is called once the node has the settings. `isShown` is false where the dialog was closed meanwhile:
   * more may be typed by then.
   */
  readonly onSend: () => (pipeline: Pipeline, isShown: boolean) => void
  readonly onClose: () => void
}

export function UpdateDialog({ nodeId, id, settings, isStale, onSend, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [plan, setPlan] = useState<ExplainUpdateResponse>()
  const [failure, setFailure] = useState<PenstockError>()
  const [isBusy, setBusy] = useState(false)
  useEffect(() => {
    dialog.current?.showModal()
    const release = keepKeys()
    const gone = new AbortController()
    explainUpdate(node, { nodeId, id, ...settings }, { signal: gone.signal }).then(setPlan, (error: unknown) => {
      if (!gone.signal.aborted) setFailure(failureOf(error))
    })
    return () => {
      release()
      gone.abort()
    }
  }, [nodeId, id, settings])

  const restarts = plan?.running === true && plan.restart.length > 0
  const update = async (): Promise<void> => {
    setBusy(true)
    setFailure(undefined)
    const onUpdated = onSend()
    try {
      const { pipeline } = await updatePipeline(node, { nodeId, id, ...settings, forceRestart: restarts })
      const isShown = dialog.current !== null
      // Closed by itself it gives the focus back.
      dialog.current?.close()
      if (pipeline !== undefined) onUpdated(pipeline, isShown)
    } catch (error) {
      if (dialog.current === null) tellFailure(`${nameText(settings.name)} was not updated`, error)
      setFailure(failureOf(error))
      setBusy(false)
    }
  }
  return (
    <dialog ref={dialog} className="dialog update" aria-labelledby="update-title" onClose={onClose}>
      <h2 id="update-title">
        Update <span>{settings.name}</span>
      </h2>
      {isStale && (
        <p className="notice">
          The pipeline was changed meanwhile by somebody else. This update replaces what they stored.
        </p>
      )}
      {plan === undefined && failure === undefined && <p className="quiet">Asking what this changes…</p>}
      {plan !== undefined && <Plan plan={plan} />}
      {failure !== undefined && <Failure error={failure} title="It was not updated" />}
      <div className="actions">
        <button type="button" className="button" onClick={() => dialog.current?.close()}>
          Cancel
        </button>
        <ActionButton
          className={restarts ? 'button danger' : 'button primary'}
          isOff={plan === undefined || isBusy}
          onClick={update}
        >
          {isBusy ? 'Updating…' : restarts ? 'Update and restart' : 'Update'}
        </ActionButton>
      </div>
    </dialog>
  )
}

function Plan({ plan: { running, live, restart } }: { readonly plan: ExplainUpdateResponse }) {
  if (live.length + restart.length === 0) return <p>Nothing changes for a run.</p>
  if (!running) {
    return (
      <>
        <p>The pipeline is stopped: its next run begins with all of this.</p>
        <Changes changes={[...live, ...restart]} />
      </>
    )
  }
  return (
    <>
      {live.length > 0 && (
        <>
          <h3>Applies at once, while it runs</h3>
          <Changes changes={live} />
        </>
      )}
      {restart.length > 0 && (
        <>
          <h3>Needs a restart: traffic is interrupted</h3>
          <Changes changes={restart} />
        </>
      )}
    </>
  )
}

function Changes({ changes }: { readonly changes: readonly FieldChange[] }) {
  return (
    <ul className="changes">
      {changes.map(({ pointer, message }) => (
        <li key={`${pointer} ${message}`}>
          <code>{pointer}</code>
          <span className="quiet small">{message}</span>
        </li>
      ))}
    </ul>
  )
}
