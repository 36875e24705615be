/** The connection points of a component: those that its configuration has, and those that it can have besides. */
import { fieldOf, isList, isObject, type Json, type Path } from './json.ts'
import { isRequired, propertyOf, type Schema } from './schema.ts'

export interface Port {
  readonly component: string
  readonly side: 'input' | 'output'
  /** Way to the name within the component's fields: `['flows', 0, 'input']`. */
  readonly path: Path
  /** Name of the connection; undefined: it is not set. */
  readonly connection: string | undefined
  /** False: the field may be left out. */
  readonly isRequired: boolean
  /** It is of an item that the list has not yet. */
  readonly isNew: boolean
}

/** The ports of a component in the order of its schema, those of each list followed by one more item's. */
export function portsOf(component: string, schema: Schema, fields: Json | undefined): Port[] {
  const ports: Port[] = []
  const walk = (at: Schema, value: Json | undefined, path: Path, demanded: boolean, isNew: boolean): void => {
    const side = at['x-port']
    if (side !== undefined) {
      const connection = typeof value === 'string' ? value : undefined
      ports.push({ component, side, path, connection, isRequired: demanded, isNew })
      return
    }
    if (at.items !== undefined) {
      if (!leadsToPort(at.items)) return
      const items = isList(value) ? value : []
      for (const [i, item] of [...items, undefined].entries()) {
        if (i < (at.maxItems ?? Number.POSITIVE_INFINITY))
          walk(at.items, item, [...path, i], true, isNew || i === items.length)
      }
      return
    }
    for (const [name, property] of Object.entries(at.properties ?? {})) {
      const inner = fieldOf(value, name)
      const isNeeded = isRequired(at, name)
      if (property.properties !== undefined && inner === undefined && !isNeeded) continue
      walk(property, inner, [...path, name], isNeeded, isNew)
    }
  }
  walk(schema, fields, [], true, false)
  return ports
}

const leading = new WeakMap<Schema, boolean>()

function leadsToPort(schema: Schema): boolean {
  const known = leading.get(schema)
  if (known !== undefined) return known
  const { items, properties = {} } = schema
  const leads =
    schema['x-port'] !== undefined ||
    (items !== undefined && leadsToPort(items)) ||
    Object.values(properties).some(leadsToPort)
  leading.set(schema, leads)
  return leads
}

/** A value that has what `schema` demands of connection points, each named by `nameOf`, and nothing else. */
export function skeletonOf(schema: Schema, path: Path, nameOf: (path: Path) => string): Json {
  if (schema['x-port'] !== undefined) return nameOf(path)
  if (schema.items !== undefined)
    return leadsToPort(schema.items) ? [skeletonOf(schema.items, [...path, 0], nameOf)] : []
  const members = Object.entries(schema.properties ?? {}).filter(
    ([name, property]) => isRequired(schema, name) && leadsToPort(property),
  )
  return Object.fromEntries(members.map(([name, property]) => [name, skeletonOf(property, [...path, name], nameOf)]))
}

/** `value` with every connection that it names called as `nameOf` says. */
export function withPortNames(schema: Schema, value: Json, nameOf: (connection: string) => string): Json {
  if (schema['x-port'] !== undefined) return typeof value === 'string' ? nameOf(value) : value
  const { items } = schema
  if (items !== undefined && isList(value)) return value.map((item) => withPortNames(items, item, nameOf))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const property = propertyOf(schema, key)
      return [key, property === undefined ? inner : withPortNames(property, inner, nameOf)]
    }),
  )
}

/** `flows[0].input`: what a port is called where it is shown. */
export function labelOf(path: Path): string {
  return path.map((step, i) => (typeof step === 'number' ? `[${step}]` : i === 0 ? step : `.${step}`)).join('')
}

/** What tells a port from the others of its component. */
export function idOf({ path }: Pick<Port, 'path'>): string {
  return path.join('/')
}
