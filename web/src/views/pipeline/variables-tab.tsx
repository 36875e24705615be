/** The variables of the configuration as a form: what is set there is written to all places that they name. */
import { explainUpdate, type PenstockError, updatePipeline } from '@penstock/client'
import { useId, useState } from 'react'
import { asShown, hasBreaks, rowsOf } from '../../data/line-breaks.ts'
import { failureOf } from '../../data/live.ts'
import { withValues } from '../../data/places.ts'
import { node } from '../../data/session.ts'
import { updateOf } from '../../data/settings.ts'
import { typed, type Variable, valueOfText, variablesOf } from '../../data/variables.ts'
import { confirm } from '../../parts/confirm.tsx'
import { Failure } from '../../parts/failure.tsx'
import { tell } from '../../parts/toasts.tsx'
import type { TabProps } from './tab-props.ts'

export function VariablesTab({ nodeId, pipeline }: TabProps) {
  const [failure, setFailure] = useState<PenstockError>()
  const [isBusy, setBusy] = useState(false)
  const variables = variablesOf(pipeline.jsonConfig)
  const apply = async (data: FormData): Promise<void> => {
    setBusy(true)
    setFailure(undefined)
    try {
      const jsonConfig = withValues(pipeline.jsonConfig, changedValues(variables, data))
      const settings = { ...updateOf(nodeId, pipeline), jsonConfig }
      const { running, restart } = await explainUpdate(node, settings)
      const forceRestart = running && restart.length > 0
      const question = {
        title: 'Restart the pipeline?',
        text: `The run that is on cannot take over: ${restart.map(({ pointer, message }) => `${pointer} (${message})`).join('; ')}.`,
        action: 'Restart',
      }
      if (forceRestart && !(await confirm(question))) return
      await updatePipeline(node, { ...settings, forceRestart })
      tell(running && !forceRestart ? 'The run has taken the values over' : 'The values are stored')
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
        void apply(new FormData(event.currentTarget))
      }}
    >
      {variables.map((variable) => (
        <Field key={`${variable.id} ${typed(variable.value)}`} variable={variable} />
      ))}
      {failure !== undefined && <Failure error={failure} title="The values were not taken" />}
      <div className="actions">
        <button type="submit" className="button primary" disabled={isBusy}>
          Apply
        </button>
      </div>
    </form>
  )
}

/** By place; only what was changed. */
function changedValues(variables: readonly Variable[], data: FormData): ReadonlyMap<string, unknown> {
  const values = new Map<string, unknown>()
  for (const { id, paths, value } of variables) {
    const text = asShown(String(data.get(id)))
    if (text === typed(value)) continue
    for (const path of paths) values.set(path, valueOfText(text, value))
  }
  return values
}

function Field({ variable: { id, label, description, paths, value } }: { readonly variable: Variable }) {
  const field = useId()
  const shown = typed(value)
  const entry = {
    ...{ id: field, name: id, defaultValue: shown, 'aria-describedby': `${field}about` },
    ...{ spellCheck: false, autoComplete: 'off' },
  }
  return (
    <div className="variable">
      <label htmlFor={field}>{label}</label>
      {/* An input takes line breaks out of what it shows. */}
      {hasBreaks(shown) ? (
        <textarea {...entry} rows={rowsOf(shown)} />
      ) : (
        <input {...entry} inputMode={typeof value === 'number' ? 'decimal' : 'text'} />
      )}
      <p className="quiet small" id={`${field}about`}>
        {description !== '' && <>{description.replace(/\.$/, '')}. </>}
        <code>{id}</code>, at {paths.join(', ')}
      </p>
    </div>
  )
}
