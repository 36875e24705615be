/** What is edited, how it is shown, and what can be done with it as a whole. */
import { useReactFlow } from '@xyflow/react'
import { type ReactNode, useId } from 'react'
import type { Validation } from '../../data/validation.ts'
import { ActionButton } from '../../parts/action-button.tsx'
import { OnNode } from '../../parts/on-node.tsx'
import { ValidationBadge } from '../configuration/problem-list.tsx'
import { FileTools, TextTools } from '../configuration/text-tools.tsx'
import { FIT } from './canvas.tsx'
import type { Editing } from './editing.ts'
import { withCoordinates } from './model-edits.ts'
import { laidOut } from './model-layout.ts'

export type View = 'graph' | 'text'

interface Props {
  readonly nodeId: string
  readonly editing: Editing
  readonly view: View
  readonly onView: (view: View) => void
  readonly validation: Validation
  readonly isNew: boolean
  /** What stores it. */
  readonly children: ReactNode
}

export function Toolbar({ nodeId, editing, view, onView, validation, isNew, children }: Props) {
  const { draft, graph, edit, setSettings, undo, redo } = editing
  const { settings } = draft
  const id = useId()
  const { fitView } = useReactFlow()
  const arrange = (): void => {
    edit((config) => withCoordinates(config, laidOut(graph)))
    void fitView(FIT)
  }
  const setText = (jsonConfig: string): void => setSettings({ ...settings, jsonConfig })
  const tools = { text: settings.jsonConfig, name: settings.name, onChange: setText }
  return (
    <header className="editor-bar">
      <div className="row">
        <h1 className="visually-hidden">{isNew ? 'New pipeline' : `Edit ${settings.name}`}</h1>
        <label className="visually-hidden" htmlFor={id}>
          Name of the pipeline
        </label>
        <input
          id={id}
          className="pipeline-name"
          placeholder="Name of the pipeline"
          value={settings.name}
          onChange={({ target }) => setSettings({ ...settings, name: target.value }, 'name')}
        />
        <OnNode nodeId={nodeId} />
        <ValidationBadge validation={validation} />
        <span className="end">{children}</span>
      </div>
      <div className="row">
        <fieldset className="segments">
          <legend className="visually-hidden">View</legend>
          {(['graph', 'text'] as const).map((each) => (
            <button
              key={each}
              type="button"
              aria-pressed={view === each}
              disabled={each === 'graph' && draft.config === undefined}
              onClick={() => onView(each)}
            >
              {each === 'graph' ? 'Graph' : 'Text'}
            </button>
          ))}
        </fieldset>
        <ActionButton className="button small" isOff={undo === undefined} onClick={undo}>
          Undo
        </ActionButton>
        <ActionButton className="button small" isOff={redo === undefined} onClick={redo}>
          Redo
        </ActionButton>
        {view === 'graph' && (
          <button type="button" className="button small" disabled={graph.components.length === 0} onClick={arrange}>
            Arrange
          </button>
        )}
        {view === 'graph' ? <FileTools {...tools} /> : <TextTools {...tools} />}
      </div>
    </header>
  )
}
