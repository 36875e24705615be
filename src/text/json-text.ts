/** JSON texts (RFC 8259): their values, and where in a text its faults, keys given twice, and the values of JSON pointers stand. */
import { below, type Problem, tokensOf } from './pointer.ts'

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

/** Levels that a text may nest: JSON.parse takes ten times as long for brackets as for other texts of their length. */
const MAX_DEPTH = 1_000

/** Most keys given twice, and most halves of pairs, that are told of one text. */
const MAX_TOLD = 100

/** Characters of a pointer after which the rest of the way is left out: a text may nest as deep as it is long. */
const LONG_POINTER = 1_000

/** The pointer one step below `pointer`, unless that is long already. */
function along(pointer: string, token: string | number): string {
  return pointer.length > LONG_POINTER ? pointer : below(pointer, token)
}

/** Reads a text; `value` is undefined when it is no JSON. Of a key that is given twice JSON.parse keeps the last in silence. */
export function readJson(text: string): JsonText {
  // A look at every character, nothing built: what has no key twice, nearly every text, pays no more.
  const written = tallyOf(text)
  if (written.depth > MAX_DEPTH) {
    const message = `the text is nested deeper than ${MAX_DEPTH.toLocaleString('en-US')} levels, the most that are read`
    return { value: undefined, problems: [{ pointer: '', message }] }
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { value: undefined, problems: [{ pointer: '', message: faultOf(text) }] }
  }
  if (written.members === membersRead(value)) return { value, problems: [] }
  const { found } = new RepeatedKeys(text)
  const places = placesAt(
    text,
    found.flatMap(({ first, again }) => [first, again]),
  )
  const toldAt = (offset: number) => told(places.get(offset) as TextPosition)
  const problems = found.map(({ pointer, first, again }) => {
    const message = `the key is given twice, at ${toldAt(first)} and at ${toldAt(again)}; leave one out`
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
    const outliner = new Outliner(text)
    const fault = scan(text, outliner)
    this.#root = outliner.root
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

/** Pointers, `MAX_TOLD` at most, of the strings and keys of a text's value that hold half of a surrogate pair: no UTF-8 can say those. */
export function loneSurrogates(text: string, value: unknown): string[] {
  // They come from escapes only: a text with none has none.
  return /\\u[dD][89a-fA-F]/.test(text) ? loneSurrogatesOf(value) : []
}

/** The same of any value. */
export function loneSurrogatesOf(value: unknown): string[] {
  const found: string[] = []
  const seen = new Set<object>()
  const open: [string, unknown][] = [['', value]]
  for (let next = open.pop(); next !== undefined && found.length < MAX_TOLD; next = open.pop()) {
    const [pointer, item] = next
    if (typeof item === 'string') {
      if (isLone(item)) found.push(pointer)
    } else if (typeof item === 'object' && item !== null && !seen.has(item)) {
      seen.add(item)
      for (const [key, inner] of Object.entries(item)) {
        if (found.length >= MAX_TOLD) break
        const at = along(pointer, key)
        if (isLone(key)) found.push(at)
        else open.push([at, inner])
      }
    }
  }
  return found
}

const isLone = (text: string): boolean => /\p{Surrogate}/u.test(text)

function placeAt(text: string, offset: number): TextPosition {
  return placesAt(text, [offset]).get(offset) as TextPosition
}

/** The same of several offsets, in one pass. */
function placesAt(text: string, offsets: readonly number[]): Map<number, TextPosition> {
  const places = new Map<number, TextPosition>()
  let line = 1
  let start = 0
  let end = text.indexOf('\n')
  for (const offset of [...offsets].sort((a, b) => a - b)) {
    for (; end >= 0 && end < offset; end = text.indexOf('\n', start)) {
      line++
      start = end + 1
    }
    places.set(offset, { offset, line, column: offset - start + 1 })
  }
  return places
}

const told = ({ line, column }: TextPosition): string => `line ${line}, column ${column}`

/** Some editors put it first; no JSON begins with it (RFC 8259, section 8.1). */
const BYTE_ORDER_MARK = '\ufeff'

function faultOf(text: string): string {
  const fault = scan(text)
  const { offset, line, column } = placeAt(text, fault?.at ?? text.length)
  return `malformed JSON at position ${offset} (line ${line}, column ${column}): ${wordingOf(text, offset, fault)}`
}

function wordingOf(text: string, offset: number, fault: TextFault | undefined): string {
  if (text.startsWith(BYTE_ORDER_MARK)) return 'the text begins with a byte order mark: leave that out'
  if (offset < text.length) return fault?.message ?? 'this is no JSON'
  return text.trim() === '' ? 'the text holds nothing' : 'the text ends too early'
}

/**
 * Members of all objects of a text, each of which has one colon outside strings, and how deep it nests: more than `MAX_DEPTH` once it does, of a
 * text that is no JSON anything.
 */
function tallyOf(text: string): { members: number; depth: number } {
  let members = 0
  let open = 0
  let depth = 0
  for (let at = 0; at < text.length && depth <= MAX_DEPTH; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x3a) members++
    else if (code === 0x22) at = endOfString(text, at)
    else if (code === 0x5b || code === 0x7b) depth = Math.max(depth, ++open)
    else if (code === 0x5d || code === 0x7d) open--
  }
  return { members, depth }
}

/** The offset of the quote that ends the string which begins at `at`; of a string without an end that of the text. */
function endOfString(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c) backslashes++
    if (backslashes % 2 === 0) return end
  }
  return text.length
}

/** Members of all objects of a value. */
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

/** Where a text is no JSON. */
interface TextFault {
  readonly at: number
  readonly message: string
}

/** Is told what stands in a text, in its order. */
interface Visitor {
  /** An object begins at `at`, or a list. */
  open(at: number, isObject: boolean): void
  /** The innermost of what has begun ends. */
  close(): void
  /** A key of the innermost object, in its quotes from `at` to `end`; its value comes next. */
  key(at: number, end: number): void
  /** A value that is neither begins at `at`. */
  leaf(at: number): void
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

/** Of what is open in a text, outermost first, which are objects: a byte each, since a text may be nothing but brackets. */
class OpenKinds {
  depth = 0
  #kinds = new Uint8Array(64)

  push(isObject: boolean): void {
    if (this.depth === this.#kinds.length) {
      const kinds = new Uint8Array(2 * this.depth)
      kinds.set(this.#kinds)
      this.#kinds = kinds
    }
    this.#kinds[this.depth++] = isObject ? 1 : 0
  }

  get isObject(): boolean {
    return this.#kinds[this.depth - 1] === 1
  }
}

/** The first fault of a text, if there is one. `visitor` is told of everything before it. */
function scan(text: string, visitor?: Visitor): TextFault | undefined {
  let at = 0
  const take = (pattern: RegExp): boolean => {
    pattern.lastIndex = at
    if (!pattern.test(text)) return false
    at = pattern.lastIndex
    return true
  }
  const open = new OpenKinds()
  let wanted: Wanted = 'value'
  const fault = (message: string) => ({ at, message })
  const close = () => {
    open.depth--
    visitor?.close()
    at++
    wanted = 'comma or end'
  }
  for (;;) {
    take(SPACE)
    const next = text[at]
    if (next === undefined) {
      return open.depth === 0 && wanted === 'comma or end' ? undefined : fault(WANTED[wanted])
    }
    if (wanted === 'comma or end') {
      if (open.depth === 0) return fault('the text goes on after its value')
      if (next === (open.isObject ? '}' : ']')) close()
      else if (next !== ',') return fault(WANTED[wanted])
      else {
        wanted = open.isObject ? 'key' : 'value'
        at++
      }
    } else if ((wanted === 'key or end' && next === '}') || (wanted === 'value or end' && next === ']')) close()
    else if (wanted === 'key' || wanted === 'key or end') {
      const begin = at
      if (next !== '"') return fault(WANTED[wanted])
      if (!takeString()) return fault('a string has no such character or escape')
      visitor?.key(begin, at)
      take(SPACE)
      if (text[at] !== ':') return fault('here a colon is wanted')
      at++
      wanted = 'value'
    } else if (next === '{' || next === '[') {
      const isObject = next === '{'
      open.push(isObject)
      visitor?.open(at, isObject)
      at++
      wanted = isObject ? 'key or end' : 'value or end'
    } else {
      const begin = at
      if (next === '"') {
        if (!takeString()) return fault('a string has no such character or escape')
      } else if (!take(NUMBER_OR_WORD)) return fault(WANTED[wanted])
      visitor?.leaf(begin)
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

/** An object that is open: its last key, and all of them with their places once it has two. */
interface OpenObject {
  key: string
  at: number
  keys?: Map<string, number>
}

/** The keys that one object has twice, as many as are told of. */
class RepeatedKeys implements Visitor {
  readonly found: { readonly pointer: string; readonly first: number; readonly again: number }[] = []
  readonly #text: string
  /** Outermost first: objects, and of lists the index of the item. */
  readonly #open: (OpenObject | number)[] = []

  /** Of a well-formed text. */
  constructor(text: string) {
    this.#text = text
    scan(text, this)
  }

  open(_at: number, isObject: boolean): void {
    this.#enter()
    this.#open.push(isObject ? { key: '', at: -1 } : -1)
  }

  close(): void {
    this.#open.pop()
  }

  leaf(): void {
    this.#enter()
  }

  key(at: number, end: number): void {
    const object = this.#open.at(-1) as OpenObject
    const key = JSON.parse(this.#text.slice(at, end)) as string
    if (object.at >= 0) object.keys ??= new Map([[object.key, object.at]])
    const first = object.keys?.get(key)
    object.keys?.set(key, at)
    object.key = key
    object.at = at
    if (first === undefined || this.found.length >= MAX_TOLD) return
    this.found.push({ pointer: this.#pointer(), first, again: at })
  }

  /** The next item, where a list is open. */
  #enter(): void {
    const last = this.#open.length - 1
    const index = this.#open[last]
    if (typeof index === 'number') this.#open[last] = index + 1
  }

  #pointer(): string {
    let pointer = ''
    for (const open of this.#open) {
      if (pointer.length > LONG_POINTER) break
      pointer = along(pointer, typeof open === 'number' ? open : open.key)
    }
    return pointer
  }
}

/** A value in a text. */
interface Outline {
  /** Where it begins; of a member, where its key does. */
  readonly at: number
  members?: Map<string, Outline>
  items?: Outline[]
}

/** All values of a text with their places, as far as it is JSON. */
class Outliner implements Visitor {
  /** Absent when the text holds nothing. */
  root: Outline | undefined
  readonly #text: string
  readonly #open: { readonly outline: Outline; key: string; at: number }[] = []

  constructor(text: string) {
    this.#text = text
  }

  open(at: number, isObject: boolean): void {
    const outline = this.#enter(at)
    if (isObject) outline.members = new Map()
    else outline.items = []
    this.#open.push({ outline, key: '', at })
  }

  close(): void {
    this.#open.pop()
  }

  key(at: number, end: number): void {
    const inner = this.#open.at(-1)
    if (inner === undefined) return
    inner.key = JSON.parse(this.#text.slice(at, end)) as string
    inner.at = at
  }

  leaf(at: number): void {
    this.#enter(at)
  }

  /** Enters a value that begins at `at` where it belongs. */
  #enter(at: number): Outline {
    const inner = this.#open.at(-1)
    const outline: Outline = { at: inner?.outline.members === undefined ? at : inner.at }
    if (inner === undefined) this.root = outline
    else if (inner.outline.items !== undefined) inner.outline.items.push(outline)
    else inner.outline.members?.set(inner.key, outline)
    return outline
  }
}
