/** Chooses a metric by its component and a part of its name. */
import type { TelemetrySample } from '@penstock/client'
import { useId, useState } from 'react'
import { type ChosenMetric, MAX_OFFERED, offeredMetrics } from './metric-choice.ts'

interface Props {
  readonly sample: TelemetrySample
  readonly chosen: readonly ChosenMetric[]
  readonly onAdd: (metric: ChosenMetric) => void
}

export function MetricPicker({ sample, chosen, onAdd }: Props) {
  const [component, setComponent] = useState<string>()
  const [text, setText] = useState('')
  const [isOpen, setOpen] = useState(false)
  const id = useId()
  const isNew = ({ path, name }: ChosenMetric): boolean =>
    !chosen.some((each) => each.path === path && each.name === name)
  const offered = isOpen ? offeredMetrics(sample, component, text) : []
  return (
    <div className="picker card">
      <div className="fields">
        <label htmlFor={`${id}component`}>
          Component
          <select
            id={`${id}component`}
            value={component ?? ''}
            onChange={(event) => {
              setComponent(event.target.value || undefined)
              setOpen(true)
            }}
          >
            <option value="">All</option>
            {sample.metricCollections.map(({ path }) => (
              <option key={path} value={path}>
                {path}
              </option>
            ))}
          </select>
        </label>
        <label htmlFor={`${id}text`}>
          Metric
          <input
            id={`${id}text`}
            type="search"
            placeholder="packets, delay, loss…"
            value={text}
            onFocus={() => setOpen(true)}
            onChange={(event) => {
              setText(event.target.value)
              setOpen(true)
            }}
          />
        </label>
        {isOpen && (
          <button type="button" className="button plain" onClick={() => setOpen(false)}>
            Done
          </button>
        )}
      </div>
      {isOpen && (
        <ul className="offers" aria-label="Metrics to draw">
          {offered.filter(isNew).map((metric) => (
            <li key={`${metric.path}\n${metric.name}`}>
              <button type="button" className="button small" title={metric.description} onClick={() => onAdd(metric)}>
                <span className="quiet">{metric.path}</span> {metric.name}
              </button>
            </li>
          ))}
        </ul>
      )}
      {isOpen && offered.length === 0 && <p className="quiet small">No metric has such a name.</p>}
      {offered.length === MAX_OFFERED && <p className="quiet small">There are more: say more of the name.</p>}
    </div>
  )
}
