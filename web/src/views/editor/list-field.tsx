/** A list in a component's form: its items, each of which can be taken away, and one more. */
import { type ComponentType, useId } from 'react'
import { isList, type Json } from '../../data/json.ts'
import { skeletonOf } from '../../data/ports.ts'
import type { Schema } from '../../data/schema.ts'
import { type FieldProps, Problems, type ValueProps } from './form.tsx'
import { PortField } from './port-field.tsx'
import { ValueInput } from './value-input.tsx'

interface ObjectForm {
  /** The form of an item that has fields. */
  readonly ObjectFields: ComponentType<ValueProps>
}

export function ListField({ form, schema, value, path, name, isNeeded, ObjectFields }: FieldProps & ObjectForm) {
  const items = isList(value) ? value : []
  const item = schema.items ?? {}
  const isFull = items.length >= (schema.maxItems ?? Number.POSITIVE_INFINITY)
  const add = (): void => {
    const at = [...path, items.length]
    const isPlain = item.properties === undefined && item['x-port'] === undefined
    form.set(at, isPlain ? firstOf(item) : skeletonOf(item, at, form.nameOf))
  }
  return (
    <fieldset>
      <legend>
        {name} <span className="about">{isNeeded ? 'required' : items.length === 0 ? 'unset' : ''}</span>
      </legend>
      <p className="help">{schema.description}</p>
      {items.map((each, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: items have no other identity
        <div className="item" key={i}>
          <ItemFields
            {...{ form, ObjectFields }}
            schema={item}
            value={each}
            path={[...path, i]}
            label={`${name}[${i}]`}
          />
          <button
            type="button"
            className="button small plain"
            aria-label={`Remove ${name}[${i}]`}
            onClick={() => form.set([...path, i], undefined)}
          >
            Remove
          </button>
        </div>
      ))}
      <button type="button" className="button small" disabled={isFull} onClick={add}>
        Add {name}[{items.length}]
      </button>
      <Problems form={form} path={path} />
    </fieldset>
  )
}

function ItemFields(props: ValueProps & ObjectForm & { readonly label: string }) {
  const { form, schema, value, path, label, ObjectFields } = props
  const id = useId()
  if (schema['x-port'] !== undefined) return <PortField form={form} path={path} label={label} isNeeded />
  if (schema.properties !== undefined) {
    return (
      <fieldset>
        <legend>{label}</legend>
        <ObjectFields form={form} schema={schema} value={value} path={path} />
        <Problems form={form} path={path} />
      </fieldset>
    )
  }
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <ValueInput
        id={id}
        schema={schema}
        value={value}
        isNeeded
        onChange={(next) => form.type(path, next ?? firstOf(schema))}
      />
      <Problems form={form} path={path} about={id} />
    </div>
  )
}

function firstOf(schema: Schema): Json {
  if (schema.enum?.[0] !== undefined) return schema.enum[0]
  return schema.type === 'string' ? '' : Math.max(0, schema.minimum ?? 0)
}
