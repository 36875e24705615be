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
  // dagre keeps nodes in plain objects, where names such as `constructor` are taken: it gets numbers.
  const ids = new Map(components.map(({ name }, i) => [name, String(i)]))
  for (const [i, { ports }] of components.entries()) {
    const inputs = ports.filter(({ side }) => side === 'input').length
    drawing.setNode(String(i), { width: BOX_WIDTH, height: heightOf(inputs, ports.length - inputs) })
  }
  for (const [i, { from, to }] of connections.entries()) {
    const [tail, head] = [ids.get(from.component), ids.get(to.component)]
    if (tail !== undefined && head !== undefined) drawing.setEdge(tail, head, {}, String(i))
  }
  layout(drawing)
  const boxes = components.map(({ name }, i) => {
    const { x = 0, y = 0, width = 0, height = 0 } = drawing.node(String(i))
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
