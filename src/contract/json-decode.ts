/** Service objects from proto3 JSON: a decoder per message, built once, that finds every problem of a request. */

import { readBase64 } from '../text/base64.ts'
import { isObject, setOwn } from '../text/json-object.ts'
import { nearest } from '../text/names.ts'
import { below, type Problem } from '../text/pointer.ts'
import { answerable, ServiceError } from './errors.ts'
import { type EnumSchema, type FieldSchema, type MessageSchema, type Scalar, TIMESTAMP } from './schema.ts'

type Decode = (value: unknown, pointer: string, problems: Problem[]) => unknown
type MessageDecode = (value: unknown, pointer: string, problems: Problem[], given?: ReadonlySet<string>) => unknown

const decoders = new WeakMap<MessageSchema, MessageDecode>()

/**
 * Reads a parsed JSON value as `message`. Field names may be lowerCamelCase or snake_case, integers numbers or strings, enums names
 * or numbers; null stands for absent. Fields without presence that are absent get their default. Throws INVALID_ARGUMENT
 * with every problem and its JSON pointer. `given`: keys of fields that the request has from elsewhere (a path): they are not offered where
 * a field is unknown.
 */
export function decodeJson(
  message: MessageSchema,
  value: unknown,
  given?: ReadonlySet<string>,
): Record<string, unknown> {
  const problems: Problem[] = []
  const decoded = jsonDecoder(message)(value, '', problems, given)
  refuse(problems)
  return decoded as Record<string, unknown>
}

/** Throws INVALID_ARGUMENT when there are problems; the message holds them all. */
export function refuse(problems: readonly Problem[]): void {
  if (problems.length === 0) return
  const told = answerable(problems)
  const text = told.map(({ pointer, message }) => (pointer === '' ? message : `${pointer}: ${message}`)).join('; ')
  throw new ServiceError('INVALID_ARGUMENT', text, { problems: told })
}

function jsonDecoder(message: MessageSchema): MessageDecode {
  const known = decoders.get(message)
  if (known !== undefined) return known
  let decode: MessageDecode = () => undefined
  decoders.set(message, (value, pointer, problems) => decode(value, pointer, problems))
  decode = message.name === TIMESTAMP ? decodeTimestamp : messageDecoder(message)
  decoders.set(message, decode)
  return decode
}

/** Problems that come with a guess of what was meant: each costs time. */
const MAX_HINTS = 100

function messageDecoder(message: MessageSchema): MessageDecode {
  const fields = new Map<string, { field: FieldSchema; decode: Decode }>()
  for (const field of message.fields) {
    const entry = { field, decode: fieldDecoder(field) }
    fields.set(field.name, entry)
    fields.set(field.key, entry)
  }
  const keys = message.fields.map((field) => field.key)
  const defaults = message.fields.filter((field) => !field.presence)
  return (value, pointer, problems, given) => {
    if (!isObject(value)) {
      problems.push({ pointer, message: `must be a JSON object, not ${describe(value)}` })
      return undefined
    }
    const decoded: Record<string, unknown> = {}
    const seen = new Map<string, string>()
    for (const key of Object.keys(value)) {
      const entry = fields.get(key)
      // Names of fields need no escapes.
      const at = entry === undefined ? below(pointer, key) : `${pointer}/${key}`
      if (entry === undefined) {
        const offered = given === undefined ? keys : keys.filter((known) => !given.has(known))
        const guess = problems.length < MAX_HINTS ? nearest(key, offered) : undefined
        const hint = guess === undefined ? known(offered) : `did you mean ${JSON.stringify(guess)}?`
        problems.push({ pointer: at, message: `unknown field ${JSON.stringify(key)}; ${hint}` })
        continue
      }
      if (value[key] === null) continue
      const { field, decode } = entry
      const slot = field.oneof ?? field.key
      const earlier = seen.get(slot)
      if (earlier !== undefined) {
        problems.push({ pointer: at, message: `cannot be set together with ${JSON.stringify(earlier)}; leave one out` })
        continue
      }
      seen.set(slot, key)
      decoded[field.key] = decode(value[key], at, problems)
    }
    for (const field of defaults) if (decoded[field.key] === undefined) decoded[field.key] = defaultOf(field)
    return decoded
  }
}

function known(keys: readonly string[]): string {
  return keys.length === 0 ? 'this request has no fields' : `known are ${keys.join(', ')}`
}

/** The proto3 default of a field without presence. */
export function defaultOf(field: FieldSchema): unknown {
  if (field.mapKey !== undefined) return {}
  if (field.repeated) return []
  const { type } = field
  if (type.kind === 'enum') return type.enum.names.get(0)
  if (type.kind === 'message') return undefined
  switch (type.scalar) {
    case 'string':
      return ''
    case 'bool':
      return false
    case 'bytes':
      return new Uint8Array(0)
    case 'int64':
    case 'uint64':
      return 0n
    default:
      return 0
  }
}

function fieldDecoder(field: FieldSchema): Decode {
  const { type } = field
  const decode: Decode =
    type.kind === 'message'
      ? jsonDecoder(type.message)
      : type.kind === 'enum'
        ? enumDecoder(type.enum)
        : scalarDecoder(type.scalar)
  if (field.mapKey !== undefined) return mapDecoder(decode)
  return field.repeated ? listDecoder(decode) : decode
}

function mapDecoder(decode: Decode): Decode {
  return (value, pointer, problems) => {
    if (!isObject(value)) {
      problems.push({ pointer, message: `must be a JSON object (a map), not ${describe(value)}` })
      return undefined
    }
    const map: Record<string, unknown> = {}
    for (const key of Object.keys(value)) {
      const at = below(pointer, key)
      if (LONE_SURROGATE.test(key)) problems.push({ pointer: at, message: `the key must be ${UNICODE}` })
      setOwn(map, key, decode(value[key], at, problems))
    }
    return map
  }
}

function listDecoder(decode: Decode): Decode {
  return (value, pointer, problems) => {
    if (!Array.isArray(value)) {
      problems.push({ pointer, message: `must be a JSON array, not ${describe(value)}` })
      return undefined
    }
    return value.map((item: unknown, index) => decode(item, `${pointer}/${index}`, problems))
  }
}

function enumDecoder(type: EnumSchema): Decode {
  const names = Object.keys(type.values)
  return (value, pointer, problems) => {
    if (typeof value === 'string') {
      if (Object.hasOwn(type.values, value)) return value
      const name = /^\d{1,10}$/.test(value) ? type.names.get(Number(value)) : undefined
      if (name !== undefined) return name
    } else if (typeof value === 'number') {
      const name = type.names.get(value)
      if (name !== undefined) return name
    }
    problems.push({ pointer, message: `must be one of ${names.join(', ')}, not ${describe(value)}` })
    return undefined
  }
}

const RANGES = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  uint64: [0n, 2n ** 64n - 1n],
} as const

function scalarDecoder(scalar: Scalar): Decode {
  switch (scalar) {
    case 'string':
      return decodeString
    case 'bool':
      return typed((value) => (typeof value === 'boolean' ? value : undefined), 'true or false')
    case 'bytes':
      return typed(readBytes, 'a base64 string')
    case 'double':
    case 'float':
      return decodeDouble
    case 'int32':
    case 'uint32': {
      const [least, most] = RANGES[scalar]
      const read = (value: unknown): number | undefined => {
        const integer = readInteger(value, least, most)
        return integer === undefined ? undefined : Number(integer)
      }
      return typed(read, `an integer from ${least} to ${most}`)
    }
    case 'int64':
    case 'uint64': {
      const [least, most] = RANGES[scalar]
      const decode = typed((value) => readInteger(value, least, most), `an integer from ${least} to ${most}`)
      return (value, pointer, problems) => {
        if (!isRounded(value)) return decode(value, pointer, problems)
        const message = `must be sent as a string: JSON readers round numbers of 2^53 and more (an integer from ${least} to ${most})`
        problems.push({ pointer, message })
        return undefined
      }
    }
  }
}

/** A number that JSON.parse may have rounded: what was sent is not known any more. */
function isRounded(value: unknown): boolean {
  return typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER
}

function typed(read: (value: unknown) => unknown, expected: string): Decode {
  return (value, pointer, problems) => {
    const result = read(value)
    if (result === undefined) problems.push({ pointer, message: `must be ${expected}, not ${describe(value)}` })
    return result
  }
}

const LONE_SURROGATE = /\p{Surrogate}/u
const UNICODE = 'Unicode text without lone surrogates'

/** A lone surrogate (`\ud800`) cannot be written in UTF-8: it would come back as another string. */
function decodeString(value: unknown, pointer: string, problems: Problem[]): string | undefined {
  if (typeof value === 'string' && !LONE_SURROGATE.test(value)) return value
  const expected = typeof value === 'string' ? UNICODE : `a string, not ${describe(value)}`
  problems.push({ pointer, message: `must be ${expected}` })
  return undefined
}

function readInteger(value: unknown, least: bigint, most: bigint): bigint | undefined {
  let integer: bigint
  if (typeof value === 'number' && Number.isSafeInteger(value)) integer = BigInt(value)
  else if (typeof value === 'string' && /^-?\d{1,20}$/.test(value)) integer = BigInt(value)
  else return undefined
  return integer >= least && integer <= most ? integer : undefined
}

/** What proto3 JSON writes for the doubles that JSON has no number for. */
const UNBOUNDED: readonly unknown[] = ['NaN', 'Infinity', '-Infinity']

const anyDouble = typed(readDouble, 'a number')

/** Of a number that is too large JSON.parse makes an infinite one, which was not sent. */
function decodeDouble(value: unknown, pointer: string, problems: Problem[]): unknown {
  const number = anyDouble(value, pointer, problems)
  if (number === undefined || Number.isFinite(number) || UNBOUNDED.includes(value)) return number
  problems.push({ pointer, message: 'the number is beyond the largest that is read, some 1.8e308' })
  return undefined
}

function readDouble(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value !== 'string') return undefined
  if (UNBOUNDED.includes(value)) return Number(value)
  return /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(value) ? Number(value) : undefined
}

function readBytes(value: unknown): Uint8Array | undefined {
  const bytes = typeof value === 'string' ? readBase64(value) : undefined
  return bytes && new Uint8Array(bytes)
}

const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/

function decodeTimestamp(value: unknown, pointer: string, problems: Problem[]): Date | undefined {
  const date = typeof value === 'string' && RFC_3339.test(value) ? new Date(value) : undefined
  if (date !== undefined && !Number.isNaN(date.getTime())) return date
  problems.push({ pointer, message: `must be an RFC 3339 timestamp, not ${describe(value)}` })
  return undefined
}

/** What a value is, for a message: short, and never a whole string, which could hold a secret. */
function describe(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object') return 'an object'
  if (typeof value === 'string')
    return value.length <= 32 ? JSON.stringify(value) : `a string of ${value.length} characters`
  return isRounded(value) ? 'a number of 2^53 or more' : String(value)
}
