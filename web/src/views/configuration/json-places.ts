/** Places in a JSON text, by its syntax tree: the way that leads to a position, and the position that a pointer leads to. */
import { ensureSyntaxTree, syntaxTree } from '@codemirror/language'
import type { EditorState } from '@codemirror/state'
import type { SyntaxNode, Tree } from '@lezer/common'
import { camelCase, type Path, stepsOf } from '../../data/json.ts'

/** Milliseconds that reading a text to its end may take. */
const PARSE_MS = 200

/** The syntax tree of the whole text; of its beginning where that takes too long. */
export function wholeTree(state: EditorState): Tree {
  return ensureSyntaxTree(state, state.doc.length, PARSE_MS) ?? syntaxTree(state)
}

/** Reads a part of the text. */
export type Slice = (from: number, to: number) => string

export interface Place {
  readonly from: number
  readonly to: number
}

const isValue = ({ name }: SyntaxNode): boolean => /^(Object|Array|String|Number|True|False|Null)$/.test(name)

/** The name of a Property; undefined: its quotes are not closed yet. */
export function nameOf(property: SyntaxNode, slice: Slice): string | undefined {
  const name = property.getChild('PropertyName')
  if (name === null) return undefined
  try {
    return JSON.parse(slice(name.from, name.to)) as string
  } catch {
    return undefined
  }
}

function children(node: SyntaxNode): SyntaxNode[] {
  const found: SyntaxNode[] = []
  for (let child = node.firstChild; child !== null; child = child.nextSibling) found.push(child)
  return found
}

const valuesIn = (node: SyntaxNode): SyntaxNode[] => children(node).filter(isValue)

/** The steps from the top of the text to `node`: names of properties, indexes of items. */
export function pathTo(node: SyntaxNode, slice: Slice): Path {
  const steps: (string | number)[] = []
  for (let at: SyntaxNode | null = node; at !== null; at = at.parent) {
    if (at.name === 'Property') steps.unshift(nameOf(at, slice) ?? '')
    const { parent } = at
    if (parent?.name === 'Array') {
      const { from } = at
      steps.unshift(valuesIn(parent).filter((each) => each.from < from).length)
    }
  }
  return steps
}

/**
 * Where the value of `pointer` stands: a number, text or word itself, of an object, a list, or what is missing the name it has or would be in.
 * Names are found in either casing. Undefined: the text holds no value at all.
 */
export function placeOf(tree: Tree, slice: Slice, pointer: string): Place | undefined {
  let at = valuesIn(tree.topNode)[0]
  if (at === undefined) return undefined
  let place: Place = { from: at.from, to: Math.min(at.to, at.from + 1) }
  for (const step of stepsOf(pointer)) {
    let next: SyntaxNode | undefined
    if (at.name === 'Object') {
      const properties = at.getChildren('Property')
      const named = (name: string): SyntaxNode | undefined =>
        properties.find((property) => nameOf(property, slice) === name)
      const property: SyntaxNode | undefined = named(step) ?? named(camelCase(step))
      const name = property?.getChild('PropertyName')
      if (property === undefined || !name) return place
      place = { from: name.from, to: name.to }
      next = valuesIn(property)[0]
    } else if (at.name === 'Array') {
      next = valuesIn(at)[Number(step)]
      if (next !== undefined) place = { from: next.from, to: Math.min(next.to, next.from + 1) }
    }
    if (next === undefined) return place
    if (next.name !== 'Object' && next.name !== 'Array') place = { from: next.from, to: next.to }
    at = next
  }
  return place
}

/** The first place where the text is no JSON; undefined: there is none. */
export function faultIn(tree: Tree): Place | undefined {
  let fault: Place | undefined
  tree.iterate({
    enter: ({ type, from, to }) => {
      if (type.isError && fault === undefined) fault = { from, to }
    },
  })
  return fault
}
