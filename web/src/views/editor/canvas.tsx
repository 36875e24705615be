/** The drawing of a pipeline: boxes are moved, connected and taken away with mouse or keyboard. */
import {
  Background,
  Controls,
  type Connection as Drawn,
  type Edge,
  type EdgeChange,
  MarkerType,
  type NodeChange,
  ReactFlow,
  useReactFlow,
} from '@xyflow/react'
import '@xyflow/react/dist/style.css'
import './canvas.css'
import { type DragEvent, useCallback, useMemo, useRef, useState } from 'react'
import { useTheme } from '../../app/theme.ts'
import { idOf, type Port } from '../../data/ports.ts'
import { Box, type BoxNode } from './box.tsx'
import { boxId, nameOfBox } from './box-ids.ts'
import type { Editing } from './editing.ts'
import { withConnection, withoutConnection } from './model-connect.ts'
import { withComponent, withCoordinates, withoutComponents } from './model-edits.ts'
import { type Point, portOf } from './model-graph.ts'
import { placesOf } from './model-layout.ts'
import { KIND_TYPE } from './palette.tsx'

interface Props {
  readonly editing: Editing
  /** How many problems a component has, by name. */
  readonly faults: ReadonlyMap<string, readonly unknown[]>
}

interface Size {
  readonly width: number
  readonly height: number
}

/** Where the whole drawing is looked at. */
export const FIT = { padding: 0.08, maxZoom: 1 }

const types = { box: Box }
const handleOf = (port: Port): string => `${port.side} ${idOf(port)}`
const portId = (handle: string | null | undefined): string => (handle ?? '').replace(/^(input|output) /, '')

export function Canvas({ editing, faults }: Props) {
  const { draft, graph, catalogue, selected, select, edit } = editing
  const theme = useTheme()
  const { screenToFlowPosition } = useReactFlow()
  const known = useRef<ReadonlyMap<string, Point>>(new Map())
  const places = useMemo(() => {
    known.current = placesOf(draft.config ?? {}, graph, known.current)
    return known.current
  }, [draft.config, graph])
  /** Where boxes are while they are dragged. */
  const [dragged, setDragged] = useState<ReadonlyMap<string, Point>>(new Map())
  const [sizes, setSizes] = useState<ReadonlyMap<string, Size>>(new Map())
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  /** A drawing that is begun here stays where its boxes are dropped. */
  const [isFitted] = useState(graph.components.length > 0)

  const nodes = useMemo(
    () =>
      graph.components.map((component): BoxNode => {
        const { name, kind } = component
        return {
          ...{ id: boxId(name), type: 'box', selected: selected.has(name) },
          ...(sizes.has(name) ? { measured: sizes.get(name) as Size } : {}),
          position: dragged.get(name) ?? places.get(name) ?? { x: 0, y: 0 },
          data: { component, problems: faults.get(name)?.length ?? 0 },
          ariaLabel: `${name}, ${kind?.key ?? 'unknown component'}`,
        }
      }),
    [graph, places, dragged, sizes, selected, faults],
  )
  const edges = useMemo(
    () =>
      graph.connections.map(({ name, from, to }): Edge => {
        const [source, target] = [boxId(from.component), boxId(to.component)]
        const id = `${source}\n${idOf(from)}\n${target}\n${idOf(to)}`
        const isBack = (places.get(to.component)?.x ?? 0) < (places.get(from.component)?.x ?? 0)
        return {
          ...{ id, source, target, selected: chosen.has(id) },
          // One that goes on in the next row takes the way between the rows.
          ...(isBack ? { type: 'smoothstep' } : {}),
          ...(chosen.has(id) ? { label: name } : {}),
          ...{ sourceHandle: handleOf(from), targetHandle: handleOf(to), markerEnd: { type: MarkerType.ArrowClosed } },
          ariaLabel: `${name}: ${from.component} to ${to.component}`,
        }
      }),
    [graph, places, chosen],
  )

  const onNodesChange = (changes: NodeChange<BoxNode>[]): void => {
    const next = new Set(selected)
    const moving = new Map(dragged)
    const moved = new Map<string, Point>()
    const removed = new Set<string>()
    const measured = new Map(sizes)
    for (const change of changes) {
      if (change.type === 'add' || change.type === 'replace') continue
      const name = nameOfBox(change.id)
      if (change.type === 'select') change.selected ? next.add(name) : next.delete(name)
      if (change.type === 'remove') removed.add(name)
      if (change.type === 'dimensions' && change.dimensions !== undefined) measured.set(name, change.dimensions)
      if (change.type !== 'position') continue
      const at = change.position ?? moving.get(name)
      if (at === undefined) continue
      if (change.dragging === true) moving.set(name, at)
      else {
        moving.delete(name)
        moved.set(name, at)
      }
    }
    for (const name of removed) next.delete(name)
    select(next)
    setDragged(moving)
    if (changes.some(({ type }) => type === 'dimensions')) setSizes(measured)
    const truly = new Map(
      [...moved].filter(([name, { x, y }]) => {
        const before = places.get(name)
        return before === undefined || Math.round(before.x) !== Math.round(x) || Math.round(before.y) !== Math.round(y)
      }),
    )
    if (truly.size > 0) edit((config) => withCoordinates(config, truly))
    if (removed.size > 0) edit((config) => withoutComponents(config, removed))
  }

  const onEdgesChange = (changes: EdgeChange[]): void => {
    const next = new Set(chosen)
    for (const change of changes) {
      if (change.type === 'select') change.selected ? next.add(change.id) : next.delete(change.id)
      if (change.type !== 'remove') continue
      const edge = edges.find(({ id }) => id === change.id)
      const port = edge === undefined ? undefined : portOf(graph, nameOfBox(edge.target), portId(edge.targetHandle))
      if (port !== undefined) edit((config) => withoutConnection(config, catalogue, port))
    }
    setChosen(next)
  }

  const onConnect = ({ source, target, sourceHandle, targetHandle }: Drawn): void => {
    const from = portOf(graph, nameOfBox(source), portId(sourceHandle))
    const to = portOf(graph, nameOfBox(target), portId(targetHandle))
    if (from !== undefined && to !== undefined) edit((config) => withConnection(config, catalogue, from, to))
  }

  const onDrop = useCallback(
    (event: DragEvent) => {
      const key = event.dataTransfer.getData(KIND_TYPE)
      if (key === '' || draft.config === undefined) return
      event.preventDefault()
      const { x, y } = screenToFlowPosition({ x: event.clientX, y: event.clientY })
      const { config, names } = withComponent(draft.config, catalogue, key, { x: x - 90, y: y - 20 })
      edit(() => config)
      select(names)
    },
    [draft.config, catalogue, edit, select, screenToFlowPosition],
  )

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: what is dropped here can be added from the palette by keyboard
    <div className="canvas" onDrop={onDrop} onDragOver={(event) => event.preventDefault()}>
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={types}
        onNodesChange={onNodesChange}
        onEdgesChange={onEdgesChange}
        onConnect={onConnect}
        onBeforeDelete={async ({ nodes, edges }) => ({ nodes, edges: nodes.length > 0 ? [] : edges })}
        colorMode={theme}
        deleteKeyCode={['Delete', 'Backspace']}
        multiSelectionKeyCode={['Shift', 'Control', 'Meta']}
        connectionRadius={28}
        fitView={isFitted}
        fitViewOptions={FIT}
        minZoom={0.2}
        maxZoom={1.6}
        proOptions={{ hideAttribution: true }}
      >
        <Background gap={20} />
        <Controls showInteractive={false} fitViewOptions={FIT} />
      </ReactFlow>
      {nodes.length === 0 && <p className="hint">Drag a component here, or select one in the list.</p>}
    </div>
  )
}
