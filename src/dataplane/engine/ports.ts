/** Connection points: finds them in a configuration and checks that they form a graph. */
import type { TSchema } from '@sinclair/typebox'
import type { AnyComponent } from './component.ts'
import type { ComponentConfig, Problem } from './config.ts'
import { pointerToken } from './names.ts'
import type { Annotations } from './schema.ts'

export interface Port {
  component: string
  kind: 'input' | 'output'
  /** The connection's name. */
  name: string
  /** Way to the value within the component's configuration: ['flows', 0, 'input']. */
  steps: (string | number)[]
}

type Node = TSchema & Annotations & { properties?: Record<string, TSchema>; items?: TSchema }

/** The ports of one component, in the order of its schema. */
export function portsOf(component: string, schema: TSchema, config: unknown): Port[] {
  const ports: Port[] = []
  const walk = (node: Node, value: unknown, steps: (string | number)[]): void => {
    if (value === undefined) return
    if (node.port && typeof value === 'string') ports.push({ component, kind: node.port, name: value, steps })
    else if (node.properties) {
      for (const [key, child] of Object.entries(node.properties)) {
        walk(child as Node, (value as Record<string, unknown>)[key], [...steps, key])
      }
    } else if (node.items && Array.isArray(value)) {
      value.forEach((item, i) => {
        walk(node.items as Node, item, [...steps, i])
      })
    }
  }
  walk(schema as Node, config, [])
  return ports
}

/** `input`, `flows_0_input`: the port's name in metrics. */
export function portName(port: Port): string {
  return port.steps.join('_')
}

/** Pointer of a port in the whole configuration. */
export function portPointer(port: Port, key: string): string {
  return ['', 'engine_config', 'pipeline', port.component, key, ...port.steps].map(pointerToken).join('/')
}

/** Both ends of a connection. */
export interface Connection {
  name: string
  from: Port
  to: Port
}

/**
 * Joins outputs and inputs of the same name. Each name needs exactly one writer and one reader, and no loop may lead
 * back to a component without leaving the node in between.
 */
export function connect(
  components: Record<string, ComponentConfig>,
  registry: ReadonlyMap<string, AnyComponent>,
): { connections: Connection[]; problems: Problem[] } {
  const problems: Problem[] = []
  const writers = new Map<string, Port[]>()
  const readers = new Map<string, Port[]>()
  for (const [component, { key, config }] of Object.entries(components)) {
    const definition = registry.get(key)
    if (!definition) continue
    for (const port of portsOf(component, definition.config, config)) {
      const side = port.kind === 'output' ? writers : readers
      side.set(port.name, [...(side.get(port.name) ?? []), port])
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
  problems.push(...loops(components, registry, connections))
  return { connections, problems }
}

function loops(
  components: Record<string, ComponentConfig>,
  registry: ReadonlyMap<string, AnyComponent>,
  connections: Connection[],
): Problem[] {
  const problems: Problem[] = []
  const state = new Map<string, 'open' | 'done'>()
  const path: string[] = []
  const followers = new Map<string, Connection[]>()
  for (const connection of connections) {
    const from = connection.from.component
    followers.set(from, [...(followers.get(from) ?? []), connection])
  }
  const visit = (component: string): void => {
    state.set(component, 'open')
    path.push(component)
    for (const connection of followers.get(component) ?? []) {
      const next = connection.to.component
      if (registry.get(components[next].key)?.decoupled) continue
      if (state.get(next) === 'open') {
        const circle = [...path.slice(path.indexOf(next)), next].map((name) => `"${name}"`).join(' → ')
        problems.push({
          pointer: portPointer(connection.to, components[next].key),
          message: `packets would go round for ever: ${circle}`,
        })
      } else if (!state.has(next)) visit(next)
    }
    path.pop()
    state.set(component, 'done')
  }
  for (const component of Object.keys(components)) {
    if (!state.has(component) && !registry.get(components[component].key)?.decoupled) visit(component)
  }
  return problems
}
