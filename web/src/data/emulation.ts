/** The emulated links of a pipeline: components of the family emulation that follow each other, with what of them can be set while a run is on. */
import { type Component, type Configuration, fieldOf, isFields, memberOf } from './configuration.ts'
import { pointerOf } from './places.ts'
import type { Schema } from './schema.ts'

/** A number or a truth that a run takes over. */
export interface LiveField {
  /** JSON pointer of its place in the configuration. */
  readonly pointer: string
  /** Its name in the component's schema; within a list, the steps to it: `phases`, `0`, `delay`. */
  readonly steps: readonly string[]
  readonly schema: Schema
  /** Undefined: it is not given, and has no default. */
  readonly value: number | boolean | undefined
}

export interface Emulation {
  readonly component: Component
  readonly live: readonly LiveField[]
  /** Names of fields whose change needs another run, connections left out. */
  readonly fixed: readonly string[]
}

/** Emulation components that are joined, upstream first. */
export interface Link {
  readonly emulations: readonly Emulation[]
  /** Ports by which packets come into the link, and leave it. */
  readonly inputs: readonly LinkPort[]
  readonly outputs: readonly LinkPort[]
}

export interface LinkPort {
  readonly component: string
  readonly port: string
}

/** The links, each once, in the order of their first components. */
export function linksOf({ components, connections }: Configuration): readonly Link[] {
  const emulated = new Map(components.filter(({ family }) => family === 'emulation').map((each) => [each.name, each]))
  const inside = connections.filter(({ from, to }) => emulated.has(from.component) && emulated.has(to.component))
  const names = new Set(inside.map(({ name }) => name))
  const links: Link[] = []
  const seen = new Set<string>()
  for (const first of emulated.keys()) {
    if (seen.has(first)) continue
    const members = reachable(first, inside)
    for (const member of members) seen.add(member)
    const sorted = upstreamFirst(members, inside)
    const ends = (side: 'input' | 'output'): LinkPort[] =>
      sorted.flatMap((component) =>
        (emulated.get(component)?.ports ?? [])
          .filter((port) => port.side === side && !names.has(port.connection))
          .map((port) => ({ component, port: port.name })),
      )
    links.push({
      emulations: sorted.map((name) => emulationOf(emulated.get(name) as Component)),
      inputs: ends('input'),
      outputs: ends('output'),
    })
  }
  return links
}

type Joined = Configuration['connections']

function reachable(first: string, inside: Joined): Set<string> {
  const found = new Set([first])
  for (const name of found) {
    for (const { from, to } of inside) {
      if (from.component === name) found.add(to.component)
      if (to.component === name) found.add(from.component)
    }
  }
  return found
}

/** Each after all that lead to it; what goes in a circle comes last. */
function upstreamFirst(members: ReadonlySet<string>, inside: Joined): string[] {
  const left = new Set(members)
  const sorted: string[] = []
  while (left.size > 0) {
    const free = [...left].filter(
      (name) => !inside.some(({ from, to }) => to.component === name && left.has(from.component)),
    )
    const next = free.length > 0 ? free : [...left]
    for (const name of next) left.delete(name)
    sorted.push(...next)
  }
  return sorted
}

function emulationOf(component: Component): Emulation {
  const live: LiveField[] = []
  const fixed: string[] = []
  for (const [name, schema] of Object.entries(component.schema.properties ?? {})) {
    if (schema['x-live']) live.push(...fieldsIn(component, schema, component.fields, [name]))
    else if (!hasPort(schema)) fixed.push(name)
  }
  return { component, live, fixed }
}

function hasPort(schema: Schema): boolean {
  const below = [...Object.values(schema.properties ?? {}), ...(schema.items === undefined ? [] : [schema.items])]
  return schema['x-port'] !== undefined || below.some(hasPort)
}

/** The numbers and truths at and below the last of `steps`, which `holder` has. */
function fieldsIn(
  component: Component,
  schema: Schema,
  holder: unknown,
  steps: readonly string[],
): readonly LiveField[] {
  const value = fieldOf(holder, steps.at(-1) as string)
  if (schema.items !== undefined) {
    const { items } = schema
    return Array.isArray(value) ? value.flatMap((_, i) => fieldsIn(component, items, value, [...steps, String(i)])) : []
  }
  if (schema.properties !== undefined) {
    return Object.entries(schema.properties).flatMap(([name, child]) =>
      fieldsIn(component, child, value, [...steps, name]),
    )
  }
  const type = schema.type ?? schema.anyOf?.find((each) => each.type !== undefined)?.type
  if (type !== 'number' && type !== 'integer' && type !== 'boolean') return []
  const given = value ?? schema.default
  const pointer = pointerOf([...component.path, ...givenSteps(component.fields, steps)])
  const isValue = typeof given === 'number' || typeof given === 'boolean'
  return [{ pointer, steps, schema, value: isValue ? given : undefined }]
}

/** The steps as the configuration has them, in its casing. */
function givenSteps(fields: unknown, steps: readonly string[]): string[] {
  let holder = fields
  return steps.map((step) => {
    const member = isFields(holder) ? (memberOf(holder, step) ?? step) : step
    holder = fieldOf(holder, step)
    return member
  })
}
