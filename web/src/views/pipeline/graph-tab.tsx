/** The components and what flows between them, as a drawing or as a table; beside it all of the one that is selected. */
import { useRef, useState } from 'react'
import { useLive } from '../../data/live.ts'
import { runMetricsOf } from '../../data/run-metrics.ts'
import { ComponentList } from './component-list.tsx'
import { ComponentPanel } from './component-panel.tsx'
import { Graph } from './graph.tsx'
import { NARROW } from './layout.ts'
import type { TabProps } from './tab-props.ts'
import '../../parts/family.css'
import './graph.css'

type Form = 'graph' | 'list'

const FORMS: readonly (readonly [Form, string])[] = [
  ['graph', 'Drawing'],
  ['list', 'List'],
]

export function GraphTab({ nodeId, pipeline, configuration, runId = '' }: TabProps) {
  const [form, setForm] = useState<Form>(innerWidth < NARROW ? 'list' : 'graph')
  const [selected, setSelected] = useState<string>()
  /** What had the keyboard when the panel was opened. */
  const opener = useRef<Element>(null)
  const select = (name: string | undefined): void => {
    opener.current = document.activeElement
    setSelected(name)
  }
  const close = (): void => {
    setSelected(undefined)
    if (opener.current instanceof HTMLElement) opener.current.focus()
  }
  const component = configuration.components.find(({ name }) => name === selected)
  const Shown = form === 'graph' ? Graph : ComponentList
  // One that waits to be restarted is started, and its last run is over.
  const isOn = pipeline.started && pipeline.currentRun?.state !== 'ENDED'
  return (
    <>
      <div className="toolbar">
        <fieldset className="choice">
          <legend className="unseen">Show as</legend>
          {FORMS.map(([value, title]) => (
            <button key={value} type="button" aria-pressed={form === value} onClick={() => setForm(value)}>
              {title}
            </button>
          ))}
        </fieldset>
        <RunNote nodeId={nodeId} runId={runId} isOn={isOn} />
      </div>
      <div className={component === undefined ? 'graph-area' : 'graph-area with-panel'}>
        <Shown nodeId={nodeId} runId={runId} configuration={configuration} selected={selected} onSelect={select} />
        {component !== undefined && (
          <ComponentPanel nodeId={nodeId} runId={runId} component={component} onClose={close} />
        )}
      </div>
    </>
  )
}

interface NoteProps {
  readonly nodeId: string
  readonly runId: string
  readonly isOn: boolean
}

function RunNote({ nodeId, runId, isOn }: NoteProps) {
  if (runId === '') return <p className="quiet small">It was never started: there are no figures yet.</p>
  return <Measured nodeId={nodeId} runId={runId} isOn={isOn} />
}

function Measured({ nodeId, runId, isOn }: NoteProps) {
  const { value, status } = useLive(runMetricsOf(nodeId, runId))
  if (!isOn && value.sample !== undefined)
    return <p className="quiet small">The figures are those of the last run’s end.</p>
  if (!isOn && status === 'failed') return <p className="quiet small">The figures of the last run are not kept.</p>
  if (value.sample === undefined) return <p className="quiet small">Measuring…</p>
  return null
}
