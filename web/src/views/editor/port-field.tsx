/** A connection point in the form: with what it is connected, and what the connection is called. */
import { createContext, useContext, useId } from 'react'
import type { Path } from '../../data/json.ts'
import { idOf, labelOf, type Port } from '../../data/ports.ts'
import type { Editing } from './editing.ts'
import { type Form, Problems } from './form.tsx'
import { withConnection, withoutConnection } from './model-connect.ts'
import { withConnectionName } from './model-edits.ts'
import { othersOf, portOf } from './model-graph.ts'
import { NameInput } from './name-input.tsx'

/** What is being edited, for the fields that are about other components too. */
export const EditingContext = createContext<Editing | undefined>(undefined)

interface Props {
  readonly form: Form
  readonly path: Path
  readonly label: string
  readonly isNeeded: boolean
}

const optionOf = (port: Port): string => `${port.component}\n${idOf(port)}`

export function PortField({ form, path, label, isNeeded }: Props) {
  const id = useId()
  const { graph, catalogue, draft, edit } = useContext(EditingContext) as Editing
  const port = portOf(graph, form.component, idOf({ path }))
  if (port === undefined) return null
  const [other] = othersOf(graph, port)
  const ends = graph.components.map(
    ({ name, ports }) => [name, ports.filter(({ side }) => side !== port.side)] as const,
  )
  const choose = (value: string): void => {
    const [component = '', at = ''] = value.split('\n')
    const end = portOf(graph, component, at)
    if (end === undefined) edit((config) => withoutConnection(config, catalogue, port))
    else {
      const [from, to] = port.side === 'output' ? [port, end] : [end, port]
      edit((config) => withConnection(config, catalogue, from, to))
    }
  }
  return (
    <div className="field port">
      <label htmlFor={id}>
        {label}
        <span className="about">
          {port.side === 'output' ? 'output to' : 'input from'}
          {isNeeded ? '' : ', optional'}
        </span>
      </label>
      <select
        id={id}
        value={other === undefined ? '' : optionOf(other)}
        onChange={({ target }) => choose(target.value)}
      >
        <option value="">not connected</option>
        {ends.map(([name, ports]) =>
          ports.length === 0 ? null : (
            <optgroup key={name} label={name}>
              {ports.map((end) => (
                <option key={idOf(end)} value={optionOf(end)}>
                  {`${name} · ${labelOf(end.path)}${end.isNew ? ' (one more)' : ''}`}
                </option>
              ))}
            </optgroup>
          ),
        )}
      </select>
      {port.connection !== undefined && (
        <NameInput
          label={`Name of the connection at ${label}`}
          name={port.connection}
          onRename={(name) => {
            if (draft.config === undefined) return
            const renamed = withConnectionName(draft.config, catalogue, port.connection as string, name)
            edit(() => renamed)
          }}
        />
      )}
      <Problems form={form} path={path} />
    </div>
  )
}
