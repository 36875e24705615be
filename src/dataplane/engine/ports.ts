/** Connection points: finds them in a configuration and checks that they form a graph. */
import type { TSchema } from '@sinclair/typebox'
import type { Registry } from './component.ts'
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
 * The outputs, of those of its component, by which what comes in at `input` can leave at once: those of its own flow
 * (`flows[i].input` leads to `flows[i].output` only) where it has one, else all.
 */
export function outputsFrom(input: Port, ports: readonly Port[]): Port[] {
  const outputs = ports.filter((port) => port.kind === 'output')
  if (input.steps.length < 2) return outputs
  const flowOf = (port: Port): string => port.steps.slice(0, -1).join('/')
  const own = outputs.filter((port) => flowOf(port) === flowOf(input))
  return own.length > 0 ? own : outputs
}

/** For each connection those that its packets go on by, at once, from the component it leads to. */
export type Onward = ReadonlyMap<Connection, readonly Connection[]>

export function onwardOf(
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
    const decoupled = registry.get(components[component].key)?.decoupled
    const outputs = decoupled ? [] : outputsFrom(connection.to, ports.get(component) ?? [])
    onward.set(
      connection,
      outputs.map(({ name }) => byName.get(name) as Connection),
    )
  }
  return onward
}

/**
 * The connections, each before those that it leads to; and the circles there are, each as the connections in it. With circles
 * the order means nothing.
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
      } else if (state.get(following) === 'open') {
        const members = path.map(({ at }) => at)
        circles.push(members.slice(members.indexOf(following)))
      }
    }
  }
  return { order: done.reverse(), circles }
}

/**
 * Joins outputs and inputs of the same name. Each name needs exactly one writer and one reader, and no loop may lead
 * back to an input without leaving the node in between.
 */
export function connect(
  components: Record<string, ComponentConfig>,
  registry: Registry,
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

function loops(components: Record<string, ComponentConfig>, registry: Registry, connections: Connection[]): Problem[] {
  return inOrder(onwardOf(components, registry, connections)).circles.map((circle) => {
    const names = [...circle, circle[0]].map(({ from }) => `"${from.component}"`).join(' → ')
    const { to } = circle[circle.length - 1]
    return {
      pointer: portPointer(to, components[to.component].key),
      message: `packets would go round for ever: ${names}`,
    }
  })
}
