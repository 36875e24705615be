/** The fields of a component as a form, made from its schema. */
import { useId } from 'react'
import { fieldOf } from '../../data/json.ts'
import { skeletonOf } from '../../data/ports.ts'
import { isRequired } from '../../data/schema.ts'
import { rangeOf } from '../configuration/schema-places.ts'
import { type FieldProps, Problems, type ValueProps } from './form.tsx'
import { ListField } from './list-field.tsx'
import { PortField } from './port-field.tsx'
import { ValueInput } from './value-input.tsx'

/** The fields of an object, those of a choice behind a list of what can be chosen. */
export function ObjectFields({ form, schema, value, path }: ValueProps) {
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
function Choice({ form, schema, value, path, names }: ValueProps & { readonly names: readonly string[] }) {
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

function Field({ form, schema, value, path, name, isNeeded }: FieldProps) {
  const id = useId()
  if (schema['x-port'] !== undefined) return <PortField form={form} path={path} label={name} isNeeded={isNeeded} />
  if (schema.items !== undefined) return <ListField {...{ form, schema, value, path, name, isNeeded, ObjectFields }} />
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
          onChange={(next) => form.type(path, next)}
        />
        {!isNeeded && value !== undefined && (
          <button type="button" className="button small plain" onClick={() => form.set(path, undefined)}>
            Unset
          </button>
        )}
      </span>
      {range !== '' && <p className="help range">{range}</p>}
      <p className="help">{schema.description}</p>
      <Problems form={form} path={path} about={id} />
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
