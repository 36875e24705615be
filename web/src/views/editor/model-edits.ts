/** Changes of a configuration's components: each makes a new configuration and leaves everything else in it as it was. */

import {
  isObject,
  type Json,
  type JsonObject,
  type Path,
  valueAt,
  withMember,
  withRenamed,
  withValueAt,
} from '../../data/json.ts'
import { skeletonOf, withPortNames } from '../../data/ports.ts'
import type { Catalogue } from '../../data/schema.ts'
import { type Component, componentOf, coordinatesOf, graphOf, type Point, pipelineOf } from './model-graph.ts'
import { withReferences } from './model-references.ts'

const PIPELINE: Path = ['engine_config', 'pipeline']
const COORDINATES: Path = ['meta', 'component_display_coordinates']
const BY_NAME: readonly Path[] = [COORDINATES, ['meta', 'component_display_order']]
/** Pixels that a copy stands beside what it was made of. */
const COPY_OFFSET = 40

function withPipeline(config: JsonObject, pipeline: JsonObject): JsonObject {
  return withValueAt(config, PIPELINE, pipeline) as JsonObject
}

/** `config` with one field of a component set; undefined takes it away. */
function withField(config: JsonObject, component: Component, path: Path, value: Json | undefined): JsonObject {
  const { name, key } = component
  if (key === undefined) return config
  const pipeline = pipelineOf(config)
  const fields = withValueAt(component.fields ?? undefined, path, value) ?? {}
  return withPipeline(config, withMember(pipeline, name, { ...(pipeline[name] as JsonObject), [key]: fields }))
}

/** The same by the component's name; what there is not stays so. */
export function withFieldOf(
  config: JsonObject,
  catalogue: Catalogue,
  name: string,
  path: Path,
  value: Json | undefined,
) {
  return withField(config, componentOf(name, pipelineOf(config)[name], catalogue), path, value)
}

/** A name like `wanted` that is none of `taken`. */
function freeName(wanted: string, taken: { has(name: string): boolean }): string {
  if (!taken.has(wanted)) return wanted
  for (let i = 2; ; i++) if (!taken.has(`${wanted}_${i}`)) return `${wanted}_${i}`
}

/** Names of all connections. */
export function connectionNames(config: JsonObject, catalogue: Catalogue): Set<string> {
  const ports = graphOf(config, catalogue).components.flatMap((component) => component.ports)
  return new Set(ports.flatMap(({ connection }) => connection ?? []))
}

/** What a connection at `path` of a component is called until a better name is given. */
export function portName(component: string, path: Path, taken: Set<string>): string {
  const own = path.filter((step, i) => step !== 'name' || i === 0).join('.')
  const name = freeName(`${component.slice(0, 200)}.${own}`, taken)
  taken.add(name)
  return name
}

export interface Added {
  readonly config: JsonObject
  readonly names: readonly string[]
}

/** Adds a component of a kind, with a name of its own and a name for every connection point that it must have. */
export function withComponent(config: JsonObject, catalogue: Catalogue, key: string, at?: Point): Added {
  const kind = catalogue.get(key)
  if (kind === undefined) throw new TypeError(`there is no component ${key}`)
  const pipeline = pipelineOf(config)
  const name = freeName(kind.key, new Map(Object.entries(pipeline)))
  const taken = connectionNames(config, catalogue)
  const fields = skeletonOf(kind.schema, [], (path) => portName(name, path, taken))
  const grown = withPipeline(config, withMember(pipeline, name, { [kind.key]: fields }))
  return { config: at === undefined ? grown : withCoordinates(grown, new Map([[name, at]])), names: [name] }
}

/** Takes components away, and where they stood. What they were connected with keeps its names. */
export function withoutComponents(config: JsonObject, names: ReadonlySet<string>): JsonObject {
  const pipeline = Object.entries(pipelineOf(config)).filter(([name]) => !names.has(name))
  let changed = withPipeline(config, Object.fromEntries(pipeline))
  for (const path of BY_NAME) {
    const map = valueAt(changed, path)
    if (!isObject(map) || !Object.keys(map).some((name) => names.has(name))) continue
    const left = Object.entries(map).filter(([name]) => !names.has(name))
    changed = withValueAt(changed, path, Object.fromEntries(left)) as JsonObject
  }
  return changed
}

/**
 * Gives a component another name: in its place, with its connections, and wherever the configuration speaks of it (coordinates, order,
 * variables, KPIs, log filters). Throws RangeError when another one is called so, or the name is empty.
 */
export function withComponentName(config: JsonObject, from: string, to: string): JsonObject {
  const pipeline = pipelineOf(config)
  if (from === to || !Object.hasOwn(pipeline, from)) return config
  if (to === '') throw new RangeError('a component needs a name')
  if (Object.hasOwn(pipeline, to)) throw new RangeError(`another component is called ${to}`)
  let changed = withPipeline(config, withRenamed(pipeline, from, to))
  for (const path of BY_NAME) {
    const map = valueAt(changed, path)
    if (isObject(map) && Object.hasOwn(map, from))
      changed = withValueAt(changed, path, withRenamed(map, from, to)) as JsonObject
  }
  return withReferences(changed, from, to)
}

/** Gives a connection another name at all its ends. Throws RangeError when another one is called so, or the name is empty. */
export function withConnectionName(config: JsonObject, catalogue: Catalogue, from: string, to: string): JsonObject {
  if (from === to) return config
  if (to === '') throw new RangeError('a connection needs a name')
  if (connectionNames(config, catalogue).has(to)) throw new RangeError(`another connection is called ${to}`)
  const renamed = (connection: string): string => (connection === from ? to : connection)
  const entries = Object.entries(pipelineOf(config)).map(([name, written]): [string, Json] => {
    const { key, kind, fields } = componentOf(name, written, catalogue)
    if (key === undefined || kind === undefined || fields === undefined) return [name, written]
    return [name, { [key]: withPortNames(kind.schema, fields, renamed) }]
  })
  return withPipeline(config, Object.fromEntries(entries))
}

/** Copies components with their fields. Connections among them are made anew among the copies; ends that lead elsewhere are left open. */
export function withCopies(config: JsonObject, catalogue: Catalogue, names: readonly string[]): Added {
  const taken = connectionNames(config, catalogue)
  const fresh = new Map<string, string>()
  const renamed = (connection: string): string => {
    const name = fresh.get(connection) ?? freeName(connection, taken)
    taken.add(name)
    fresh.set(connection, name)
    return name
  }
  let pipeline = pipelineOf(config)
  const points = coordinatesOf(config)
  const placed = new Map<string, Point>()
  const copies: string[] = []
  for (const name of names) {
    const { key, kind, fields } = componentOf(name, pipeline[name], catalogue)
    const written = pipeline[name]
    if (written === undefined) continue
    const copy = freeName(name.replace(/_\d+$/, ''), new Map(Object.entries(pipeline)))
    const value =
      key === undefined || kind === undefined ? written : { [key]: withPortNames(kind.schema, fields ?? {}, renamed) }
    pipeline = withMember(pipeline, copy, value)
    const at = points.get(name)
    if (at !== undefined) placed.set(copy, { x: at.x + COPY_OFFSET, y: at.y + COPY_OFFSET })
    copies.push(copy)
  }
  return { config: withCoordinates(withPipeline(config, pipeline), placed), names: copies }
}

/** Puts components where `points` says, in whole pixels; the others keep their places. */
export function withCoordinates(config: JsonObject, points: ReadonlyMap<string, Point>): JsonObject {
  if (points.size === 0) return config
  const all = valueAt(config, COORDINATES)
  let map: JsonObject = isObject(all) ? all : {}
  for (const [name, { x, y }] of points) {
    const before = map[name]
    const own = Object.hasOwn(map, name) && isObject(before) ? before : {}
    map = withMember(map, name, { ...own, x: Math.round(x), y: Math.round(y) })
  }
  return withValueAt(config, COORDINATES, map) as JsonObject
}
