/** One number of an emulation component: a slider for the hand, a field for what is known exactly. */
import { useId } from 'react'
import type { LiveField } from '../../data/emulation.ts'
import { STEPS, scaleOf } from './scales.ts'

interface Props {
  readonly field: LiveField
  /** What it is set to, or is about to be. */
  readonly value: number | boolean | undefined
  readonly isPending: boolean
  readonly onSet: (value: number | boolean) => void
}

export function FieldInput({ field, value, isPending, onSet }: Props) {
  const id = useId()
  const { steps, schema } = field
  const unit = schema['x-unit'] ?? ''
  const isShare = unit === 'probability'
  const name = nameOf(steps)
  if (typeof (value ?? schema.default) === 'boolean' || schema.type === 'boolean') {
    return (
      <label className={isPending ? 'emulated pending' : 'emulated'} title={schema.description}>
        <input type="checkbox" checked={value === true} onChange={(event) => onSet(event.target.checked)} /> {name}
      </label>
    )
  }
  const number = typeof value === 'number' ? value : undefined
  const scale = scaleOf(schema, typeof field.value === 'number' ? field.value : undefined)
  const shown = number === undefined ? '' : isShare ? Number((number * 100).toPrecision(6)) : number
  const [least, most] = [schema.minimum ?? schema.exclusiveMinimum, schema.maximum]
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
          // A value that comes from elsewhere replaces what is typed, one's own does not.
          key={String(shown)}
          type="number"
          inputMode="decimal"
          placeholder="not set"
          step="any"
          {...(least !== undefined && { min: isShare ? least * 100 : least })}
          {...(most !== undefined && { max: isShare ? most * 100 : most })}
          defaultValue={shown}
          onBlur={(event) => take(event.target)}
          onKeyDown={(event) => {
            if (event.key === 'Enter') take(event.currentTarget)
          }}
        />
        <span className="quiet small">{isShare ? '%' : unit}</span>
      </span>
    </div>
  )

  /** A number that the field does not allow is told by the browser, and not set. */
  function take(input: HTMLInputElement): void {
    if (input.value === '' || input.value === String(shown) || !input.reportValidity()) return
    onSet(isShare ? Number((Number(input.value) / 100).toPrecision(12)) : Number(input.value))
  }
}

/** `phases 1 delay` of `phases`, `0`, `delay`; `good loss` of `good_loss_prob`, whose unit is told beside it. */
function nameOf(steps: readonly string[]): string {
  return steps
    .map((step) => (/^\d+$/.test(step) ? String(Number(step) + 1) : step.replace(/_(probability|prob|mbit|ms)$/, '')))
    .join(' ')
    .replaceAll('_', ' ')
}
