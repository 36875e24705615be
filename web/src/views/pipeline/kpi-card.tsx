/** One KPI of the configuration, drawn as it is meant. */
import type { Kpi } from '@penstock/client'
import { type History, MAX_KPI_SERIES } from '../../data/history.ts'
import { shareText } from '../../parts/format.ts'
import { quantityText } from '../../parts/quantity.ts'
import { TimeChart } from '../../parts/time-chart.tsx'
import { columnsOf, type Item, type Shape, shapeOf } from './kpi-shapes.ts'

export function KpiCard({ kpi, history }: { readonly kpi: Kpi; readonly history: History }) {
  const shape = shapeOf(kpi, history)
  const label = kpi.label || kpi.id
  return (
    <section className={`card kpi span-${columnsOf(kpi, shape)}`} aria-label={label}>
      <h2>{label}</h2>
      {kpi.description !== '' && <p className="quiet small">{kpi.description}</p>}
      <Drawing shape={shape} label={label} times={history.times()} />
      {history.lacksKpis && isCut(shape) && (
        <p className="quiet small">Curves are missing: of a run, {MAX_KPI_SERIES} numbers of KPIs at most are kept.</p>
      )}
    </section>
  )
}

/** Whether a curve of it has nothing. */
function isCut(shape: Shape): boolean {
  return shape.kind === 'curves' && shape.curves.some(({ values }) => values.every((value) => value === undefined))
}

interface DrawingProps {
  readonly shape: Shape
  readonly label: string
  readonly times: readonly number[]
}

function Drawing({ shape, label, times }: DrawingProps) {
  switch (shape.kind) {
    case 'number':
      return <p className="big">{quantityText(shape.value, shape.unit)}</p>
    case 'gauge':
      return <Gauge value={shape.value} label={label} />
    case 'text':
      return <Decorated text={shape.text} colour={shape.colour} />
    case 'numbers':
      return <Numbers items={shape.items} unit={shape.unit} />
    case 'curves':
      return <TimeChart label={label} times={times} curves={shape.curves} unit={shape.unit} isStack={shape.isStack} />
    case 'nothing':
      return <p className="quiet small">No value: {shape.why}</p>
  }
}

/** Half a circle; its length is pi, by which a share of it is drawn. */
function Gauge({ value, label }: { readonly value: number; readonly label: string }) {
  const share = Math.min(1, Math.max(0, value))
  const arc = 'M10 60a50 50 0 0 1 100 0'
  return (
    <div className="gauge">
      <meter className="unseen" aria-label={label} value={share} min={0} max={1} />
      <svg viewBox="0 0 120 68" aria-hidden="true">
        <path className="whole" d={arc} pathLength={1} />
        <path className="part" d={arc} pathLength={1} strokeDasharray={`${share} 1`} />
      </svg>
      <span>{shareText(value)}</span>
    </div>
  )
}

function Decorated({ text, colour }: { readonly text: string; readonly colour: string | undefined }) {
  if (text === '') return <p className="big quiet">–</p>
  return (
    <p className="big">
      {colour !== undefined && <i className="dot" style={{ backgroundColor: colour }} aria-hidden="true" />}
      {text}
    </p>
  )
}

function Numbers({ items, unit }: { readonly items: readonly Item[]; readonly unit: string }) {
  return (
    <dl className="numbers">
      {items.map(({ label, value, description, colour }) => (
        <div key={label} title={description}>
          <dt className="quiet small">
            {colour !== undefined && <i className="dot" style={{ backgroundColor: colour }} aria-hidden="true" />}
            {label}
          </dt>
          <dd>{quantityText(value, unit)}</dd>
        </div>
      ))}
    </dl>
  )
}
