/** The graph of a pipeline: boxes for components, lines for connections, with what passes them now. */
import {
  Background,
  Controls,
  type Edge,
  MiniMap,
  type Node,
  ReactFlow,
  type ReactFlowInstance,
  useNodesState,
} from '@xyflow/react'
import { useEffect, useMemo, useRef, useState } from 'react'
import '@xyflow/react/dist/base.css'
import { useTheme } from '../../app/theme.ts'
import type { Configuration } from '../../data/configuration.ts'
import { ComponentBox } from './component-box.tsx'
import { ConnectionLine } from './connection-line.tsx'
import { familyTitle } from './families.tsx'
import { BOX, type Direction, layoutOf, NARROW } from './layout.ts'

export interface GraphProps {
  readonly nodeId: string
  /** Empty: there was none. */
  readonly runId: string
  readonly configuration: Configuration
  readonly selected: string | undefined
  readonly onSelect: (component: string | undefined) => void
}

const NODES = { component: ComponentBox }
const EDGES = { connection: ConnectionLine }
/** Components from which on a map of the whole helps. */
const MAP_FROM = 12
const FIT = { padding: 0.08, minZoom: 0.5, maxZoom: 1 }

export function Graph({ nodeId, runId, configuration, selected, onSelect }: GraphProps) {
  const theme = useTheme()
  const flow = useRef<ReactFlowInstance>(null)
  const host = useRef<HTMLElement>(null)
  const [direction, setDirection] = useState<Direction>(innerWidth < NARROW ? 'down' : 'right')
  const drawn = useMemo(
    () => drawing(nodeId, runId, configuration, direction),
    [nodeId, runId, configuration, direction],
  )
  const [nodes, setNodes, onNodesChange] = useNodesState<Node>(drawn.nodes)
  useEffect(() => setNodes(drawn.nodes), [drawn, setNodes])
  useEffect(() => {
    setNodes((all) => all.map((each) => ({ ...each, selected: each.id === selected })))
  }, [selected, setNodes])
  // What is selected, else the whole, stays in view when the room for it changes.
  useEffect(() => {
    if (host.current === null) return
    const observer = new ResizeObserver(([entry]) => {
      setDirection((entry?.contentRect.width ?? NARROW) < NARROW ? 'down' : 'right')
      void flow.current?.fitView(selected === undefined ? FIT : { ...FIT, minZoom: 0.75, nodes: [{ id: selected }] })
    })
    observer.observe(host.current)
    return () => observer.disconnect()
  }, [selected])
  return (
    <section className="graph" aria-label="Graph" ref={host}>
      <ReactFlow
        // Another direction is another drawing, which is fitted anew.
        key={direction}
        nodes={nodes}
        edges={drawn.edges}
        nodeTypes={NODES}
        edgeTypes={EDGES}
        onNodesChange={(changes) => {
          onNodesChange(changes)
          // The keyboard selects too. What is selected is told by each change, not by all that is: that is behind while clicks follow each other fast.
          const chosen = changes.find((change) => change.type === 'select' && change.selected)
          if (chosen?.type === 'select') onSelect(chosen.id)
        }}
        onInit={(instance) => {
          flow.current = instance as unknown as ReactFlowInstance
        }}
        onNodeClick={(_, { id }) => onSelect(id)}
        onPaneClick={() => onSelect(undefined)}
        colorMode={theme}
        fitView
        fitViewOptions={FIT}
        minZoom={0.1}
        maxZoom={2}
        nodesConnectable={false}
        nodesDraggable={false}
        edgesFocusable={false}
        deleteKeyCode={null}
        multiSelectionKeyCode={null}
        proOptions={{ hideAttribution: true }}
      >
        <Background gap={24} />
        <Controls showInteractive={false} />
        {configuration.components.length >= MAP_FROM && <MiniMap pannable zoomable />}
      </ReactFlow>
    </section>
  )
}

function drawing(
  nodeId: string,
  runId: string,
  configuration: Configuration,
  direction: Direction,
): { nodes: Node[]; edges: Edge[] } {
  const points = layoutOf(configuration, direction)
  const nodes = configuration.components.map((component): Node => {
    const { name, key, family } = component
    return {
      ...{ id: name, type: 'component', position: points.get(name) ?? { x: 0, y: 0 }, ...BOX },
      data: { nodeId, runId, component, direction },
      ariaLabel: `${name}: ${key}, ${familyTitle(family)}`,
    }
  })
  const edges = configuration.connections.map(({ name, from, to }): Edge => {
    return {
      ...{ id: name, type: 'connection', source: from.component, target: to.component },
      ...{ sourceHandle: from.port, targetHandle: to.port, data: { nodeId, runId, from } },
    }
  })
  return { nodes, edges }
}
