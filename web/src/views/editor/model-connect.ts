/** Connecting and disconnecting: a connection has one writer and one reader, and what loses its other end is left open. */

import { type Json, type JsonObject, type Path, valueAt } from '../../data/json.ts'
import { idOf, type Port, skeletonOf } from '../../data/ports.ts'
import type { Catalogue, Schema } from '../../data/schema.ts'
import { connectionNames, portName, withFieldOf } from './model-edits.ts'
import { componentOf, type Graph, graphOf, othersOf, pipelineOf } from './model-graph.ts'

/**
 * Connects an output with an input, either of which may be connected already: the ends that it was connected with are left open. Both
 * are ports of `config`. A port that is not there yet is made, with the item of the list that it is of.
 */
export function withConnection(config: JsonObject, catalogue: Catalogue, from: Port, to: Port): JsonObject {
  const graph = graphOf(config, catalogue)
  if (from.connection !== undefined && from.connection === to.connection) return config
  const taken = connectionNames(config, catalogue)
  const name = connectionName(graph, from, to) ?? portName(from.component, from.path, taken)
  let changed = config
  for (const reader of othersOf(graph, from)) changed = withOpenEnd(changed, catalogue, reader, taken)
  for (const writer of othersOf(graph, to)) {
    if (!writer.isRequired) changed = withOpenEnd(changed, catalogue, writer, taken)
  }
  taken.add(name)
  changed = withPort(changed, catalogue, from, name, taken)
  return withPort(changed, catalogue, to, name, taken)
}

/** Takes apart what `port` is connected with. */
export function withoutConnection(config: JsonObject, catalogue: Catalogue, port: Port): JsonObject {
  const graph = graphOf(config, catalogue)
  const others = othersOf(graph, port)
  const taken = connectionNames(config, catalogue)
  const ends = port.side === 'input' ? [port, ...others] : [...others, port]
  const [reader, ...rest] = ends
  if (reader === undefined || others.length === 0) return config
  let changed = withOpenEnd(config, catalogue, reader, taken)
  for (const end of rest) {
    if (!end.isRequired || end.side === 'input') changed = withOpenEnd(changed, catalogue, end, taken)
  }
  return changed
}

/** The name that the connection can go on with; undefined: it needs a new one. */
function connectionName({ components }: Graph, from: Port, to: Port): string | undefined {
  const outputs = components.flatMap(({ ports }) => ports).filter(({ side }) => side === 'output')
  const writers = (name: string): number => outputs.filter(({ connection }) => connection === name).length
  if (from.connection !== undefined) return writers(from.connection) === 1 ? from.connection : undefined
  return to.connection !== undefined && writers(to.connection) === 0 ? to.connection : undefined
}

/** Leaves a port open: without a name where it may be so, else with one that nobody else has. */
function withOpenEnd(config: JsonObject, catalogue: Catalogue, port: Port, taken: Set<string>): JsonObject {
  const name = port.isRequired ? portName(port.component, port.path, taken) : undefined
  return withFieldOf(config, catalogue, port.component, port.path, name)
}

function withPort(config: JsonObject, catalogue: Catalogue, port: Port, name: string, taken: Set<string>): JsonObject {
  const { component, path } = port
  const { kind, fields } = componentOf(component, pipelineOf(config)[component], catalogue)
  if (kind === undefined) return config
  const item = newItem(kind.schema, fields, path, (at) => portName(component, at, taken))
  const grown = item === undefined ? config : withFieldOf(config, catalogue, component, item.path, item.value)
  return withFieldOf(grown, catalogue, component, path, name)
}

/** The item of a list on the way to a port that is missing there, with the other ports that it must have. */
function newItem(
  schema: Schema,
  fields: Json | undefined,
  path: Path,
  nameOf: (path: Path) => string,
): { readonly path: Path; readonly value: Json } | undefined {
  let at: Schema | undefined = schema
  for (const [i, step] of path.entries()) {
    at = typeof step === 'number' ? at?.items : at?.properties?.[step]
    const way = path.slice(0, i + 1)
    if (typeof step !== 'number' || at === undefined || valueAt(fields, way) !== undefined) continue
    if (at['x-port'] !== undefined) return undefined
    const item = skeletonOf(at, way, (port) => (idOf({ path: port }) === idOf({ path }) ? '' : nameOf(port)))
    return { path: way, value: item }
  }
  return undefined
}
