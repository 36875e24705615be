/** The protobuf wire format into service objects: a decoder per message, built once. */
import { isUtf8 } from 'node:buffer'
import protobuf from 'protobufjs'
import { setOwn } from '../text/json-object.ts'
import { below } from '../text/pointer.ts'
import { invalidArgument, ServiceError } from './errors.ts'
import { defaultOf } from './json-decode.ts'
import { type FieldSchema, type MessageSchema, type Scalar, TIMESTAMP } from './schema.ts'
import { LENGTH, wireType } from './wire-type.ts'

type Reader = protobuf.Reader
type Read = (reader: Reader) => unknown
/** Reads the fields of a message, up to `end`. */
type ReadMessage = (reader: Reader, end: number) => unknown
type ReadField = (reader: Reader, into: Record<string, unknown>) => void

/** Who a message is read for: a service, who asked another node for it, or this node itself. Of these two the peer may be of a later version. */
type Audience = 'service' | 'caller' | 'peer'

const decoders: Readonly<Record<Audience, WeakMap<MessageSchema, { read: ReadMessage }>>> = {
  service: new WeakMap(),
  caller: new WeakMap(),
  peer: new WeakMap(),
}

/** Decodes `message`; unknown fields are skipped. Throws INVALID_ARGUMENT on bytes that are none, with the field where one is to blame. */
export function decodeBinary(message: MessageSchema, bytes: Uint8Array): Record<string, unknown> {
  return decodeFor('service', message, bytes)
}

/** Decodes what another node has answered: as decodeBinary does, but a number that an enum does not have stays a number. */
export function decodeAnswer(message: MessageSchema, bytes: Uint8Array): Record<string, unknown> {
  return decodeFor('caller', message, bytes)
}

/**
 * Decodes what another node says for this one to act on: as decodeBinary does, but byte fields are views of `bytes`, and a number that
 * an enum does not have stays a number.
 */
export function decodeFromPeer(message: MessageSchema, bytes: Uint8Array): Record<string, unknown> {
  return decodeFor('peer', message, bytes)
}

function decodeFor(audience: Audience, message: MessageSchema, bytes: Uint8Array): Record<string, unknown> {
  const reader = protobuf.Reader.create(
    bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
  )
  try {
    return decoder(audience, message).read(reader, reader.len) as Record<string, unknown>
  } catch (error) {
    if (error instanceof Misfit) throw invalidArgument(error.pointer, error.message)
    throw new ServiceError('INVALID_ARGUMENT', `the bytes are no ${message.name}`, { cause: error })
  }
}

/** A value that its field does not take; on its way out of the message it learns where it was. */
class Misfit extends Error {
  pointer = ''

  /** The value was at `token` of what is read; thrown on. */
  static at(token: string | number, error: unknown): unknown {
    if (error instanceof Misfit) error.pointer = below('', String(token)) + error.pointer
    return error
  }
}

function decoder(audience: Audience, message: MessageSchema): { read: ReadMessage } {
  const known = decoders[audience].get(message)
  if (known !== undefined) return known
  const made: { read: ReadMessage } = { read: () => undefined }
  decoders[audience].set(message, made)
  made.read = message.name === TIMESTAMP ? readTimestamp : messageReader(audience, message)
  return made
}

function messageReader(audience: Audience, message: MessageSchema): ReadMessage {
  // By tag, not by number: a field of another wire type is an unknown one.
  const readers = new Map<number, ReadField>()
  for (const field of message.fields) {
    for (const [wire, read] of fieldReaders(audience, field, message.fields)) {
      readers.set((field.number << 3) | wire, read)
    }
  }
  const keys = new Map(message.fields.map((field) => [field.number, field.key]))
  const defaults = message.fields.filter((field) => !field.presence)
  return (reader, end) => {
    const decoded: Record<string, unknown> = {}
    let tag = 0
    try {
      while (reader.pos < end) {
        tag = reader.uint32()
        const read = readers.get(tag)
        if (read === undefined) reader.skipType(tag & 7, 0, tag >>> 3)
        else read(reader, decoded)
      }
      if (reader.pos > end) throw new RangeError('a field is longer than the message that holds it')
    } catch (error) {
      throw Misfit.at(keys.get(tag >>> 3) ?? '', error)
    }
    for (const field of defaults) if (decoded[field.key] === undefined) decoded[field.key] = defaultOf(field)
    return decoded
  }
}

/** The times that a Timestamp of protobuf may hold, and RFC 3339 can write. */
const EARLIEST = Date.parse('0001-01-01T00:00:00Z')
const LATEST = Date.parse('9999-12-31T23:59:59.999Z')

function readTimestamp(reader: Reader, end: number): Date {
  let seconds = 0
  let nanos = 0
  while (reader.pos < end) {
    const tag = reader.uint32()
    if (tag === 8) seconds = Number(signed(reader.int64()))
    else if (tag === 16) nanos = reader.int32()
    else reader.skipType(tag & 7, 0, tag >>> 3)
  }
  const milliseconds = seconds * 1000 + Math.floor(nanos / 1_000_000)
  if (milliseconds < EARLIEST || milliseconds > LATEST) throw new Misfit('must be a time of the years 1 to 9999')
  return new Date(milliseconds)
}

/** The readers of a field, each with the wire type it reads; a list of numbers comes packed or not. */
function fieldReaders(
  audience: Audience,
  field: FieldSchema,
  siblings: readonly FieldSchema[],
): readonly (readonly [wire: number, read: ReadField])[] {
  const read = valueReader(audience, field)
  const { key } = field
  if (field.mapKey !== undefined) return [[LENGTH, entryReader(field, read)]]
  const wire = wireType(field)
  if (field.repeated) {
    const one = listReader(key, (reader, list) => list.push(read(reader)))
    if (wire === LENGTH) return [[LENGTH, one]]
    const packed = listReader(key, (reader, list) => {
      const end = reader.uint32() + reader.pos
      while (reader.pos < end) list.push(read(reader))
    })
    return [
      [wire, one],
      [LENGTH, packed],
    ]
  }
  if (field.oneof === undefined) {
    return [
      [
        wire,
        (reader, into) => {
          into[key] = read(reader)
        },
      ],
    ]
  }
  // Of a one-of's members, the last on the wire holds.
  const others = siblings.filter((sibling) => sibling.oneof === field.oneof && sibling !== field).map(({ key }) => key)
  return [
    [
      wire,
      (reader, into) => {
        for (const member in into) if (others.includes(member)) delete into[member]
        into[key] = read(reader)
      },
    ],
  ]
}

function entryReader(field: FieldSchema, read: Read): ReadField {
  const { key } = field
  const absent = defaultOf({ ...field, mapKey: undefined })
  const keyTag = (1 << 3) | LENGTH
  const valueTag = (2 << 3) | wireType(field)
  const readValue = (reader: Reader, name: string): unknown => {
    try {
      return read(reader)
    } catch (error) {
      throw Misfit.at(name, error)
    }
  }
  return (reader, into) => {
    const end = reader.uint32() + reader.pos
    let name = ''
    let value = absent
    while (reader.pos < end) {
      const tag = reader.uint32()
      if (tag === keyTag) name = readKey(reader)
      else if (tag === valueTag) value = readValue(reader, name)
      else reader.skipType(tag & 7, 0, tag >>> 3)
    }
    into[key] ??= {}
    setOwn(into[key] as Record<string, unknown>, name, value ?? {})
  }
}

function listReader(key: string, read: (reader: Reader, list: unknown[]) => void): ReadField {
  return (reader, into) => {
    into[key] ??= []
    const list = into[key] as unknown[]
    try {
      read(reader, list)
    } catch (error) {
      throw Misfit.at(list.length, error)
    }
  }
}

function valueReader(audience: Audience, field: FieldSchema): Read {
  const { type } = field
  if (type.kind === 'message') {
    const inner = decoder(audience, type.message)
    return (reader) => {
      const length = reader.uint32()
      const end = reader.pos + length
      if (end > reader.len) throw new RangeError('a message is longer than the bytes that hold it')
      return inner.read(reader, end)
    }
  }
  if (type.kind === 'enum') {
    const { names, values } = type.enum
    return (reader) => {
      const number = reader.int32()
      const name = names.get(number)
      if (name !== undefined) return name
      if (audience !== 'service') return number
      const known = Object.keys(values).join(', ')
      throw new Misfit(`${number} is none of ${known}`)
    }
  }
  if (type.scalar === 'bytes' && audience === 'peer') return (reader) => reader.bytes()
  return scalarReader(type.scalar)
}

function scalarReader(scalar: Scalar): Read {
  switch (scalar) {
    case 'int64':
      return (reader) => signed(reader.int64())
    case 'uint64':
      return (reader) => BigInt.asUintN(64, signed(reader.uint64()))
    case 'bytes':
      return (reader) => new Uint8Array(reader.bytes())
    case 'string':
      return (reader) => readText(reader, '')
    default:
      return (reader) => reader[scalar]()
  }
}

const readKey = (reader: Reader): string => readText(reader, 'the key ')

/** A string; in place of bytes that are no UTF-8 (RFC 3629) decoders put U+FFFD, so a text without that needs no second look. */
function readText(reader: Reader, what: string): string {
  const begin = reader.pos
  const text = reader.string()
  if (!text.includes('\ufffd')) return text
  reader.pos = begin
  if (!isUtf8(reader.bytes())) throw new Misfit(`${what}must be UTF-8`)
  return text
}

function signed(value: number | protobuf.Long): bigint {
  if (typeof value === 'number') return BigInt(value)
  return BigInt.asIntN(64, (BigInt(value.high) << 32n) | BigInt(value.low >>> 0))
}
