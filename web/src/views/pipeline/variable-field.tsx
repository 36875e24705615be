/** One variable of a configuration: what is typed stays whatever is stored meanwhile, which is said. */
import { useId } from 'react'
import { hasBreaks, rowsOf } from '../../data/line-breaks.ts'
import { type Draft, isChanged, typed, type Variable } from '../../data/variables.ts'

interface Props {
  readonly variable: Variable
  /** What is typed; undefined: what is stored is shown. */
  readonly draft: Draft | undefined
  readonly onType: (text: string) => void
  /** What goes on in place of the draft once something else is stored. */
  readonly onDecide: (draft: Draft | undefined) => void
}

export function VariableField({ variable, draft, onType, onDecide }: Props) {
  const { id, label, description, paths, value } = variable
  const field = useId()
  const stored = typed(value)
  const text = draft?.text ?? stored
  const entry = {
    ...{ id: field, name: id, value: text, 'aria-describedby': `${field}about` },
    ...{ spellCheck: false, autoComplete: 'off' },
    onChange: ({ target }: { readonly target: { readonly value: string } }) => onType(target.value),
  }
  return (
    <div className="variable">
      <label htmlFor={field}>{label}</label>
      {/* An input takes line breaks out of what it shows. */}
      {hasBreaks(stored) || hasBreaks(text) ? (
        <textarea {...entry} rows={rowsOf(text)} />
      ) : (
        <input {...entry} inputMode={typeof value === 'number' ? 'decimal' : 'text'} />
      )}
      <p className="quiet small" id={`${field}about`}>
        {description !== '' && <>{description.replace(/\.$/, '')}. </>}
        <code>{id}</code>, at {paths.join(', ')}
      </p>
      {draft !== undefined && draft.base !== stored && isChanged(variable, draft) && (
        <div className="notice" role="status">
          <p>
            The stored value has changed meanwhile: it is {stored === '' ? 'not set' : <code>{stored}</code>}. What you
            have typed is still here.
          </p>
          <div className="actions">
            <button type="button" className="button small" onClick={() => onDecide(undefined)}>
              Take the stored one
            </button>
            <button type="button" className="button small" onClick={() => onDecide({ text, base: stored })}>
              Keep mine
            </button>
          </div>
        </div>
      )}
    </div>
  )
}
