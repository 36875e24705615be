/** A component on the canvas: its name and kind, its connection points, whether something is wrong with it. */
import { Handle, type Node, type NodeProps, Position } from '@xyflow/react'
import { idOf, labelOf, type Port } from '../../data/ports.ts'
import { countText } from '../../parts/format.ts'
import type { Component } from './model-graph.ts'

interface BoxData extends Record<string, unknown> {
  readonly component: Component
  readonly problems: number
}

export type BoxNode = Node<BoxData, 'box'>

export function Box({ data: { component, problems }, selected }: NodeProps<BoxNode>) {
  const { name, key, kind, ports } = component
  const side = (wanted: Port['side']): readonly Port[] => ports.filter((port) => port.side === wanted)
  return (
    <div className={`part family-${kind?.family ?? 'unknown'} ${selected ? 'selected' : ''}`}>
      <header>
        <strong title={name}>{name}</strong>
        {problems > 0 && (
          <span className="faulty" title={countText(problems, 'problem')}>
            ! {problems}
          </span>
        )}
        <small>{key ?? 'no component'}</small>
      </header>
      <div className="ports">
        <ul>
          {side('input').map((port) => (
            <PortRow key={idOf(port)} port={port} />
          ))}
        </ul>
        <ul className="outputs">
          {side('output').map((port) => (
            <PortRow key={idOf(port)} port={port} />
          ))}
        </ul>
      </div>
    </div>
  )
}

function PortRow({ port }: { readonly port: Port }) {
  const { side, path, isNew, connection } = port
  const isInput = side === 'input'
  return (
    <li className={isNew ? 'new' : undefined} title={connection ?? (isNew ? 'one more' : 'not connected')}>
      <Handle
        type={isInput ? 'target' : 'source'}
        position={isInput ? Position.Left : Position.Right}
        id={`${side} ${idOf(port)}`}
      />
      {isNew ? '+' : labelOf(path)}
    </li>
  )
}
