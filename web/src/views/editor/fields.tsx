/** The fields of a component as a form, made from its schema. */
import type { SettingsProblem } from '@penstock/client'
import { useId } from 'react'
import { rangeOf } from '../configuration/schema-places.ts'
import { fieldOf, isList, type Json, type Path } from './model-json.ts'
import { skeletonOf } from './model-ports.ts'
import { isRequired, type Schema } from './model-schema.ts'
import { PortField } from './port-field.tsx'
import { problemsAt } from './problems.ts'
import { ValueInput } from './value-input.tsx'

/** What all fields of a component's form share. */
export interface Form {
  /** Name of the component. */
  readonly component: string
  /** Sets a field, or takes it away. */
  readonly set: (path: Path, value: Json | undefined) => void
  /** A name for a connection point that is made. */
  readonly nameOf: (path: Path) => string
  readonly problems: readonly SettingsProblem[]
}

interface Props {
  readonly form: Form
  readonly schema: Schema
  readonly value: Json | undefined
  readonly path: Path
}

/** The fields of an object, those of a choice behind a list of what can be chosen. */
export function ObjectFields({ form, schema, value, path }: Props) {
  const choice = schema['x-one-of'] ?? []
  const entries = Object.entries(schema.properties ?? {})
  return (
    <>
      {entries
        .filter(([name]) => !choice.includes(name))
        .map(([name, property]) => (
          <Field
            key={name}
            form={form}
            schema={property}
            value={fieldOf(value, name)}
            path={[...path, name]}
            name={name}
            isNeeded={isRequired(schema, name)}
          />
        ))}
      {choice.length > 0 && <Choice form={form} schema={schema} value={value} path={path} names={choice} />}
    </>
  )
}

/** Fields of which exactly one is set. */
function Choice({ form, schema, value, path, names }: Props & { readonly names: readonly string[] }) {
  const id = useId()
  const given = names.filter((name) => fieldOf(value, name) !== undefined)
  const choose = (name: string): void => {
    const rest = names.filter((each) => each !== name && fieldOf(value, each) !== undefined)
    for (const each of rest) form.set([...path, each], undefined)
    if (name !== '' && !given.includes(name)) form.set([...path, name], {})
  }
  return (
    <fieldset>
      <legend>One of</legend>
      <select
        id={id}
        aria-label={`One of ${names.join(', ')}`}
        value={given[0] ?? ''}
        onChange={({ target }) => choose(target.value)}
      >
        <option value="">choose one</option>
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      {given.map((name) => {
        const property = schema.properties?.[name] ?? {}
        return (
          <div key={name}>
            <p className="help">{property.description}</p>
            <ObjectFields form={form} schema={property} value={fieldOf(value, name)} path={[...path, name]} />
          </div>
        )
      })}
      <Problems form={form} path={path} />
    </fieldset>
  )
}

interface FieldProps extends Props {
  readonly name: string
  readonly isNeeded: boolean
}

function Field({ form, schema, value, path, name, isNeeded }: FieldProps) {
  const id = useId()
  if (schema['x-port'] !== undefined) return <PortField form={form} path={path} label={name} isNeeded={isNeeded} />
  if (schema.items !== undefined) return <ListField {...{ form, schema, value, path, name, isNeeded }} />
  if (schema.properties !== undefined) return <GroupField {...{ form, schema, value, path, name, isNeeded }} />
  const range = rangeOf(schema)
  return (
    <div className="field">
      <label htmlFor={id}>
        {name}
        <span className="about">{isNeeded ? 'required' : value === undefined ? 'unset' : ''}</span>
      </label>
      <span className="entry">
        <ValueInput
          id={id}
          schema={schema}
          value={value}
          isNeeded={isNeeded}
          onChange={(next) => form.set(path, next)}
        />
        {!isNeeded && value !== undefined && (
          <button type="button" className="button small plain" onClick={() => form.set(path, undefined)}>
            Unset
          </button>
        )}
      </span>
      {range !== '' && <p className="help range">{range}</p>}
      <p className="help">{schema.description}</p>
      <Problems form={form} path={path} />
    </div>
  )
}

/** An object inside; one that may be left out is there once it is added. */
function GroupField({ form, schema, value, path, name, isNeeded }: FieldProps) {
  const isThere = isNeeded || value !== undefined
  return (
    <fieldset>
      <legend>{name}</legend>
      <p className="help">{schema.description}</p>
      {!isNeeded && (
        <button
          type="button"
          className="button small"
          onClick={() => form.set(path, isThere ? undefined : skeletonOf(schema, path, form.nameOf))}
        >
          {isThere ? 'Remove' : 'Add'}
        </button>
      )}
      {isThere && <ObjectFields form={form} schema={schema} value={value} path={path} />}
      <Problems form={form} path={path} />
    </fieldset>
  )
}

function ListField({ form, schema, value, path, name, isNeeded }: FieldProps) {
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
          <ItemFields form={form} schema={item} value={each} path={[...path, i]} label={`${name}[${i}]`} />
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

function ItemFields({ form, schema, value, path, label }: Props & { readonly label: string }) {
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
        onChange={(next) => form.set(path, next ?? firstOf(schema))}
      />
      <Problems form={form} path={path} />
    </div>
  )
}

function firstOf(schema: Schema): Json {
  if (schema.enum?.[0] !== undefined) return schema.enum[0]
  return schema.type === 'string' ? '' : Math.max(0, schema.minimum ?? 0)
}

export function Problems({ form, path }: Pick<Props, 'form' | 'path'>) {
  const found = problemsAt(form.problems, path)
  if (found.length === 0) return null
  return (
    <ul className="wrong" role="alert">
      {found.map(({ message }) => (
        <li key={message}>⚠ {message}</li>
      ))}
    </ul>
  )
}
