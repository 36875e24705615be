/** The editor around one draft: palette, canvas or text, form, problems, and what stores it. */
import type { Pipeline, SettingsProblem } from '@penstock/client'
import { ReactFlowProvider } from '@xyflow/react'
import { useEffect, useMemo, useState } from 'react'
import type { Catalogue, Schema } from '../../data/schema.ts'
import { isSame, type Settings, settingsOf } from '../../data/settings.ts'
import { useValidation } from '../../data/validation.ts'
import { countText } from '../../parts/format.ts'
import { keepKeys } from '../../parts/keys.ts'
import { useLeaveGuard } from '../../parts/leave-guard.ts'
import { Later, LoadedLater } from '../../parts/loaded-later.tsx'
import { ProblemList } from '../configuration/problem-list.tsx'
import { StoredChange } from '../configuration/stored-change.tsx'
import { Canvas } from './canvas.tsx'
import { NEW } from './draft.ts'
import { type Editing, useEditing } from './editing.ts'
import { Inspector } from './inspector.tsx'
import { withComponent } from './model-edits.ts'
import { EditingContext } from './port-field.tsx'
import { byComponent, componentAt } from './problems.ts'
import { Saving } from './saving.tsx'
import { useShortcuts } from './shortcuts.ts'
import { SidePanel } from './side-panel.tsx'
import { Toolbar, type View } from './toolbar.tsx'
import '../../parts/family.css'
import './editor.css'

const codeEditor = new Later(async () => ({
  default: (await import('../configuration/code-editor.tsx')).CodeEditor,
}))

interface Props {
  readonly nodeId: string
  readonly pipeline: Pipeline | undefined
  /** It was deleted meanwhile. */
  readonly isGone: boolean
  readonly schema: Schema
  readonly catalogue: Catalogue
}

export function Workbench({ nodeId, pipeline, isGone, schema, catalogue }: Props) {
  const stored = useMemo(() => (pipeline === undefined ? NEW : settingsOf(pipeline)), [pipeline])
  /** The settings that editing began with, or that were decided about. */
  const [base, setBase] = useState<Settings>(stored)
  const editing = useEditing(stored, catalogue)
  const { draft, graph, select, edit, setSettings, reset } = editing
  const [view, setView] = useState<View>('graph')
  const [goTo, setGoTo] = useState<{ readonly pointer: string }>()
  /** The settings that the node has taken, with which the view is left. */
  const [sent, setSent] = useState<Settings>()
  const [isCreating, setCreating] = useState(false)
  const validation = useValidation(nodeId, draft.settings)
  const problems = useMemo(() => byComponent(validation.problems), [validation.problems])
  const isDirty = draft.settings !== sent && !isSame(draft.settings, base)
  const hasMoved = !isSame(stored, base)
  /** As the stream has told it last. */
  const [told, setTold] = useState(stored)
  if (told !== stored) {
    setTold(stored)
    // Nothing typed: what is shown follows what is stored.
    if (hasMoved && !isDirty) {
      reset(stored)
      setBase(stored)
    }
  }
  useLeaveGuard(isDirty)
  useShortcuts(editing, view)
  useEffect(() => (isCreating ? keepKeys() : undefined), [isCreating])

  const shown = draft.config === undefined ? 'text' : view
  const add = (key: string): void => {
    if (draft.config === undefined) return
    const { config, names } = withComponent(draft.config, catalogue, key)
    edit(() => config)
    select(names)
  }
  const show = ({ pointer }: SettingsProblem): void => {
    const name = componentAt(pointer)
    if (shown === 'graph' && name !== undefined) select([name])
    else if (pointer.split('/').length > 2 || pointer === '/jsonConfig') {
      setView('text')
      setGoTo({ pointer })
    } else select([])
  }
  const take = (): void => {
    reset(stored)
    setBase(stored)
  }
  return (
    <EditingContext value={editing}>
      <ReactFlowProvider>
        {/* What is typed while it is created would be lost with this view. */}
        <div className="editor" inert={isCreating}>
          <Toolbar
            nodeId={nodeId}
            editing={editing}
            view={shown}
            onView={setView}
            validation={validation}
            isNew={pipeline === undefined}
          >
            <Saving
              nodeId={nodeId}
              pipeline={isGone ? undefined : pipeline}
              settings={draft.settings}
              isDirty={isDirty}
              isStale={hasMoved}
              isCreating={isCreating}
              onCreating={setCreating}
              onStored={(after, left) => {
                setSent(left)
                setBase(settingsOf(after))
              }}
            />
          </Toolbar>
          {isGone && (
            <p className="notice">
              The pipeline was deleted meanwhile. What you have here is kept: Create makes a new one of it.
            </p>
          )}
          {hasMoved && isDirty && (
            <StoredChange stored={stored} edited={draft.settings} onTake={take} onKeep={() => setBase(stored)} />
          )}
          {shown === 'graph' ? (
            <div className="panes">
              <SidePanel editing={editing} problems={problems} onAdd={add} />
              <Canvas editing={editing} faults={problems} />
              <Inspector editing={editing} problems={problems} />
            </div>
          ) : (
            <TextPane editing={editing}>
              <LoadedLater
                later={codeEditor}
                props={{
                  text: draft.settings.jsonConfig,
                  onChange: (jsonConfig) => setSettings({ ...draft.settings, jsonConfig }, 'text'),
                  schema,
                  problems: validation.problems,
                  warnings: validation.warnings,
                  goTo,
                }}
              />
            </TextPane>
          )}
          <ProblemList validation={validation} onGo={show} />
          <p className="visually-hidden" role="status">
            {countText(graph.components.length, 'component')}, {countText(graph.connections.length, 'connection')}
          </p>
        </div>
      </ReactFlowProvider>
    </EditingContext>
  )
}

function TextPane({ editing, children }: { readonly editing: Editing; readonly children: React.ReactNode }) {
  return (
    <div className="text-pane">
      {editing.draft.config === undefined && (
        <p className="notice">
          This text cannot be drawn yet: it is no JSON, a number in it is beyond the largest, or its components are no
          object.
        </p>
      )}
      {children}
    </div>
  )
}
