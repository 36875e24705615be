/** Where the boxes of a graph are: along the way of packets, or where the configuration wants them. */
import dagre from '@dagrejs/dagre'
import type { Configuration, Point } from '../../data/configuration.ts'
import { inRows } from '../../parts/rows.ts'

/** Pixels. */
export const BOX = { width: 188, height: 92 }
/** Room between boxes along the way, which the figures of a connection stand in, and beside each other. */
const GAP = { right: 104, down: 64, beside: 36 }

/** What a drawing to the right has, on a screen of 1,280 by 800; between rows stand the figures of the connection that goes on in the next. */
const ROOM = { width: 1140, height: 440, rowGap: 76, minZoom: 0.85 }
/** Pixels below which there is no room beside each other. */
export const NARROW = 640

/** Whether packets go to the right, or down where there is little width. */
export type Direction = 'right' | 'down'

/** The upper left corners, by component; to the right they go in rows where there are many. Boxes whose place is not given come below those whose is. */
export function layoutOf(
  { components, connections, places }: Configuration,
  direction: Direction,
): ReadonlyMap<string, Point> {
  const free = components.filter(({ name }) => !places.has(name))
  const points = new Map<string, Point>()
  for (const { name } of components) {
    const place = places.get(name)
    if (place !== undefined) points.set(name, place)
  }
  if (free.length === 0) return points
  const below = points.size === 0 ? 0 : Math.max(...[...points.values()].map(({ y }) => y)) + BOX.height + GAP.beside
  const left = points.size === 0 ? 0 : Math.min(...[...points.values()].map(({ x }) => x))
  const graph = new dagre.graphlib.Graph({ multigraph: true })
  graph.setGraph({ rankdir: direction === 'right' ? 'LR' : 'TB', nodesep: GAP.beside, ranksep: GAP[direction] })
  graph.setDefaultEdgeLabel(() => ({}))
  // dagre keeps nodes in plain objects, where names such as `constructor` are taken: it gets numbers.
  const ids = new Map(free.map(({ name }, i) => [name, String(i)]))
  for (const id of ids.values()) graph.setNode(id, { ...BOX })
  for (const [i, { from, to }] of connections.entries()) {
    const [tail, head] = [ids.get(from.component), ids.get(to.component)]
    if (tail !== undefined && head !== undefined) graph.setEdge(tail, head, {}, String(i))
  }
  dagre.layout(graph)
  const boxes = free.map(({ name }, i) => {
    const { x, y } = graph.node(String(i))
    return { name, x: x - BOX.width / 2, y: y - BOX.height / 2, ...BOX }
  })
  const drawn = direction === 'right' ? inRows(boxes, ROOM) : new Map(boxes.map((box) => [box.name, box]))
  for (const [name, { x, y }] of drawn) points.set(name, { x: left + x, y: below + y })
  return points
}
