/** The documents of a YAML or JSON text, each with the places of its values. */
import type { Alias, Document, ParsedNode } from 'yaml'
import { messageOf } from '../text/error-message.ts'
import { JsonPlaces, readJson } from '../text/json-text.ts'
import { below, tokensOf } from '../text/pointer.ts'
import { yaml } from '../text/yaml.ts'
import { Failure } from './failure.ts'
import { countOf, invalid, nameOf, type PlacedProblem, placedLine, type Source } from './problems.ts'

/** A place in a text, line and column from 1. */
interface Place {
  readonly line: number
  readonly column: number
}

export interface TextDocument {
  /** What JSON can say, and nothing else. */
  readonly value: unknown
  /** Where the value at a JSON pointer stands, or the nearest that holds it. */
  readonly placeOf: (pointer: string) => Place | undefined
}

/** Reads a text: JSON where it is that, else YAML 1.2; a file called .json is JSON only. Throws a failure with everything that is wrong. */
export function readDocuments(source: Source): TextDocument[] {
  const { file, text } = source
  const isJson = file.endsWith('.json')
  if (isJson || /^\s*[[{]/.test(text)) {
    const { value, problems } = readJson(text)
    // Without a value it may still be YAML, which has braces too.
    if (problems.length > 0 && (isJson || value !== undefined)) throw invalid(problems, source)
    if (problems.length === 0) {
      const places = new JsonPlaces(text)
      const placeOf = (pointer: string): Place | undefined => {
        const place = places.of(pointer)
        return place && { line: place.line, column: place.column }
      }
      return [{ value, placeOf }]
    }
  }
  return yamlDocuments(source)
}

type Parsed = Document.Parsed<ParsedNode>

function yamlDocuments({ file, text }: Source): TextDocument[] {
  const { LineCounter, parseAllDocuments } = yaml()
  const lines = new LineCounter()
  const place = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return { line, column: col }
  }
  const problems: PlacedProblem[] = []
  const read: TextDocument[] = []
  for (const document of parseAllDocuments(text, { lineCounter: lines, prettyErrors: false, stringKeys: true })) {
    const faults = [...document.errors, ...document.warnings]
    problems.push(...faults.map((fault) => ({ pointer: '', message: wordingOf(fault), ...place(fault.pos[0]) })))
    if (faults.length > 0) continue
    const placeOf = (pointer: string): Place => place(offsetOf(document as Parsed, pointer))
    try {
      const value: unknown = document.toJS()
      problems.push(...beyondJson(value).map((problem) => ({ ...problem, ...placeOf(problem.pointer) })))
      // Nothing but comments.
      if (value !== null) read.push({ value, placeOf })
    } catch (error) {
      // An alias of nothing, or aliases that would multiply without end.
      const alias = error instanceof ReferenceError ? aliasOfNothing(document as Parsed) : undefined
      const where = alias === undefined ? placeOf('') : place(alias.range[0])
      problems.push({ pointer: '', message: wordingOf(error), ...where })
    }
  }
  if (problems.length === 0) return read
  const told = problems.map((problem) => placedLine(problem, file)).join('\n')
  throw new Failure(`${nameOf(file)}: ${countOf(problems)}\n${told}`)
}

/** What is wrong with a text, for people; the parser says what the JavaScript engine does of what is nested deeper than the stack is. */
function wordingOf(error: unknown): string {
  const { YAMLError } = yaml()
  const isDeep = error instanceof RangeError || (error instanceof YAMLError && error.code === 'RESOURCE_EXHAUSTION')
  return isDeep ? 'the document is nested too deeply' : messageOf(error)
}

/** The first alias before which nothing bears its anchor. */
function aliasOfNothing(document: Parsed): Alias.Parsed | undefined {
  const { isAlias, visit } = yaml()
  const anchors = new Set<string>()
  let found: Alias.Parsed | undefined
  visit(document, {
    Node: (_, node) => {
      if (!isAlias(node)) {
        if (node.anchor !== undefined) anchors.add(node.anchor)
      } else if (!anchors.has(node.source)) {
        found = node as Alias.Parsed
        return visit.BREAK
      }
      return undefined
    },
  })
  return found
}

/** Where the value at a pointer begins, of a member its key; else where the nearest does that holds it. */
function offsetOf(document: Parsed, pointer: string): number {
  const { isAlias, isMap, isNode, isScalar, isSeq } = yaml()
  let node: unknown = document.contents
  let offset = document.contents?.range[0] ?? 0
  for (const token of tokensOf(pointer)) {
    if (isAlias(node)) node = node.resolve(document)
    let next: unknown
    let begin: unknown
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === token)
      begin = pair?.key
      next = pair?.value
    } else if (isSeq(node)) {
      next = node.items[Number(token)]
      begin = next
    }
    if (!isNode(begin)) break
    offset = begin.range?.[0] ?? offset
    node = next
  }
  return offset
}

/** What YAML has and JSON has not: numbers, and aliases of what they stand in, which `holders` are. */
function beyondJson(
  value: unknown,
  pointer = '',
  holders: readonly unknown[] = [],
): { pointer: string; message: string }[] {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    return [{ pointer, message: `${value} is no number that a configuration can hold` }]
  }
  if (typeof value !== 'object' || value === null) return []
  if (holders.includes(value)) {
    return [
      { pointer, message: 'the alias leads back to what it stands in, which would have no end; write the value out' },
    ]
  }
  return Object.entries(value).flatMap(([key, item]) => beyondJson(item, below(pointer, key), [...holders, value]))
}
