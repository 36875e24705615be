/** What is selected: a component's form, or the settings of the pipeline. */
import type { SettingsProblem } from '@penstock/client'
import { type Json, type Path, pointerOf } from '../../data/json.ts'
import type { Editing } from './editing.ts'
import { ObjectFields } from './fields.tsx'
import { Problems } from './form.tsx'
import {
  connectionNames,
  portName,
  withComponentName,
  withCopies,
  withFieldOf,
  withoutComponents,
} from './model-edits.ts'
import type { Component } from './model-graph.ts'
import { NameInput } from './name-input.tsx'
import { SettingsForm } from './settings-form.tsx'
import './inspector.css'

interface Props {
  readonly editing: Editing
  readonly problems: ReadonlyMap<string, readonly SettingsProblem[]>
}

export function Inspector({ editing, problems }: Props) {
  const { graph, selected, draft, setSettings } = editing
  const chosen = graph.components.filter(({ name }) => selected.has(name))
  const [first, ...others] = chosen
  if (first === undefined) return <SettingsForm settings={draft.settings} onChange={setSettings} />
  return (
    <section className="inspector" aria-label={others.length === 0 ? first.name : 'Selected components'}>
      {others.length === 0 ? (
        <ComponentForm key={first.name} editing={editing} component={first} problems={problems.get(first.name) ?? []} />
      ) : (
        <>
          <h2>{chosen.length} components</h2>
          <ul>
            {chosen.map(({ name }) => (
              <li key={name}>{name}</li>
            ))}
          </ul>
        </>
      )}
      <SelectionTools editing={editing} />
    </section>
  )
}

function SelectionTools({ editing: { draft, catalogue, selected, select, edit } }: Pick<Props, 'editing'>) {
  const copy = (): void => {
    if (draft.config === undefined) return
    const { config, names } = withCopies(draft.config, catalogue, [...selected])
    edit(() => config)
    select(names)
  }
  const remove = (): void => {
    edit((config) => withoutComponents(config, selected))
    select([])
  }
  return (
    <div className="actions">
      <button type="button" className="button small" onClick={copy}>
        Copy
      </button>
      <button type="button" className="button small" onClick={remove}>
        Delete
      </button>
    </div>
  )
}

interface FormProps {
  readonly editing: Editing
  readonly component: Component
  readonly problems: readonly SettingsProblem[]
}

function ComponentForm({ editing, component, problems }: FormProps) {
  const { draft, catalogue, edit, select } = editing
  const { name, key, kind, fields } = component
  const form = {
    ...{ component: name, problems },
    set: (path: Path, value: Json | undefined) => edit((config) => withFieldOf(config, catalogue, name, path, value)),
    type: (path: Path, value: Json | undefined) =>
      edit((config) => withFieldOf(config, catalogue, name, path, value), `${name}${pointerOf(path)}`),
    nameOf: (path: Path) => portName(name, path, connectionNames(draft.config ?? {}, catalogue)),
  }
  return (
    <>
      <NameInput
        label="Name of the component"
        name={name}
        onRename={(next) => {
          if (draft.config === undefined) return
          const renamed = withComponentName(draft.config, name, next)
          edit(() => renamed)
          select([next])
        }}
      />
      <p className={`kind family-${kind?.family ?? 'unknown'}`}>
        <code>{key ?? 'no component'}</code> {kind?.family}
      </p>
      {kind === undefined ? (
        <p className="wrong">⚠ There is no form for this: a component has exactly one known kind. Edit it as text.</p>
      ) : (
        <>
          <details className="help">
            <summary>{kind.summary}</summary>
            {kind.schema.description}
          </details>
          <Problems form={form} path={[]} />
          <ObjectFields form={form} schema={kind.schema} value={fields} path={[]} />
        </>
      )}
    </>
  )
}
