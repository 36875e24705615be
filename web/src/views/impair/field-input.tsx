/** One number of an emulation component: a slider for the hand, a field for what is known exactly. */
import { useId, useState } from 'react'
import type { LiveField } from '../../data/emulation.ts'
import { isWhole, STEPS, scaleOf } from './scales.ts'

interface Props {
  readonly field: LiveField
  /** What it is set to, or is about to be. */
  readonly value: number | boolean | undefined
  readonly isPending: boolean
  readonly onSet: (value: number | boolean) => void
}

export function FieldInput(props: Props) {
  const { field, value, isPending, onSet } = props
  const { steps, schema } = field
  if (typeof (value ?? schema.default) !== 'boolean' && schema.type !== 'boolean') return <NumberInput {...props} />
  return (
    <label className={isPending ? 'emulated pending' : 'emulated'} title={schema.description}>
      <input type="checkbox" checked={value === true} onChange={(event) => onSet(event.target.checked)} />{' '}
      {nameOf(steps)}
    </label>
  )
}

function NumberInput({ field, value, isPending, onSet }: Props) {
  const id = useId()
  const { steps, schema } = field
  const unit = schema['x-unit'] ?? ''
  const isShare = unit === 'probability'
  const name = nameOf(steps)
  const number = typeof value === 'number' ? value : undefined
  const scale = scaleOf(schema, typeof field.value === 'number' ? field.value : undefined)
  const shown = number === undefined ? '' : isShare ? Number((number * 100).toPrecision(6)) : number
  const [least, most] = [schema.minimum ?? schema.exclusiveMinimum, schema.maximum]
  const exact = useTyped(String(shown), (text) =>
    onSet(isShare ? Number((Number(text) / 100).toPrecision(12)) : Number(text)),
  )
  return (
    <div className={isPending ? 'emulated pending' : 'emulated'}>
      <label htmlFor={id} title={schema.description}>
        {name}
      </label>
      <input
        type="range"
        aria-label={`${name}, as a slider`}
        aria-valuetext={`${shown} ${isShare ? '%' : unit}`}
        min={0}
        max={STEPS}
        value={number === undefined ? 0 : scale.step(number)}
        onChange={(event) => onSet(scale.value(Number(event.target.value)))}
      />
      <span className="exact">
        <input
          id={id}
          type="number"
          inputMode="decimal"
          placeholder="not set"
          step={isWhole(schema) ? 1 : 'any'}
          {...(least !== undefined && { min: isShare ? least * 100 : least })}
          {...(most !== undefined && { max: isShare ? most * 100 : most })}
          value={exact.text}
          aria-invalid={exact.refusal !== undefined}
          aria-describedby={`${id}refusal`}
          onChange={(event) => exact.type(event.target.value)}
          onBlur={(event) => exact.take(event.target)}
          onKeyDown={(event) => {
            if (event.key === 'Enter') exact.take(event.currentTarget)
            if (event.key === 'Escape') exact.type(undefined)
          }}
        />
        <span className="quiet small">{isShare ? '%' : unit}</span>
      </span>
      <span className="refusal small" id={`${id}refusal`} role="alert">
        {exact.refusal !== undefined && `⚠ ${exact.refusal} ${shown === '' ? 'It is not set.' : `${shown} stays.`}`}
      </span>
    </div>
  )
}

interface Typed {
  readonly text: string
  /** Why what is typed was not taken, in the browser's words. */
  readonly refusal: string | undefined
  /** Undefined: what is set is shown again. */
  readonly type: (text: string | undefined) => void
  readonly take: (input: HTMLInputElement) => void
}

/** What is typed into a field until it is taken; a value that comes from elsewhere replaces it. The keyboard may leave the field whatever stands in it. */
function useTyped(shown: string, onTake: (text: string) => void): Typed {
  const [typed, setTyped] = useState<string>()
  const [refusal, setRefusal] = useState<string>()
  const [before, setBefore] = useState(shown)
  const type = (text: string | undefined): void => {
    setTyped(text)
    setRefusal(undefined)
  }
  if (before !== shown) {
    setBefore(shown)
    type(undefined)
  }
  const take = (input: HTMLInputElement): void => {
    if (!input.checkValidity()) {
      setRefusal(input.validationMessage)
      return
    }
    type(undefined)
    if (input.value !== '' && input.value !== shown) onTake(input.value)
  }
  return { text: typed ?? shown, refusal, type, take }
}

/** `phases 1 delay` of `phases`, `0`, `delay`; `good loss` of `good_loss_prob`, whose unit is told beside it. */
function nameOf(steps: readonly string[]): string {
  return steps
    .map((step) => (/^\d+$/.test(step) ? String(Number(step) + 1) : step.replace(/_(probability|prob|mbit|ms)$/, '')))
    .join(' ')
    .replaceAll('_', ' ')
}
