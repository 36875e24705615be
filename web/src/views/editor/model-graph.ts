/** What a configuration looks like as a drawing: its components, and who is connected with whom. */
import { fieldOf, isObject, type Json, type JsonObject } from '../../data/json.ts'
import { idOf, type Port, portsOf } from '../../data/ports.ts'
import type { Catalogue, Kind } from '../../data/schema.ts'

export interface Point {
  readonly x: number
  readonly y: number
}

export interface Component {
  readonly name: string
  /** The member that says what it is, as it was written; undefined: there is none, or more than one. */
  readonly key: string | undefined
  /** Undefined: the catalogue does not have it. */
  readonly kind: Kind | undefined
  readonly fields: Json | undefined
  readonly ports: readonly Port[]
}

interface Connection {
  readonly name: string
  readonly from: Port
  readonly to: Port
}

export interface Graph {
  readonly components: readonly Component[]
  /** Of a name that several write or read, every pair. */
  readonly connections: readonly Connection[]
}

/** Whether there is a map of components, or room for one; else the configuration can be edited as text only. */
export function hasPipeline(config: Json | undefined): config is JsonObject {
  if (!isObject(config)) return false
  const engine = fieldOf(config, 'engine_config')
  if (engine !== undefined && !isObject(engine)) return false
  const pipeline = fieldOf(engine, 'pipeline')
  return pipeline === undefined || isObject(pipeline)
}

/** The components by name, as they are written. */
export function pipelineOf(config: Json | undefined): JsonObject {
  const pipeline = fieldOf(fieldOf(config, 'engine_config'), 'pipeline')
  return isObject(pipeline) ? pipeline : {}
}

export function componentOf(name: string, written: Json | undefined, catalogue: Catalogue): Component {
  const members = isObject(written) ? Object.keys(written).filter((key) => written[key] !== null) : []
  const key = members.length === 1 ? members[0] : undefined
  const kind = key === undefined ? undefined : catalogue.get(key)
  const fields = key === undefined ? undefined : (written as JsonObject)[key]
  return { name, key, kind, fields, ports: kind === undefined ? [] : portsOf(name, kind.schema, fields) }
}

export function graphOf(config: Json | undefined, catalogue: Catalogue): Graph {
  const components = Object.entries(pipelineOf(config)).map(([name, written]) => componentOf(name, written, catalogue))
  const readers = new Map<string, Port[]>()
  const writers: Port[] = []
  for (const port of components.flatMap(({ ports }) => ports)) {
    if (port.connection === undefined) continue
    if (port.side === 'output') writers.push(port)
    else readers.set(port.connection, [...(readers.get(port.connection) ?? []), port])
  }
  const connections = writers.flatMap((from) =>
    (readers.get(from.connection as string) ?? []).map((to) => ({ name: from.connection as string, from, to })),
  )
  return { components, connections }
}

/** The port of `id` of a component; undefined: it has none such. */
export function portOf({ components }: Graph, component: string, id: string): Port | undefined {
  return components.find(({ name }) => name === component)?.ports.find((port) => idOf(port) === id)
}

/** The ports at the other end of the connection of `port`. */
export function othersOf({ connections }: Graph, port: Port): readonly Port[] {
  const [own, other] = port.side === 'output' ? (['from', 'to'] as const) : (['to', 'from'] as const)
  return connections.flatMap((connection) => {
    const { component } = connection[own]
    return component === port.component && idOf(connection[own]) === idOf(port) ? [connection[other]] : []
  })
}

/** Where the components stand that have coordinates. */
export function coordinatesOf(config: Json | undefined): ReadonlyMap<string, Point> {
  const all = fieldOf(fieldOf(config, 'meta'), 'component_display_coordinates')
  const points = Object.entries(isObject(all) ? all : {}).flatMap(([name, point]): [string, Point][] => {
    if (!isObject(point)) return []
    const { x = 0, y = 0 } = point
    return typeof x === 'number' && typeof y === 'number' ? [[name, { x, y }]] : []
  })
  return new Map(points)
}
