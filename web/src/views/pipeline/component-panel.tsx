/** All of one component: what it is set to, and its metrics as they are now. */
import type { Metric } from '@penstock/client'
import { useState } from 'react'
import { type Component, fieldOf, isFields } from '../../data/configuration.ts'
import { numberOf } from '../../data/history.ts'
import { useLive } from '../../data/live.ts'
import { runMetricsOf } from '../../data/run-metrics.ts'
import type { Schema } from '../../data/schema.ts'
import { exactText, perSecondText, quantityText } from '../../parts/quantity.ts'
import { FamilySign, familyClass, familyTitle } from './families.tsx'

interface Props {
  readonly nodeId: string
  readonly runId: string
  readonly component: Component
  readonly onClose: () => void
}

export function ComponentPanel({ nodeId, runId, component, onClose }: Props) {
  const { name, key, family, schema, fields } = component
  return (
    <aside className={`card panel ${familyClass(family)}`} aria-label={`Component ${name}`}>
      <header>
        <FamilySign family={family} />
        <div>
          <h2>{name}</h2>
          <p className="quiet small">
            {key}, {familyTitle(family).toLowerCase()}
          </p>
        </div>
        <button type="button" className="button plain icon" aria-label="Close" onClick={onClose}>
          ×
        </button>
      </header>
      <h3>Configuration</h3>
      <dl className="pairs">
        {Object.entries(schema.properties ?? {}).map(([field, of]) => (
          <div key={field}>
            <dt title={of.description}>{field}</dt>
            <dd>{valueText(of, fieldOf(fields, field))}</dd>
          </div>
        ))}
      </dl>
      {runId !== '' && <Metrics nodeId={nodeId} runId={runId} name={name} />}
    </aside>
  )
}

/** A value of the configuration; keys are not shown. */
function valueText(schema: Schema, value: unknown): string {
  if (value === undefined)
    return schema.default === undefined ? 'not set' : `${plain(schema.default, schema)} (default)`
  if (schema['x-secret']) return '•••••• (not shown)'
  return plain(value, schema)
}

function plain(value: unknown, schema: Schema): string {
  if (Array.isArray(value)) {
    return value.map((item) => (schema.items === undefined ? String(item) : valueText(schema.items, item))).join('; ')
  }
  if (isFields(value)) {
    return Object.entries(value)
      .map(([name, child]) => `${name} ${valueText(schema.properties?.[name] ?? {}, child)}`)
      .join(', ')
  }
  return typeof value === 'number' ? exactText(value, schema['x-unit']) : String(value)
}

function Metrics({ nodeId, runId, name }: { readonly nodeId: string; readonly runId: string; readonly name: string }) {
  const { sample, rates } = useLive(runMetricsOf(nodeId, runId)).value
  const [filter, setFilter] = useState('')
  const metrics = sample?.metricCollections.find(({ path }) => path === name)?.metrics
  if (metrics === undefined) return null
  const counters = rates.get(name)?.counters
  const shown = Object.entries(metrics)
    .filter(([metric, { occupancy }]) => metric.includes(filter) && isSomebodys(metrics, occupancy))
    .sort(([, a], [, b]) => Number(a.port !== undefined) - Number(b.port !== undefined))
  return (
    <>
      <h3>Metrics</h3>
      <input
        type="search"
        aria-label="Metrics whose name contains"
        placeholder="Filter"
        value={filter}
        onChange={(event) => setFilter(event.target.value)}
      />
      <dl className="pairs metrics">
        {shown.map(([metric, each]) => (
          <div key={metric} className={isLost(each) ? 'lost' : undefined}>
            <dt title={each.description}>{metric}</dt>
            <dd>
              {metricText(each)}
              {(counters?.get(metric) ?? 0) > 0 && (
                <small className="quiet"> {perSecondText(counters?.get(metric) ?? 0)}/s</small>
              )}
            </dd>
          </div>
        ))}
      </dl>
      {shown.length === 0 && <p className="quiet small">None has such a name.</p>}
    </>
  )
}

/** A whole gauge without a unit is a port, a number that names something, or a count: digits that are left out are missed. */
function metricText(metric: Metric): string {
  const { stringValue, kind, unit, uint64Value, int64Value, doubleValue } = metric
  if (stringValue !== undefined) return stringValue
  const whole = uint64Value ?? int64Value ?? (Number.isInteger(doubleValue) ? doubleValue : undefined)
  if (kind === 'GAUGE' && unit === '' && whole !== undefined) return exactText(whole)
  return quantityText(numberOf(metric), unit)
}

/** Whether a place that is somebody's at times is somebody's now. */
function isSomebodys(metrics: Readonly<Record<string, Metric>>, occupancy: string | undefined): boolean {
  const at = occupancy === undefined ? undefined : metrics[occupancy]
  return at === undefined || numberOf(at) !== 0
}

function isLost(metric: Metric): boolean {
  return (metric.role === 'DROP' || metric.role === 'OVERFLOW') && numberOf(metric) > 0
}
