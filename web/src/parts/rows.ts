/** A drawing in layers from left to right that is longer than there is room for: its layers in rows, one below the other, as lines of text. */

export interface Box {
  readonly name: string
  /** Its upper left corner, in pixels. */
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

interface Room {
  /** Pixels that there are for the drawing. */
  readonly width: number
  readonly height: number
  /** Pixels between rows: connections from one to the next run there. */
  readonly rowGap: number
  /** Zoom below which names in boxes are hard to read. */
  readonly minZoom: number
}

type Points = ReadonlyMap<string, { readonly x: number; readonly y: number }>

/** Upper left corners, by name: the layers, each the boxes with the same `x`, in as few rows as show them at `minZoom`, else in as many as show them largest. */
export function inRows(boxes: readonly Box[], room: Room): Points {
  const starts = [...new Set(boxes.map(({ x }) => x))].sort((a, b) => a - b)
  const layers = starts.map((start) => boxes.filter(({ x }) => x === start))
  let best: { readonly zoom: number; readonly points: Points } = { zoom: 0, points: new Map() }
  for (let columns = layers.length; columns > 0; columns--) {
    const made = rowsOf(layers, columns, room)
    if (made.zoom > best.zoom) best = made
    if (best.zoom >= room.minZoom) break
  }
  return best.points
}

/** The layers in rows of so many, and the zoom at which there is room for them. */
function rowsOf(layers: readonly (readonly Box[])[], columns: number, room: Room) {
  const points = new Map<string, { readonly x: number; readonly y: number }>()
  let [right, bottom] = [0, -room.rowGap]
  for (let from = 0; from < layers.length; from += columns) {
    const row = layers.slice(from, from + columns).flat()
    const left = Math.min(...row.map(({ x }) => x))
    const top = Math.min(...row.map(({ y }) => y))
    const down = bottom + room.rowGap - top
    for (const { name, x, y, width, height } of row) {
      points.set(name, { x: x - left, y: y + down })
      right = Math.max(right, x - left + width)
      bottom = Math.max(bottom, y + down + height)
    }
  }
  return { points, zoom: Math.min(1, room.width / right, room.height / bottom) }
}
