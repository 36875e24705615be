/** Connection points: finds them in a configuration and checks that they form a graph. */
import type { TSchema } from '@sinclair/typebox'
import { type Problem, pointerOf } from '../../text/pointer.ts'
import type { AnyComponent, Registry } from './component.ts'
import type { ComponentConfig } from './config.ts'
import { MAX_FOUND } from './problems.ts'
import type { SchemaNode } from './schema.ts'

export interface Port {
  component: string
  kind: 'input' | 'output'
  /** The connection's name. */
  name: string
  /** Way to the value within the component's configuration: ['flows', 0, 'input']. */
  steps: (string | number)[]
}

/** The part of a schema that leads to ports: a port, the properties that do, or the items. */
type PortTree = Port['kind'] | readonly (readonly [key: string, tree: PortTree])[] | { items: PortTree }

/** Of each schema that was asked for: every run of a component asks for the same. */
const portTrees = new WeakMap<TSchema, PortTree | null>()

function portTreeOf(schema: TSchema): PortTree | null {
  const known = portTrees.get(schema)
  if (known !== undefined) return known
  const { port, properties, items } = schema as SchemaNode
  let tree: PortTree | null = port ?? null
  if (tree === null && properties) {
    const leading = Object.entries(properties).flatMap(([key, child]) => {
      const below = portTreeOf(child)
      return below === null ? [] : [[key, below] as const]
    })
    if (leading.length > 0) tree = leading
  } else if (tree === null && items) {
    const below = portTreeOf(items)
    if (below !== null) tree = { items: below }
  }
  portTrees.set(schema, tree)
  return tree
}

/** The ports of one component, in the order of its schema. */
export function portsOf(component: string, schema: TSchema, config: unknown): Port[] {
  const ports: Port[] = []
  const walk = (tree: PortTree, value: unknown, steps: Port['steps']): void => {
    if (value === undefined) return
    if (typeof tree === 'string') {
      if (typeof value === 'string') ports.push({ component, kind: tree, name: value, steps })
    } else if (!('items' in tree)) {
      for (const [key, below] of tree) walk(below, (value as Record<string, unknown>)[key], [...steps, key])
    } else if (Array.isArray(value)) {
      value.forEach((item, i) => {
        walk(tree.items, item, [...steps, i])
      })
    }
  }
  const tree = portTreeOf(schema)
  if (tree !== null) walk(tree, config, [])
  return ports
}

/** `input`, `flows_0_input`: the port's name in metrics. */
export function portName(port: Port): string {
  return port.steps.join('_')
}

/** Pointer of a port in the whole configuration. */
function portPointer(port: Port, key: string): string {
  return pointerOf(['engine_config', 'pipeline', port.component, key, ...port.steps])
}

/** Both ends of a connection. */
export interface Connection {
  name: string
  from: Port
  to: Port
}

/** The outputs among the ports of a component, and those of each flow. */
interface WaysOut {
  all: Port[]
  byFlow: Map<string, Port[]>
}

/** Of each list that was asked for: every one of its inputs asks, of which there may be thousands. */
const waysOut = new WeakMap<readonly Port[], WaysOut>()

const flowOf = (port: Port): string => port.steps.slice(0, -1).join('/')

function waysOutOf(ports: readonly Port[]): WaysOut {
  const known = waysOut.get(ports)
  if (known) return known
  const all = ports.filter((port) => port.kind === 'output')
  const byFlow = new Map<string, Port[]>()
  for (const port of all) {
    const flow = flowOf(port)
    const others = byFlow.get(flow)
    if (others) others.push(port)
    else byFlow.set(flow, [port])
  }
  const made = { all, byFlow }
  waysOut.set(ports, made)
  return made
}

/**
 * The outputs, of those of its component, by which what comes in at `input` can leave at once: those of its own flow
 * (`flows[i].input` leads to `flows[i].output` only), or of the flow that `crosses` names for it, where it has one, else all.
 * `ports` must not change any more.
 */
export function outputsFrom(
  input: Port,
  ports: readonly Port[],
  crosses: AnyComponent['crosses'] = {},
): readonly Port[] {
  const { all, byFlow } = waysOutOf(ports)
  if (input.steps.length < 2) return all
  const flow = flowOf(input)
  return byFlow.get(crosses[flow] ?? flow) ?? all
}

/** For each connection those that its packets go on by, at once, from the component it leads to. */
export type Onward = ReadonlyMap<Connection, readonly Connection[]>

function onwardOf(
  components: Record<string, ComponentConfig>,
  registry: Registry,
  connections: readonly Connection[],
): Onward {
  const ports = new Map<string, Port[]>()
  const byName = new Map<string, Connection>()
  for (const connection of connections) {
    byName.set(connection.name, connection)
    const { from } = connection
    const outputs = ports.get(from.component)
    if (outputs) outputs.push(from)
    else ports.set(from.component, [from])
  }
  const onward = new Map<Connection, Connection[]>()
  for (const connection of connections) {
    const { component } = connection.to
    const { decoupled, crosses } = registry.get(components[component].key) as AnyComponent
    const outputs = decoupled ? [] : outputsFrom(connection.to, ports.get(component) ?? [], crosses)
    onward.set(
      connection,
      outputs.map(({ name }) => byName.get(name) as Connection),
    )
  }
  return onward
}

/** Circles that are told of one configuration: there may be as many as connections, each with all of them in it. */
const MAX_CIRCLES = 100

/**
 * The connections, each before those that it leads to; and the circles there are, `MAX_CIRCLES` at most, each as the connections in it. With
 * circles the order means nothing.
 */
export function inOrder(onward: Onward): { order: Connection[]; circles: Connection[][] } {
  const done: Connection[] = []
  const circles: Connection[][] = []
  const state = new Map<Connection, 'open' | 'done'>()
  for (const start of onward.keys()) {
    if (state.has(start)) continue
    // By hand, not by recursion: a chain of flows may be longer than the stack is deep.
    const path = [{ at: start, next: 0 }]
    state.set(start, 'open')
    while (path.length > 0) {
      const top = path[path.length - 1]
      const following = (onward.get(top.at) as readonly Connection[])[top.next++]
      if (!following) {
        state.set(top.at, 'done')
        done.push(top.at)
        path.pop()
      } else if (!state.has(following)) {
        state.set(following, 'open')
        path.push({ at: following, next: 0 })
      } else if (state.get(following) === 'open' && circles.length < MAX_CIRCLES) {
        const members = path.map(({ at }) => at)
        circles.push(members.slice(members.indexOf(following)))
      }
    }
  }
  return { order: done.reverse(), circles }
}

/** How the components of a configuration hang together, and what is wrong with that. */
export interface Wiring {
  /** By component, in the order of its schema. */
  ports: ReadonlyMap<string, readonly Port[]>
  connections: readonly Connection[]
  onward: Onward
  problems: Problem[]
}

/**
 * Joins outputs and inputs of the same name. Each name needs exactly one writer and one reader, and no loop may lead
 * back to an input without leaving the node in between.
 */
export function connect(components: Record<string, ComponentConfig>, registry: Registry): Wiring {
  const problems: Problem[] = []
  const portsByComponent = new Map<string, Port[]>()
  const writers = new Map<string, Port[]>()
  const readers = new Map<string, Port[]>()
  for (const [component, { key, config }] of Object.entries(components)) {
    const definition = registry.get(key)
    if (!definition) continue
    const ports = portsOf(component, definition.config, config)
    portsByComponent.set(component, ports)
    for (const port of ports) {
      const side = port.kind === 'output' ? writers : readers
      const others = side.get(port.name)
      if (others) others.push(port)
      else side.set(port.name, [port])
    }
  }
  const pointer = (port: Port): string => portPointer(port, components[port.component].key)
  const who = (port: Port): string => `"${port.component}" (${components[port.component].key})`
  for (const [side, verb] of [
    [writers, 'written'],
    [readers, 'read'],
  ] as const) {
    for (const [name, ports] of side) {
      for (const port of ports.slice(1)) {
        if (problems.length >= MAX_FOUND) break
        problems.push({
          pointer: pointer(port),
          message: `connection "${name}" is ${verb} twice, by ${who(ports[0])} and by ${who(port)}; ${
            verb === 'written' ? 'join them with a flow_combiner' : 'copy it with a splitter'
          }`,
        })
      }
    }
  }
  const connections: Connection[] = []
  for (const [name, [from]] of writers) {
    const to = readers.get(name)?.[0]
    if (to) connections.push({ name, from, to })
    else {
      problems.push({
        pointer: pointer(from),
        message: `connection "${name}" is written by ${who(from)} but nobody reads it; give the reader's input the same name`,
      })
    }
  }
  for (const [name, [to]] of readers) {
    if (writers.has(name)) continue
    problems.push({
      pointer: pointer(to),
      message: `connection "${name}" is read by ${who(to)} but nobody writes it; give the writer's output the same name`,
    })
  }
  const onward = onwardOf(components, registry, connections)
  problems.push(...loops(components, onward))
  return { ports: portsByComponent, connections, onward, problems }
}

function loops(components: Record<string, ComponentConfig>, onward: Onward): Problem[] {
  return inOrder(onward).circles.map((circle) => {
    const names = [...circle, circle[0]].map(({ from }) => `"${from.component}"`).join(' → ')
    const by = circle.map(({ name }) => `"${name}"`).join(', ')
    const { to } = circle[circle.length - 1]
    const advice =
      'give one of them another writer or reader, or break the circle with two simulated_networks, with a delay or a bandwidth limit in it'
    return {
      pointer: portPointer(to, components[to.component].key),
      message: `packets would go round for ever: ${names}, by the connections ${by}: ${advice}`,
    }
  })
}
