/** Checks a value against the schema that it is to have; lists every problem, with its place as it was written. */
import { isIP } from 'node:net'
import type { TSchema } from '@sinclair/typebox'
import type { Ajv, ErrorObject, ValidateFunction } from 'ajv'
import { requirePackage } from '../../require-package.ts'
import { cutAt } from '../../text/characters.ts'
import { isObject, memberNamed, setOwn } from '../../text/json-object.ts'
import { camelCase, suggestion } from '../../text/names.ts'
import { below, type Problem, pointerOf, tokensOf } from '../../text/pointer.ts'
import { portOfAddress } from './address.ts'
import { keyBytes } from './keys.ts'
import { add, MAX_FOUND } from './problems.ts'
import type { Annotations, SchemaNode } from './schema.ts'
import { uint64Words } from './uint64.ts'

/** A format of a text: whether one has it, and what to say of one that has not. */
interface Format {
  readonly has: (text: string) => boolean
  readonly wording: string
}

const FORMATS: Readonly<Record<string, Format>> = {
  'socket-address': {
    has: (text) => portOfAddress(text) !== undefined,
    wording: 'an address and port, written 192.0.2.1:5000, [2001:db8::1]:5000 or relay.example:5000',
  },
  ip: { has: (text) => isIP(text) !== 0, wording: 'an IPv4 or IPv6 address' },
  uint64: { has: (text) => uint64Words(text) !== null, wording: 'a whole number from 0 to 18446744073709551615' },
  'nonce-12': {
    has: (text) => keyBytes(text)?.length === 12,
    wording: 'a nonce of 12 bytes: 24 hex digits, or base64:…',
  },
  'ascii-16': { has: (text) => text === '' || /^[ -~]{16}$/.test(text), wording: '16 printable ASCII characters' },
  'file-name': { has: (text) => !text.includes('\0'), wording: 'a path without NUL characters' },
  'interface-name': {
    has: (text) => /^[^\s/%:]+$/.test(text) && text !== '.' && text !== '..' && Buffer.byteLength(text) <= 15,
    wording: 'the name of a network interface: 1 to 15 bytes without spaces, "/", ":" and "%"',
  },
  'key-16': {
    has: (text) => keyBytes(text)?.length === 16,
    wording: 'a key of 16 bytes: 32 hex digits, or base64:…',
  },
  'key-32': {
    has: (text) => keyBytes(text)?.length === 32,
    wording: 'a key of 32 bytes: 64 hex digits, or base64:…',
  },
}

function createAjv(allErrors: boolean): Ajv {
  const { Ajv } = requirePackage('ajv') as typeof import('ajv')
  const ajv = new Ajv({
    allErrors,
    useDefaults: true,
    strict: false,
    verbose: true,
    ownProperties: true,
    // That the schemas are such is tested; to check it here takes longer than most commands.
    validateSchema: false,
    // Nor is what it generates made shorter: that takes longer than all checks of most processes.
    code: { optimize: false },
    meta: false,
  })
  for (const [name, { has }] of Object.entries(FORMATS)) ajv.addFormat(name, { type: 'string', validate: has })
  return ajv
}

/** Validators of schemas: those that look for the first error only, or those that look for all. */
class Validators {
  readonly #allErrors: boolean
  readonly #bySchema = new WeakMap<TSchema, ValidateFunction>()
  #ajv: Ajv | undefined

  constructor(allErrors: boolean) {
    this.#allErrors = allErrors
  }

  load(): Ajv {
    this.#ajv ??= createAjv(this.#allErrors)
    return this.#ajv
  }

  of(schema: TSchema): ValidateFunction {
    let validate = this.#bySchema.get(schema)
    if (!validate) {
      validate = this.load().compile(schema)
      this.#bySchema.set(schema, validate)
    }
    return validate
  }
}

const first = new Validators(false)
const all = new Validators(true)

/**
 * Loads what checks configurations, which the first check does otherwise: a node does it at its start, so that no caller waits for it and an upgrade
 * in place changes nothing for a node that runs.
 */
export function prepareChecks(): void {
  first.load()
  all.load()
}

/** What a schema's object has, by each name that it is given under: snake_case and lowerCamelCase. */
const namesOf = new WeakMap<object, ReadonlyMap<string, string>>()

function fieldNames(properties: Readonly<Record<string, SchemaNode>>): ReadonlyMap<string, string> {
  let names = namesOf.get(properties)
  if (names === undefined) {
    names = new Map(Object.keys(properties).flatMap((key) => [key, camelCase(key)].map((name) => [name, key])))
    namesOf.set(properties, names)
  }
  return names
}

/** Where the values of a configuration were written, and what is wrong with their names. */
class Places {
  /** What was written, by the pointer that it has once its names are normalised. */
  readonly given = new Map<string, string>()
  readonly problems: Problem[] = []
}

/** Told instead of a value whose names are wrong, when nobody takes down where. */
const FAULTY = Symbol('a name is wrong')

/**
 * Renames lowerCamelCase keys and numbered enums to what the schema says. `places` takes down where everything was and the keys that the
 * schema does not know; without it such a key makes the whole FAULTY, and no pointer is built.
 */
function normalise(node: SchemaNode, value: unknown, places?: Places, at = '', givenAt = ''): unknown {
  places?.given.set(at, givenAt)
  if (node.enumeration && typeof value === 'number') {
    const name = Object.keys(node.enumeration).find((key) => node.enumeration?.[key] === value)
    return name ?? value
  }
  if (node.properties && isObject(value)) {
    const result: Record<string, unknown> = {}
    const known = fieldNames(node.properties)
    for (const key of Object.keys(value)) {
      const item = value[key]
      const name = known.get(key)
      if (name === undefined || Object.hasOwn(result, name)) {
        if (places === undefined) return FAULTY
        if (places.problems.length >= MAX_FOUND) continue
        const message =
          name === undefined
            ? `unknown field "${key}".${suggestion(key, Object.keys(node.properties), places.problems.length)}`
            : `field "${name}" is given twice, in snake_case and in lowerCamelCase`
        places.problems.push({ pointer: below(givenAt, key), message })
      } else if (item !== null && !(item === 0 && node.properties[name].zeroUnset)) {
        const inner = places
          ? normalise(node.properties[name], item, places, below(at, name), below(givenAt, key))
          : normalise(node.properties[name], item)
        if (inner === FAULTY) return FAULTY
        setOwn(result, name, inner)
      }
    }
    return result
  }
  if (node.patternProperties && isObject(value)) {
    const [child] = Object.values(node.patternProperties)
    const result: Record<string, unknown> = {}
    for (const key of Object.keys(value)) {
      const inner = places
        ? normalise(child, value[key], places, below(at, key), below(givenAt, key))
        : normalise(child, value[key])
      if (inner === FAULTY) return FAULTY
      setOwn(result, key, inner)
    }
    return result
  }
  if (node.items && Array.isArray(value)) {
    const { items } = node
    const result = value.map((item, i) =>
      places ? normalise(items, item, places, below(at, i), below(givenAt, i)) : normalise(items, item),
    )
    return result.includes(FAULTY) ? FAULTY : result
  }
  return value
}

/** What a value is, in words. */
export function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return (
    { object: 'an object', string: 'a string', number: 'a number', boolean: 'true or false' }[typeof value as string] ??
    typeof value
  )
}

/** What a message quotes of a value. */
const beginningOf = (text: string | undefined): string | undefined => text?.slice(0, cutAt(text, 80))

/** `before`: problems that were found already. */
function wording(error: ErrorObject, before: number): string {
  if (typeof error.data === 'number' && !Number.isFinite(error.data)) {
    return 'the number is beyond the largest that is read, some 1.8e308'
  }
  const schema = (error.parentSchema ?? {}) as Annotations & { unit?: string }
  const unit = schema.unit && schema.unit !== 'probability' ? ` ${schema.unit}` : ''
  const hint = schema.hint ? ` (${schema.hint})` : ''
  // Of a list or an object not all: it may be as long as the text.
  const isNested = typeof error.data === 'object' && error.data !== null
  const value = schema.secret ? 'this value' : isNested ? typeName(error.data) : beginningOf(JSON.stringify(error.data))
  switch (error.keyword) {
    case 'type':
      return String(error.params.type).endsWith('integer') && typeof error.data === 'number'
        ? `${value} is not a whole number`
        : `must be ${{ integer: 'a whole number', 'string,integer': 'a whole number, or one in a string', number: 'a number', string: 'a string', boolean: 'true or false', object: 'an object', array: 'a list' }[error.params.type as string] ?? error.params.type}, not ${typeName(error.data)}`
    case 'minimum':
      return `${value} is below the minimum of ${error.params.limit}${unit}${hint}`
    case 'maximum': {
      const above = schema.aboveHint ? ` (${schema.aboveHint})` : hint
      return `${value} is above the maximum of ${error.params.limit}${unit}${above}`
    }
    case 'exclusiveMinimum':
      return `${value} must be greater than ${error.params.limit}${unit}${hint}`
    case 'enum': {
      const allowed = error.params.allowedValues as string[]
      const guess = typeof error.data === 'string' ? suggestion(error.data, allowed, before) : ''
      return `${value} is none of ${allowed.join(', ')}.${guess}`
    }
    case 'format':
      return `must be ${FORMATS[error.params.format as string]?.wording ?? error.params.format}${schema.secret ? '' : `, not ${value}`}`
    case 'minLength':
      return error.params.limit === 1 ? 'must not be empty' : `must have at least ${error.params.limit} characters`
    case 'maxLength':
      return `must have at most ${error.params.limit} characters`
    case 'minItems':
      return `needs at least ${error.params.limit} ${error.params.limit === 1 ? 'entry' : 'entries'}`
    case 'maxItems':
      return `takes at most ${error.params.limit} entries`
    default:
      return error.message ?? error.keyword
  }
}

/** Normalises and validates `value`, which stands at `givenAt`; problems carry pointers as given, and are `MAX_FOUND` in all at most. */
export function checkAgainst(schema: TSchema, value: unknown, givenAt: string, problems: Problem[]): unknown {
  const normal = normalise(schema as SchemaNode, value)
  if (normal !== FAULTY && first.of(schema)(normal)) return normal
  // Something is wrong: once more, with an eye to where.
  const places = new Places()
  const result = normalise(schema as SchemaNode, value, places, '', givenAt)
  add(problems, places.problems)
  const validate = all.of(schema)
  if (!validate(result)) {
    const errors = validate.errors ?? []
    const unlisted = new Set(errors.filter(({ keyword }) => keyword === 'enum').map(({ instancePath }) => instancePath))
    for (const error of errors) {
      if (problems.length >= MAX_FOUND) break
      // A number stands for a name: the list of names says what is wrong with one that stands for none.
      if (error.keyword === 'type' && typeof error.data === 'number' && unlisted.has(error.instancePath)) continue
      const pointer = places.given.get(error.instancePath) ?? givenAt + error.instancePath
      if (error.keyword === 'required') {
        const field = error.params.missingProperty as string
        problems.push({ pointer: below(pointer, field), message: `required field "${field}" is missing` })
      } else problems.push({ pointer, message: wording(error, problems.length) })
    }
  }
  return result
}

/** `problems` with their pointers in the casing in which `value`, all of the configuration, has its names. */
export function asWritten<P extends Problem>(problems: readonly P[], value: unknown): P[] {
  return problems.map((problem) => {
    let at = value
    const steps = tokensOf(problem.pointer).map((token) => {
      const name = typeof at === 'object' && at !== null ? (memberNamed(at, token) ?? token) : token
      at = (at as Record<string, unknown> | undefined)?.[name]
      return name
    })
    return { ...problem, pointer: pointerOf(steps) }
  })
}

/** The problems with their pointers below `at`. */
export const under = (at: string, problems: readonly Problem[]): Problem[] =>
  problems.map(({ pointer, message }) => ({ pointer: at + pointer, message }))
