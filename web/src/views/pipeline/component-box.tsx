/** A component in the graph: what it is, what it does now, and what it drops. */
import { Handle, type NodeProps, Position } from '@xyflow/react'
import type { Component } from '../../data/configuration.ts'
import { useLive } from '../../data/live.ts'
import { runMetricsOf } from '../../data/run-metrics.ts'
import { numberText } from '../../parts/quantity.ts'
import { chiefFigures } from './chief-figures.ts'
import { FamilySign, familyClass, familyTitle } from './families.tsx'
import type { Direction } from './layout.ts'

interface Data {
  readonly nodeId: string
  readonly runId: string
  readonly component: Component
  readonly direction: Direction
}

const SIDES = {
  right: { input: Position.Left, output: Position.Right, along: 'top' },
  down: { input: Position.Top, output: Position.Bottom, along: 'left' },
} as const

export function ComponentBox({ data, selected }: NodeProps) {
  const { nodeId, runId, component, direction } = data as unknown as Data
  const { name, key, family, ports } = component
  const sides = SIDES[direction]
  return (
    <div className={`box ${familyClass(family)}${selected ? ' selected' : ''}`}>
      {(['input', 'output'] as const).map((side) => {
        const all = ports.filter((port) => port.side === side)
        return all.map((port, i) => (
          <Handle
            key={port.name}
            id={port.name}
            type={side === 'input' ? 'target' : 'source'}
            position={sides[side]}
            style={{ [sides.along]: `${(100 * (i + 1)) / (all.length + 1)}%` }}
            isConnectable={false}
          />
        ))
      })}
      <div className="what">
        <FamilySign family={family} />
        <strong title={name}>{name}</strong>
      </div>
      <div className="key" title={familyTitle(family)}>
        {key}
      </div>
      {runId !== '' && <Figures nodeId={nodeId} runId={runId} name={name} />}
    </div>
  )
}

function Figures({ nodeId, runId, name }: { readonly nodeId: string; readonly runId: string; readonly name: string }) {
  const { sample, rates } = useLive(runMetricsOf(nodeId, runId)).value
  const metrics = sample?.metricCollections.find(({ path }) => path === name)?.metrics
  const own = rates.get(name)
  if (metrics === undefined || own === undefined) return null
  return (
    <div className="figures">
      {chiefFigures(metrics, own).map(({ label, value }) => (
        <span key={label}>
          {label} <b>{value}</b>
        </span>
      ))}
      {own.dropped > 0 && (
        <span className={own.dropping > 0 ? 'drops now' : 'drops'} title="Packets dropped in this run">
          {numberText(own.dropped)} dropped
        </span>
      )}
    </div>
  )
}
