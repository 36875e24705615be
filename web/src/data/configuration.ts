/** A pipeline's configuration as views need it: its components, what connects them, where they are drawn. */

import { camelCase, type Json } from './json.ts'
import { portsOf } from './ports.ts'
import type { Schema } from './schema.ts'

export interface ConfigSchema {
  /** By component key. */
  readonly $defs: Readonly<Record<string, Schema>>
}

interface Port {
  /** As metrics call it: `input`, `flows_0_output`. */
  readonly name: string
  readonly side: 'input' | 'output'
  /** Name of the connection. */
  readonly connection: string
}

export interface Component {
  readonly name: string
  readonly key: string
  readonly family: string
  readonly schema: Schema
  /** As they are given, whose keys are in either casing; `memberOf` finds them. */
  readonly fields: Fields
  /** Way to the fields from the top of the configuration, as it is given. */
  readonly path: readonly string[]
  readonly ports: readonly Port[]
}

interface Connection {
  readonly name: string
  readonly from: End
  readonly to: End
}

export interface End {
  readonly component: string
  /** Name of the port, as metrics call it. */
  readonly port: string
}

export interface Point {
  readonly x: number
  readonly y: number
}

export interface Configuration {
  /** In the order of `component_display_order`, else as they are given. */
  readonly components: readonly Component[]
  readonly connections: readonly Connection[]
  /** Where components are drawn, by name; those that it says nothing of are missing. */
  readonly places: ReadonlyMap<string, Point>
}

type Fields = Readonly<Record<string, unknown>>

const UNKNOWN: Schema = {}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null
}

/** The key under which `fields` have `name`, in whichever casing they are written; undefined when they do not. */
export function memberOf(fields: Fields, name: string): string | undefined {
  return [name, camelCase(name)].find((each) => Object.hasOwn(fields, each))
}

/** The value of `name` in whichever casing; undefined when there is none. */
export function fieldOf(fields: unknown, name: string): unknown {
  const member = isFields(fields) ? memberOf(fields, name) : undefined
  return member === undefined ? undefined : (fields as Fields)[member]
}

/** The JSON text of a configuration that a node has taken, read by the schema that the node gives. */
export function readConfiguration(text: string, { $defs }: ConfigSchema): Configuration {
  const top: unknown = JSON.parse(text)
  const engine = isFields(top) ? (memberOf(top, 'engine_config') ?? 'engine_config') : ''
  const pipeline = fieldOf(fieldOf(top, 'engine_config'), 'pipeline')
  const keys = new Map(Object.keys($defs).map((key) => [camelCase(key), key]))
  const components = Object.entries(isFields(pipeline) ? pipeline : {}).map(([name, content]): Component => {
    // Null stands for no member.
    const members = Object.entries(isFields(content) ? content : {}).filter(([, member]) => member !== null)
    const [given = '', fields = {}] = members[0] ?? []
    const key = keys.get(camelCase(given)) ?? given
    const schema = $defs[key] ?? UNKNOWN
    const family = schema['x-family'] ?? ''
    const path = [engine, 'pipeline', name, given]
    const ports = connectedPorts(name, schema, fields as Json)
    return { name, key, family, schema, fields: isFields(fields) ? fields : {}, path, ports }
  })
  const meta = fieldOf(top, 'meta')
  return {
    components: ordered(components, fieldOf(meta, 'component_display_order')),
    connections: connectionsOf(components),
    places: placesOf(fieldOf(meta, 'component_display_coordinates')),
  }
}

/** The ports that are connected, in the order of the schema. */
function connectedPorts(component: string, schema: Schema, fields: Json): readonly Port[] {
  return portsOf(component, schema, fields).flatMap(({ side, path, connection }) =>
    connection === undefined ? [] : [{ name: path.join('_'), side, connection }],
  )
}

function connectionsOf(components: readonly Component[]): readonly Connection[] {
  const readers = new Map<string, End>()
  for (const { name, ports } of components) {
    for (const port of ports)
      if (port.side === 'input') readers.set(port.connection, { component: name, port: port.name })
  }
  return components.flatMap(({ name: component, ports }) =>
    ports.flatMap(({ name: port, side, connection: name }) => {
      const to = side === 'output' ? readers.get(name) : undefined
      return to === undefined ? [] : [{ name, from: { component, port }, to }]
    }),
  )
}

function ordered(components: readonly Component[], order: unknown): readonly Component[] {
  const place = ({ name }: Component): number => {
    const at = isFields(order) ? order[name] : undefined
    return typeof at === 'number' ? at : Number.MAX_SAFE_INTEGER
  }
  return components.toSorted((a, b) => place(a) - place(b))
}

function placesOf(coordinates: unknown): ReadonlyMap<string, Point> {
  const places = new Map<string, Point>()
  for (const [name, place] of Object.entries(isFields(coordinates) ? coordinates : {})) {
    const { x = 0, y = 0 } = isFields(place) ? place : {}
    if (typeof x === 'number' && typeof y === 'number') places.set(name, { x, y })
  }
  return places
}
