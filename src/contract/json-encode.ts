/** proto3 JSON from service objects: an encoder per message, built once, that concatenates text. */

import { type FieldSchema, type MessageSchema, TIMESTAMP } from './schema.ts'
import { textOf } from './unchanging.ts'

/** A service object, or a value in one. */
type Value = unknown
type Encode = (value: Value) => string

const encoders = new WeakMap<MessageSchema, Encode>()

/**
 * The encoder of `message`: takes a service object (see services/operations.ts), returns JSON text with every field, defaults
 * included; unset optional and one-of members are left out, 64-bit integers are strings, bytes base64, timestamps RFC 3339.
 */
export function jsonEncoder(message: MessageSchema): Encode {
  const known = encoders.get(message)
  if (known !== undefined) return known
  // Entered first, so that a message may hold itself.
  let encode: Encode = () => '{}'
  const late: Encode = (value) => encode(value)
  encoders.set(message, late)
  encode = message.name === TIMESTAMP ? encodeTimestamp : messageEncoder(message)
  encoders.set(message, encode)
  return encode
}

function messageEncoder(message: MessageSchema): Encode {
  const fields = message.fields.map((field) => ({
    key: field.key,
    prefix: `${JSON.stringify(field.key)}:`,
    next: `,${JSON.stringify(field.key)}:`,
    presence: field.presence,
    encode: fieldEncoder(field),
  }))
  return (value) => {
    let text = '{'
    for (const field of fields) {
      const member = (value as Record<string, Value>)[field.key]
      if (field.presence && (member === undefined || member === null)) continue
      text += (text.length === 1 ? field.prefix : field.next) + field.encode(member)
    }
    return `${text}}`
  }
}

function fieldEncoder(field: FieldSchema): Encode {
  const encode = valueEncoder(field)
  if (field.mapKey !== undefined) return (value) => encodeMap(value as Record<string, Value> | undefined, encode)
  if (field.repeated) return (value) => encodeList(value as readonly Value[] | undefined, encode)
  return encode
}

function encodeMap(map: Record<string, Value> | undefined, encode: Encode): string {
  let text = '{'
  if (map !== undefined) {
    for (const key of Object.keys(map)) {
      const entry = `${JSON.stringify(key)}:${encode(map[key])}`
      text += text.length === 1 ? entry : `,${entry}`
    }
  }
  return `${text}}`
}

function encodeList(list: readonly Value[] | undefined, encode: Encode): string {
  let text = '['
  if (list !== undefined) {
    for (const item of list) text += text.length === 1 ? encode(item) : `,${encode(item)}`
  }
  return `${text}]`
}

function valueEncoder({ type }: FieldSchema): Encode {
  if (type.kind === 'message') {
    const encode = jsonEncoder(type.message)
    return (value) => textOf(value as object, encode)
  }
  if (type.kind === 'enum') {
    const { names } = type.enum
    const first = JSON.stringify(names.get(0) ?? '')
    const quoted = new Map(Object.keys(type.enum.values).map((name) => [name, JSON.stringify(name)]))
    return (value) => (value === undefined ? first : (quoted.get(value as string) ?? JSON.stringify(value)))
  }
  switch (type.scalar) {
    case 'string':
      return (value) => (value === undefined ? '""' : JSON.stringify(value))
    case 'bool':
      return (value) => (value === true ? 'true' : 'false')
    case 'bytes':
      return (value) => (value === undefined ? '""' : `"${base64(value as Uint8Array)}"`)
    case 'int64':
    case 'uint64':
      return (value) => (value === undefined ? '"0"' : `"${BigInt(value as bigint | number)}"`)
    case 'int32':
    case 'uint32':
      return (value) => (value === undefined ? '0' : String(value))
    case 'double':
    case 'float':
      return (value) => encodeDouble(value as number | undefined)
  }
}

function encodeDouble(value = 0): string {
  if (Number.isFinite(value)) return Object.is(value, -0) ? '-0' : String(value)
  return Number.isNaN(value) ? '"NaN"' : value > 0 ? '"Infinity"' : '"-Infinity"'
}

function encodeTimestamp(value: Value): string {
  return `"${(value as Date).toISOString()}"`
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}
