/** Where boxes stand that nobody has placed: in layers from left to right (Sugiyama, Tagawa and Toda 1981), by dagre; long drawings in rows. */
import { Graph as Drawing, layout } from '@dagrejs/dagre'
import type { JsonObject } from '../../data/json.ts'
import { inRows } from '../../parts/rows.ts'
import { coordinatesOf, type Graph, type Point } from './model-graph.ts'

const BOX_WIDTH = 210
const HEAD = 46
const ROW = 22
/** Pixels between layers, and between boxes of a layer. */
const GAP = { layers: 72, boxes: 32 }
/** What a canvas has for a drawing, on a screen of 1,280 by 800. */
const ROOM = { width: 600, height: 560, rowGap: 64, minZoom: 0.7 }

/** Height of a box in pixels: inputs and outputs stand side by side. */
function heightOf(inputs: number, outputs: number): number {
  return HEAD + Math.max(1, inputs, outputs) * ROW + 10
}

/** The upper left corner of every component's box, in pixels. */
export function laidOut({ components, connections }: Graph): ReadonlyMap<string, Point> {
  const drawing = new Drawing({ multigraph: true })
  drawing.setGraph({ rankdir: 'LR', nodesep: GAP.boxes, ranksep: GAP.layers, marginx: 0, marginy: 0 })
  drawing.setDefaultEdgeLabel(() => ({}))
  for (const { name, ports } of components) {
    const inputs = ports.filter(({ side }) => side === 'input').length
    drawing.setNode(name, { width: BOX_WIDTH, height: heightOf(inputs, ports.length - inputs) })
  }
  for (const [i, { from, to }] of connections.entries()) drawing.setEdge(from.component, to.component, {}, String(i))
  layout(drawing)
  const boxes = components.map(({ name }) => {
    const { x = 0, y = 0, width = 0, height = 0 } = drawing.node(name)
    return { name, x: x - width / 2, y: y - height / 2, width, height }
  })
  return inRows(boxes, ROOM)
}

/**
 * Where every component stands: where the configuration says, else where it stood before (`known`), else where the layout puts it. A
 * component without a place has the same one for as long as it is known.
 */
export function placesOf(config: JsonObject, graph: Graph, known: ReadonlyMap<string, Point>): Map<string, Point> {
  const own = coordinatesOf(config)
  const isNew = graph.components.some(({ name }) => !own.has(name) && !known.has(name))
  const made = isNew ? laidOut(graph) : new Map<string, Point>()
  return new Map(
    graph.components.map(({ name }) => [name, own.get(name) ?? known.get(name) ?? made.get(name) ?? { x: 0, y: 0 }]),
  )
}
