/** Beside the canvas: what can be added, and what there is. */
import { useState } from 'react'
import type { Editing } from './editing.ts'
import { Palette } from './palette.tsx'

interface Props {
  readonly editing: Editing
  readonly problems: ReadonlyMap<string, readonly unknown[]>
  readonly onAdd: (key: string) => void
}

export function SidePanel({ editing, problems, onAdd }: Props) {
  const { graph, catalogue, selected, select } = editing
  const [shown, setShown] = useState<'add' | 'list'>('add')
  const count = graph.components.length
  return (
    <aside className="side">
      <div className="switch" role="tablist">
        <Tab name="Add" isOn={shown === 'add'} onClick={() => setShown('add')} />
        <Tab name={`Components (${count})`} isOn={shown === 'list'} onClick={() => setShown('list')} />
      </div>
      {shown === 'add' ? (
        <Palette catalogue={catalogue} onAdd={onAdd} />
      ) : (
        <ul className="list">
          <li>
            <button type="button" aria-pressed={selected.size === 0} onClick={() => select([])}>
              Settings of the pipeline
            </button>
          </li>
          {graph.components.map(({ name, key }) => (
            <li key={name}>
              <button type="button" aria-pressed={selected.has(name)} onClick={() => select([name])}>
                <strong>{name}</strong> <small>{key}</small>
                {problems.has(name) && <span className="faulty">! {problems.get(name)?.length}</span>}
              </button>
            </li>
          ))}
          {count === 0 && <li className="quiet">None yet.</li>}
        </ul>
      )}
    </aside>
  )
}

function Tab({ name, isOn, onClick }: { readonly name: string; readonly isOn: boolean; readonly onClick: () => void }) {
  return (
    <button type="button" role="tab" aria-selected={isOn} onClick={onClick}>
      {name}
    </button>
  )
}
