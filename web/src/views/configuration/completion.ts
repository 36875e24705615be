/** Completion and hover help in a configuration's text, from the schema that the node publishes. */
import {
  type Completion,
  type CompletionContext,
  type CompletionResult,
  snippetCompletion,
} from '@codemirror/autocomplete'
import type { EditorState } from '@codemirror/state'
import type { SyntaxNode } from '@lezer/common'
import { resolved, type Schema } from '../../data/schema.ts'
import { nameOf, pathTo, wholeTree } from './json-places.ts'
import { beginningOf, rangeOf, schemaAt } from './schema-places.ts'

/** Completes names of fields and values at the cursor. */
export function completeFrom(root: () => Schema | undefined) {
  return ({ state, pos, explicit }: CompletionContext): CompletionResult | null => {
    const schema = root()
    if (schema === undefined) return null
    const node = wholeTree(state).resolveInner(pos, -1)
    const slice = (from: number, to: number): string => state.sliceDoc(from, to)
    const object = objectToNameIn(node, pos)
    if (object !== undefined) {
      const name = node.name === 'PropertyName' ? node : undefined
      if (name === undefined && !explicit) return null
      const at = schemaAt(schema, pathTo(object, slice))
      if (at === undefined) return null
      const hasValue = name?.parent !== null && /^\s*:/.test(slice(name?.to ?? pos, state.doc.length))
      const given = object.getChildren('Property').filter((each) => each.firstChild?.from !== name?.from)
      const taken = new Set(given.map((each) => nameOf(each, slice)))
      const options = namesOf(at, schema, taken, hasValue)
      return {
        from: name?.from ?? pos,
        ...(name === undefined ? {} : { to: name.to }),
        options,
        validFor: /^"?[\w$]*"?$/,
      }
    }
    const property = valuePlace(node)
    if (property === undefined) return null
    const at = schemaAt(schema, pathTo(property, slice))
    if (at === undefined) return null
    const isWord = node.name === 'String' || node.name === 'Number' || node.name === 'True' || node.name === 'False'
    if (!isWord && !explicit && !/[:\s,[]/.test(slice(pos - 1, pos))) return null
    const options = valuesOf(at, state, schema)
    if (options.length === 0) return null
    return { from: isWord ? node.from : pos, ...(isWord ? { to: node.to } : {}), options, validFor: /^"?[^"]*"?$/ }
  }
}

/** The object that a name is being written in at `pos`; undefined: a value is, or neither. */
function objectToNameIn(node: SyntaxNode, pos: number): SyntaxNode | undefined {
  if (node.name === 'PropertyName') return node.parent?.parent ?? undefined
  const object = node.name === 'Object' ? node : node.type.isError || /^[{,]$/.test(node.name) ? node.parent : null
  if (object === null || object.name !== 'Object') return undefined
  return pos > object.from ? object : undefined
}

/** The property or item whose value is being written. */
function valuePlace(node: SyntaxNode): SyntaxNode | undefined {
  if (node.name === 'Property') return node
  const { parent } = node
  if (parent === null) return undefined
  return parent.name === 'Property' || parent.name === 'Array'
    ? parent.name === 'Property'
      ? parent
      : node
    : undefined
}

function namesOf(at: Schema, root: Schema, taken: ReadonlySet<string | undefined>, hasValue: boolean): Completion[] {
  return Object.entries(at.properties ?? {}).flatMap(([name, property]): Completion[] => {
    if (taken.has(name)) return []
    const schema = resolved(property, root)
    const isNeeded = at.required?.includes(name) === true
    const own = {
      label: `"${name}"`,
      displayLabel: name,
      type: 'property',
      detail: schema['x-family'] ?? (isNeeded ? 'required' : rangeOf(schema)),
      info: schema.description ?? '',
      boost: isNeeded ? 1 : 0,
    }
    if (hasValue) return [own]
    return [snippetCompletion(`"${name}": ${beginningOf(schema).replace('#', `\${}`)}`, own)]
  })
}

function valuesOf(at: Schema, state: EditorState, root: Schema): Completion[] {
  const types = Array.isArray(at.type) ? at.type : [at.type]
  const values = at.enum ?? (types.includes('boolean') ? [true, false] : at.default === undefined ? [] : [at.default])
  const written = values.map((value) => ({
    label: JSON.stringify(value),
    type: 'enum',
    ...(value === at.default ? { detail: 'default' } : {}),
  }))
  return at['x-port'] === undefined ? written : connectionsIn(state, root)
}

/** The names that are written once so far: those that wait for their other end. */
function connectionsIn(state: EditorState, root: Schema): Completion[] {
  const slice = (from: number, to: number): string => state.sliceDoc(from, to)
  const counts = new Map<string, number>()
  wholeTree(state).iterate({
    enter: ({ node, name, from, to }) => {
      if (name !== 'String' || schemaAt(root, pathTo(node, slice))?.['x-port'] === undefined) return
      counts.set(slice(from, to), (counts.get(slice(from, to)) ?? 0) + 1)
    },
  })
  const open = [...counts].filter(([, count]) => count === 1)
  return open.map(([label]) => ({ label, type: 'variable', detail: 'open end' }))
}

/** What the schema says of what stands at `pos`: the words, and where they are about. */
export function helpAt(state: EditorState, pos: number, root: Schema) {
  const node = wholeTree(state).resolveInner(pos, 1)
  if (node.name === 'Object' || node.name === 'Array' || node.name === 'JsonText') return undefined
  const schema = schemaAt(
    root,
    pathTo(node, (from, to) => state.sliceDoc(from, to)),
  )
  if (schema?.description === undefined) return undefined
  return { from: node.from, to: node.to, title: schema.title ?? '', text: schema.description, range: rangeOf(schema) }
}
