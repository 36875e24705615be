/** One value of a configuration: a number, a text, a choice, yes or no. */
import { type ChangeEvent, useEffect, useState } from 'react'
import type { Json } from '../../data/json.ts'
import { asBefore, asShown, hasBreaks, rowsOf } from '../../data/line-breaks.ts'
import type { Schema } from '../../data/schema.ts'
import { problemsId } from './form.tsx'

interface Props {
  readonly id: string
  readonly schema: Schema
  readonly value: Json | undefined
  readonly isNeeded: boolean
  /** Undefined: it is taken away. */
  readonly onChange: (value: Json | undefined) => void
}

export function ValueInput(props: Props) {
  const { schema } = props
  if (schema.enum !== undefined) return <Options {...props} values={schema.enum} />
  if (schema.type === 'boolean') return <Options {...props} values={[true, false]} />
  if (schema.type === 'number' || schema.type === 'integer') return <NumberInput {...props} />
  return <TextInput {...props} />
}

function shown(value: Json): string {
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value)
}

function Options({ id, schema, value, isNeeded, onChange, values }: Props & { readonly values: readonly Json[] }) {
  const unset = schema.default === undefined ? 'unset' : `unset: ${shown(schema.default)}`
  const isKnown = value === undefined || values.includes(value)
  return (
    <select
      id={id}
      aria-describedby={problemsId(id)}
      value={value === undefined ? '' : JSON.stringify(value)}
      onChange={({ target }) => onChange(target.value === '' ? undefined : (JSON.parse(target.value) as Json))}
    >
      {(!isNeeded || value === undefined) && <option value="">{isNeeded ? 'choose one' : unset}</option>}
      {!isKnown && <option value={JSON.stringify(value)}>{shown(value)}</option>}
      {values.map((each) => (
        <option key={String(each)} value={JSON.stringify(each)}>
          {shown(each)}
        </option>
      ))}
    </select>
  )
}

/** What is typed is kept as it is; the configuration gets it once it is a number. */
function NumberInput({ id, schema, value, onChange }: Props) {
  const written = value === undefined ? '' : String(value)
  const [typed, setTyped] = useState(written)
  useEffect(() => setTyped((last) => (last.trim() !== '' && Number(last) === value ? last : written)), [value, written])
  const isWrong = typed.trim() !== '' && !Number.isFinite(Number(typed))
  return (
    <span className="number">
      <input
        id={id}
        aria-describedby={problemsId(id)}
        inputMode="decimal"
        autoComplete="off"
        value={typed}
        aria-invalid={isWrong}
        placeholder={schema.default === undefined ? '' : String(schema.default)}
        onChange={({ target }) => {
          setTyped(target.value)
          const text = target.value.trim()
          if (text === '') onChange(undefined)
          else if (Number.isFinite(Number(text))) onChange(Number(text))
        }}
      />
      {isWrong && (
        <span className="wrong" role="alert">
          ⚠ “{typed}” is no number{value === undefined ? '' : `; ${value} stays`}
        </span>
      )}
    </span>
  )
}

function TextInput({ id, schema, value, onChange }: Props) {
  const [isShown, setShown] = useState(false)
  const isSecret = schema['x-secret'] === true
  const text = value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value)
  /** An input takes line breaks out of what it shows. What had some keeps its field when the last is deleted, and with it the keyboard. */
  const [hadBreaks, setHadBreaks] = useState(hasBreaks(text))
  if (hasBreaks(text) && !hadBreaks) setHadBreaks(true)
  const isHidden = isSecret && !isShown
  const entry = {
    ...{ id, autoComplete: 'off', spellCheck: false, value: asShown(text) },
    'aria-describedby': problemsId(id),
    placeholder: schema.default === undefined ? '' : String(schema.default),
    onChange: ({ target }: ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) =>
      onChange(target.value === '' ? undefined : asBefore(target.value, text)),
  }
  return (
    <>
      {hadBreaks && !isHidden ? (
        <textarea {...entry} rows={rowsOf(text)} />
      ) : (
        // A secret of several lines is hidden as a whole, and typed only where it is seen.
        <input {...entry} type={isHidden ? 'password' : 'text'} readOnly={hadBreaks} />
      )}
      {isSecret && (
        <button type="button" className="button small plain" aria-pressed={isShown} onClick={() => setShown(!isShown)}>
          {isShown ? 'Hide' : 'Show'}
        </button>
      )}
    </>
  )
}
