/** The configuration of a pipeline as text: edited, checked while it is typed, and applied once it is said what that restarts. */
import type { Pipeline } from '@penstock/client'
import { useEffect, useMemo, useState } from 'react'
import { configSchema } from '../../data/documents.ts'
import { useLive } from '../../data/live.ts'
import { settingsOf } from '../../data/settings.ts'
import { StoredText } from '../../data/stored-text.ts'
import { useValidation } from '../../data/validation.ts'
import { ActionButton } from '../../parts/action-button.tsx'
import { nameText } from '../../parts/format.ts'
import { useLeaveGuard } from '../../parts/leave-guard.ts'
import { tell } from '../../parts/toasts.tsx'
import { CodeEditor } from './code-editor.tsx'
import { CreateAnew } from './create-anew.tsx'
import { ProblemList, ValidationBadge } from './problem-list.tsx'
import { StoredChange } from './stored-change.tsx'
import { TextTools } from './text-tools.tsx'
import { UpdateDialog } from './update-dialog.tsx'
import './configuration.css'

interface Props {
  readonly nodeId: string
  readonly pipeline: Pipeline
  /** It was deleted. */
  readonly isGone: boolean
}

export default function Configuration({ nodeId, pipeline, isGone }: Props) {
  const { value: schema } = useLive(configSchema)
  const [known] = useState(() => new StoredText(pipeline))
  known.tell(pipeline)
  const stored = known.text
  const [text, setText] = useState(stored)
  /** The stored text that editing began with, or that was decided about. */
  const [base, setBase] = useState(stored)
  const [isUpdating, setUpdating] = useState(false)
  const [goTo, setGoTo] = useState<{ readonly pointer: string }>()
  /** The text that a new pipeline was made of. */
  const [created, setCreated] = useState<string>()
  const isDirty = text !== base && text !== created
  const hasMoved = stored !== base
  useLeaveGuard(isDirty)

  // Nothing typed: what is shown follows what is stored.
  useEffect(() => {
    if (!hasMoved || isDirty) return
    setText(stored)
    setBase(stored)
  }, [stored, hasMoved, isDirty])

  const settings = useMemo(() => ({ ...settingsOf(pipeline), jsonConfig: text }), [pipeline, text])
  const validation = useValidation(nodeId, settings)
  const take = (): void => {
    setText(stored)
    setBase(stored)
  }
  return (
    <section className="card configuration" aria-label="Configuration">
      <header className="tools">
        <ValidationBadge validation={validation} />
        <TextTools text={text} name={pipeline.name} onChange={setText} />
        <span className="end">
          <ActionButton className="button small" isOff={!isDirty} onClick={take}>
            Discard changes
          </ActionButton>
          {isGone ? (
            <CreateAnew nodeId={nodeId} settings={settings} onCreated={() => setCreated(text)} />
          ) : (
            <ActionButton className="button small primary" isOff={!isDirty} onClick={() => setUpdating(true)}>
              Update
            </ActionButton>
          )}
        </span>
      </header>
      {hasMoved && isDirty && (
        <StoredChange
          stored={{ ...settings, jsonConfig: stored }}
          edited={settings}
          onTake={take}
          onKeep={() => setBase(stored)}
        />
      )}
      <CodeEditor
        text={text}
        onChange={setText}
        schema={schema}
        problems={validation.problems}
        warnings={validation.warnings}
        goTo={goTo}
      />
      <ProblemList validation={validation} onGo={({ pointer }) => setGoTo({ pointer })} />
      {isUpdating && (
        <UpdateDialog
          nodeId={nodeId}
          id={pipeline.id}
          settings={settings}
          isStale={hasMoved}
          onSend={() => {
            const answer = known.ask()
            return ({ jsonConfig, name }, isShown) => {
              if (isShown) setUpdating(false)
              answer(jsonConfig)
              // What was typed since stays.
              setText((now) => (now === text ? jsonConfig : now))
              setBase(jsonConfig)
              tell(`${nameText(name)} is updated`)
            }
          }}
          onClose={() => setUpdating(false)}
        />
      )}
    </section>
  )
}
