/** JSON texts (RFC 8259): their values, and where in a text its faults, keys given twice, and the values of JSON pointers stand. */
import { below, type Problem, pointerOf, tokensOf } from './pointer.ts'

/** Where something stands in a text. */
export interface TextPosition {
  /** Characters before it. */
  readonly offset: number
  /** Both from 1. */
  readonly line: number
  readonly column: number
}

/** What a text says, and what is wrong with it as JSON: where it is none, or the keys that one object has twice. */
export interface JsonText {
  readonly value: unknown
  readonly problems: readonly Problem[]
}

/** Most keys given twice that are told of one text. */
const MAX_REPEATED_KEYS = 100

/** Reads a text; `value` is undefined when it is no JSON. Of a key that is given twice JSON.parse keeps the last in silence. */
export function readJson(text: string): JsonText {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { value: undefined, problems: [{ pointer: '', message: faultOf(text) }] }
  }
  // A look at every character, nothing built: what has no key twice, nearly every text, pays no more.
  if (membersWritten(text) === membersRead(value)) return { value, problems: [] }
  const problems = outlineOf(text).repeated.map(({ pointer, first, again }) => {
    const message = `the key is given twice, at ${told(placeAt(text, first))} and at ${told(placeAt(text, again))}; leave one out`
    return { pointer, message }
  })
  return { value, problems }
}

/** Where each value of a text stands, by JSON pointer. */
export class JsonPlaces {
  readonly #text: string
  readonly #root: Outline | undefined
  /** Where a text that is no JSON goes wrong. */
  readonly fault: TextPosition | undefined

  /** Of a text that is no JSON, what comes before its fault has places. */
  constructor(text: string) {
    this.#text = text
    const { root, fault } = outlineOf(text)
    this.#root = root
    this.fault = fault === undefined ? undefined : placeAt(text, fault.at)
  }

  /** Whether the text has a value there. */
  has(pointer: string): boolean {
    return this.#find(pointer).isWhole
  }

  /**
   * Where the value stands that `pointer` leads to: of a member its key, of an item of a list the item. Of what is not there, the
   * place of the nearest that holds it; undefined when the text holds nothing.
   */
  of(pointer: string): TextPosition | undefined {
    const { nearest } = this.#find(pointer)
    return nearest === undefined ? undefined : placeAt(this.#text, nearest.at)
  }

  #find(pointer: string): { nearest: Outline | undefined; isWhole: boolean } {
    let nearest = this.#root
    for (const name of tokensOf(pointer)) {
      const next = nearest?.members?.get(name) ?? nearest?.items?.[Number(name)]
      if (next === undefined) return { nearest, isWhole: false }
      nearest = next
    }
    return { nearest, isWhole: nearest !== undefined }
  }
}

/** Pointers of the strings and keys of a value that hold half of a surrogate pair: no UTF-8 can say those. */
export function loneSurrogates(text: string, value: unknown): string[] {
  // They come from escapes only: a text with none has none.
  if (!/\\u[dD][89a-fA-F]/.test(text)) return []
  const found: string[] = []
  const open: [string, unknown][] = [['', value]]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [pointer, item] = next
    if (typeof item === 'string') {
      if (isLone(item)) found.push(pointer)
    } else if (typeof item === 'object' && item !== null) {
      for (const [key, inner] of Object.entries(item)) {
        const at = below(pointer, key)
        if (isLone(key)) found.push(at)
        else open.push([at, inner])
      }
    }
  }
  return found
}

const isLone = (text: string): boolean => /\p{Surrogate}/u.test(text)

function placeAt(text: string, offset: number): TextPosition {
  let line = 1
  let start = 0
  for (let end = text.indexOf('\n'); end >= 0 && end < offset; end = text.indexOf('\n', start)) {
    line++
    start = end + 1
  }
  return { offset, line, column: offset - start + 1 }
}

const told = ({ line, column }: TextPosition): string => `line ${line}, column ${column}`

function faultOf(text: string): string {
  const { fault } = outlineOf(text)
  const { offset, line, column } = placeAt(text, fault?.at ?? text.length)
  const what = offset >= text.length ? 'the text ends too early' : (fault?.message ?? 'this is no JSON')
  return `malformed JSON at position ${offset} (line ${line}, column ${column}): ${what}`
}

/** Members of all objects of a well-formed text: each has one colon outside strings. */
function membersWritten(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x3a) count++
    else if (code === 0x22) at = endOfString(text, at)
  }
  return count
}

/** The offset of the quote that ends the well-formed string which begins at `at`. */
function endOfString(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); ; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c) backslashes++
    if (backslashes % 2 === 0) return end
  }
}

/** Members of all objects of a value. Without recursion: texts from outside are nested as deep as their length allows. */
function membersRead(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  const open: object[] = [value]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (Array.isArray(next)) {
      for (const item of next) if (typeof item === 'object' && item !== null) open.push(item)
    } else {
      for (const key of Object.keys(next)) {
        count++
        const item = (next as Record<string, unknown>)[key]
        if (typeof item === 'object' && item !== null) open.push(item)
      }
    }
  }
  return count
}

/** A value in a text. */
interface Outline {
  /** Where it begins; of a member, where its key does. */
  readonly at: number
  members?: Map<string, Outline>
  items?: Outline[]
}

interface Outlined {
  /** Absent when the text holds nothing. */
  readonly root: Outline | undefined
  readonly repeated: readonly { readonly pointer: string; readonly first: number; readonly again: number }[]
  readonly fault: { readonly at: number; readonly message: string } | undefined
}

const SPACE = /[ \t\n\r]*/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y
const NUMBER_OR_WORD = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y

type Wanted = 'value' | 'value or end' | 'key' | 'key or end' | 'comma or end'
const WANTED: Readonly<Record<Wanted, string>> = {
  value: 'here a value is wanted',
  'value or end': 'here a value or ] is wanted',
  key: 'here a key in quotes is wanted',
  'key or end': 'here a key in quotes or } is wanted',
  'comma or end': 'here a comma or the end of what is open is wanted',
}

/** Everything up to the first fault, if there is one. */
function outlineOf(text: string): Outlined {
  let at = 0
  const take = (pattern: RegExp): boolean => {
    pattern.lastIndex = at
    if (!pattern.test(text)) return false
    at = pattern.lastIndex
    return true
  }
  const repeated: { pointer: string; first: number; again: number }[] = []
  let root: Outline | undefined
  const open: { outline: Outline; key: string; keyAt: number }[] = []
  let wanted: Wanted = 'value'
  const fault = (message: string) => ({ root, repeated, fault: { at, message } })
  const pointer = () =>
    pointerOf(open.map(({ outline, key }) => (outline.items === undefined ? key : outline.items.length - 1)))
  /** Enters a value that begins at `begin` where it belongs. */
  const enter = (begin: number): Outline => {
    const inner = open.at(-1)
    const outline: Outline = { at: inner?.outline.members === undefined ? begin : inner.keyAt }
    if (inner === undefined) root = outline
    else if (inner.outline.items !== undefined) inner.outline.items.push(outline)
    else inner.outline.members?.set(inner.key, outline)
    return outline
  }
  for (;;) {
    take(SPACE)
    const next = text[at]
    const inner = open.at(-1)
    if (next === undefined) {
      if (inner === undefined && wanted === 'comma or end') return { root, repeated, fault: undefined }
      return fault(WANTED[wanted])
    }
    if (wanted === 'comma or end') {
      if (inner === undefined) return fault('the text goes on after its value')
      const isObject = inner.outline.members !== undefined
      if (next === ',') wanted = isObject ? 'key' : 'value'
      else if (next === (isObject ? '}' : ']')) open.pop()
      else return fault(WANTED[wanted])
      at++
    } else if ((wanted === 'key or end' && next === '}') || (wanted === 'value or end' && next === ']')) {
      open.pop()
      at++
      wanted = 'comma or end'
    } else if (wanted === 'key' || wanted === 'key or end') {
      const begin = at
      if (next !== '"') return fault(WANTED[wanted])
      if (!takeString()) return fault('a string has no such character or escape')
      if (inner !== undefined) {
        inner.key = JSON.parse(text.slice(begin, at)) as string
        inner.keyAt = begin
        const first = inner.outline.members?.get(inner.key)
        if (first !== undefined && repeated.length < MAX_REPEATED_KEYS) {
          repeated.push({ pointer: pointer(), first: first.at, again: begin })
        }
      }
      take(SPACE)
      if (text[at] !== ':') return fault('here a colon is wanted')
      at++
      wanted = 'value'
    } else if (next === '{' || next === '[') {
      const outline = enter(at)
      if (next === '{') outline.members = new Map()
      else outline.items = []
      open.push({ outline, key: '', keyAt: at })
      at++
      wanted = next === '{' ? 'key or end' : 'value or end'
    } else {
      const begin = at
      if (next === '"') {
        if (!takeString()) return fault('a string has no such character or escape')
      } else if (!take(NUMBER_OR_WORD)) return fault(WANTED[wanted])
      enter(begin)
      wanted = 'comma or end'
    }
  }

  /** Takes a string with its end; else `at` is at the character that does not belong. */
  function takeString(): boolean {
    for (at++; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (code === 0x22) {
        at++
        return true
      }
      if (code < 0x20) return false
      if (code !== 0x5c) continue
      ESCAPE.lastIndex = at
      if (!ESCAPE.test(text)) return false
      at = ESCAPE.lastIndex - 1
    }
    return false
  }
}
