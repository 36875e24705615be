/** The variables of the configuration as a form: what is set there is written to all places that they name. */
import { explainUpdate, type PenstockError, updatePipeline } from '@penstock/client'
import { useRef, useState } from 'react'
import { failureOf } from '../../data/live.ts'
import { withValues } from '../../data/places.ts'
import { node } from '../../data/session.ts'
import { isSame, updateOf } from '../../data/settings.ts'
import { StoredText } from '../../data/stored-text.ts'
import { changedValues, type Draft, isChanged, typed, variablesOf } from '../../data/variables.ts'
import { ActionButton } from '../../parts/action-button.tsx'
import { confirm } from '../../parts/confirm.tsx'
import { Failure } from '../../parts/failure.tsx'
import { useLeaveGuard } from '../../parts/leave-guard.ts'
import { tell } from '../../parts/toasts.tsx'
import type { TabProps } from './tab-props.ts'
import { VariableField } from './variable-field.tsx'

const NONE: ReadonlyMap<string, Draft> = new Map()

export function VariablesTab({ nodeId, pipeline }: TabProps) {
  const [failure, setFailure] = useState<PenstockError>()
  const [isBusy, setBusy] = useState(false)
  /** What is typed and not stored, by variable. */
  const [drafts, setDrafts] = useState(NONE)
  const [stored] = useState(() => new StoredText(pipeline))
  stored.tell(pipeline)
  const latest = useRef(pipeline)
  latest.current = pipeline
  const variables = variablesOf(stored.text)
  useLeaveGuard(variables.some((variable) => isChanged(variable, drafts.get(variable.id))))

  const change = (id: string, draft: Draft | undefined): void => {
    const next = new Map(drafts)
    if (draft === undefined) next.delete(id)
    else next.set(id, draft)
    setDrafts(next)
  }
  /** The update of what is stored now by what is typed. */
  const settingsNow = () => {
    const jsonConfig = withValues(stored.text, changedValues(variablesOf(stored.text), drafts))
    return { ...updateOf(nodeId, latest.current), jsonConfig }
  }
  const apply = async (): Promise<void> => {
    setBusy(true)
    setFailure(undefined)
    try {
      let settings = settingsNow()
      for (let isAgain = false; ; isAgain = true) {
        const { running, restart } = await explainUpdate(node, settings)
        const forceRestart = running && restart.length > 0
        const question = {
          title: 'Restart the pipeline?',
          text: `${isAgain ? 'The pipeline was changed meanwhile by somebody else, which stays. ' : ''}The run that is on cannot take over: ${restart.map(({ pointer, message }) => `${pointer} (${message})`).join('; ')}.`,
          action: 'Restart',
        }
        if (forceRestart && !(await confirm(question))) return
        const explained = settings
        settings = settingsNow()
        // What somebody has stored while it was asked about stays, and may need a restart by itself.
        if (!isSame(settings, explained)) continue
        const answer = stored.ask()
        const { pipeline: after } = await updatePipeline(node, { ...settings, forceRestart })
        answer(after?.jsonConfig ?? settings.jsonConfig)
        // What was typed meanwhile is not stored.
        setDrafts((now) => new Map([...now].filter(([id, draft]) => draft !== drafts.get(id))))
        tell(running && !forceRestart ? 'The run has taken the values over' : 'The values are stored')
        return
      }
    } catch (error) {
      setFailure(failureOf(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <form
      className="card variables"
      onSubmit={(event) => {
        event.preventDefault()
        if (!isBusy) void apply()
      }}
    >
      {variables.map((variable) => (
        <VariableField
          key={variable.id}
          variable={variable}
          draft={drafts.get(variable.id)}
          onType={(text) => change(variable.id, { text, base: drafts.get(variable.id)?.base ?? typed(variable.value) })}
          onDecide={(draft) => change(variable.id, draft)}
        />
      ))}
      {failure !== undefined && <Failure error={failure} title="The values were not taken" />}
      <div className="actions">
        <ActionButton type="submit" className="button primary" isOff={isBusy}>
          Apply
        </ActionButton>
      </div>
    </form>
  )
}
