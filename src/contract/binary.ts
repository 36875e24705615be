/** The protobuf wire format of service objects and of the link's frames: an encoder and a decoder per message, built once. */
import { isUtf8 } from 'node:buffer'
import protobuf from 'protobufjs'
import { invalidArgument, ServiceError } from './errors.ts'
import { below, defaultOf, put } from './json-decode.ts'
import { type FieldSchema, type MessageSchema, type Scalar, TIMESTAMP } from './schema.ts'

type Writer = protobuf.Writer
type Reader = protobuf.Reader
type Write = (writer: Writer, value: unknown) => void
type Read = (reader: Reader) => unknown
/** Reads the fields of a message, up to `end`. */
type ReadMessage = (reader: Reader, end: number) => unknown
type ReadField = (reader: Reader, into: Record<string, unknown>) => void

const VARINT = 0
const FIXED64 = 1
const LENGTH = 2
const FIXED32 = 5

/** Writes the fields of a service object, without a length before them. */
interface Encoder {
  write: Write
  /** One field each, by key. */
  fields: ReadonlyMap<string, Write>
}

/** Who a message is read for: a service, or this node itself, which may have a peer of a later version. */
type Audience = 'service' | 'peer'

const encoders = new WeakMap<MessageSchema, Encoder>()
const decoders: Readonly<Record<Audience, WeakMap<MessageSchema, { read: ReadMessage }>>> = {
  service: new WeakMap(),
  peer: new WeakMap(),
}

/** Encodes a service object (see services/operations.ts) as `message`. Half a surrogate pair becomes U+FFFD. */
export function encodeBinary(message: MessageSchema, value: unknown): Buffer {
  const writer = protobuf.Writer.create()
  encoder(message).write(writer, value)
  return finish(writer)
}

/** Encodes a service object of which only the member `key`, a field of `message`, is set: to `value`. */
export function encodeMember(message: MessageSchema, key: string, value: unknown): Buffer {
  const writer = protobuf.Writer.create()
  encoder(message).fields.get(key)?.(writer, value)
  return finish(writer)
}

function finish(writer: Writer): Buffer {
  const bytes = writer.finish()
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/**
 * Encodes a service object in parts of about `size` bytes, cut between the members of its lists of messages: put one after the other
 * they are the whole message, as the wire format of protobuf has it. At least one part, which may be empty.
 */
export function* encodeInParts(message: MessageSchema, value: unknown, size: number): Generator<Uint8Array, void> {
  const lists = message.fields.filter((field) => field.repeated && field.type.kind === 'message')
  const rest = { ...(value as Record<string, unknown>) }
  for (const { key } of lists) delete rest[key]
  const first = encodeBinary(message, rest)
  let waiting = first.length === 0 ? [] : [first]
  let length = first.length
  let isBegun = false
  /** A part of one buffer is that buffer, not a copy; here nothing is kept of it. */
  const part = (): Buffer => {
    const bytes = waiting.length === 1 ? (waiting[0] as Buffer) : Buffer.concat(waiting, length)
    waiting = []
    length = 0
    isBegun = true
    return bytes
  }
  for (const { key } of lists) {
    for (const item of ((value as Record<string, unknown>)[key] ?? []) as unknown[]) {
      waiting.push(encodeMember(message, key, [item]))
      length += (waiting.at(-1) as Buffer).length
      if (length >= size) yield part()
    }
  }
  if (length > 0 || !isBegun) yield part()
}

/** Decodes `message`; unknown fields are skipped. Throws INVALID_ARGUMENT on bytes that are none, with the field where one is to blame. */
export function decodeBinary(message: MessageSchema, bytes: Uint8Array): Record<string, unknown> {
  return decodeFor('service', message, bytes)
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

function encoder(message: MessageSchema): Encoder {
  const known = encoders.get(message)
  if (known !== undefined) return known
  // Entered before its fields are: a message may hold itself.
  const made: Encoder = { write: () => undefined, fields: new Map() }
  encoders.set(message, made)
  if (message.name === TIMESTAMP) made.write = writeTimestamp
  else Object.assign(made, messageEncoder(message))
  return made
}

function messageEncoder(message: MessageSchema): Encoder {
  const writers = message.fields.map((field) => ({ key: field.key, write: fieldWriter(field) }))
  return {
    write(writer, value) {
      for (const field of writers) {
        const member = (value as Record<string, unknown>)[field.key]
        if (member !== undefined && member !== null) field.write(writer, member)
      }
    },
    fields: new Map(writers.map(({ key, write }) => [key, write])),
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

function writeTimestamp(writer: Writer, value: unknown): void {
  const milliseconds = (value as Date).getTime()
  const seconds = Math.floor(milliseconds / 1000)
  if (seconds !== 0) writer.uint32(8).int64(seconds)
  const nanos = (milliseconds - seconds * 1000) * 1_000_000
  if (nanos !== 0) writer.uint32(16).int32(nanos)
}

function readTimestamp(reader: Reader, end: number): Date {
  let seconds = 0
  let nanos = 0
  while (reader.pos < end) {
    const tag = reader.uint32()
    if (tag === 8) seconds = Number(signed(reader.int64()))
    else if (tag === 16) nanos = reader.int32()
    else reader.skipType(tag & 7, 0, tag >>> 3)
  }
  return new Date(seconds * 1000 + Math.floor(nanos / 1_000_000))
}

function fieldWriter(field: FieldSchema): Write {
  const { type } = field
  const write = valueWriter(field)
  const tag = (field.number << 3) | wireType(field)
  if (field.mapKey !== undefined) {
    const entry = (field.number << 3) | LENGTH
    const valueTag = (2 << 3) | wireType(field)
    return (writer, map) => {
      for (const key of Object.keys(map as object)) {
        writer.uint32(entry).fork()
        writer.uint32(10).string(wellFormed(key))
        write(writer.uint32(valueTag), (map as Record<string, unknown>)[key])
        writer.ldelim()
      }
    }
  }
  if (field.repeated) {
    if (type.kind === 'message' || (type.kind === 'scalar' && (type.scalar === 'string' || type.scalar === 'bytes'))) {
      return (writer, list) => {
        for (const item of list as unknown[]) write(writer.uint32(tag), item)
      }
    }
    const packed = (field.number << 3) | LENGTH
    return (writer, list) => {
      if ((list as unknown[]).length === 0) return
      writer.uint32(packed).fork()
      for (const item of list as unknown[]) write(writer, item)
      writer.ldelim()
    }
  }
  if (field.presence) return (writer, value) => write(writer.uint32(tag), value)
  const isDefault = defaultTest(field)
  return (writer, value) => {
    if (!isDefault(value)) write(writer.uint32(tag), value)
  }
}

/** Whether a value is its field's proto3 default, which is not written. */
function defaultTest({ type }: FieldSchema): (value: unknown) => boolean {
  if (type.kind === 'enum') {
    const first = type.enum.names.get(0)
    return (value) => value === first || value === 0
  }
  if (type.kind === 'scalar' && type.scalar === 'bytes') return (value) => (value as Uint8Array).length === 0
  return (value) => value === '' || value === 0n || value === false || Object.is(value, 0)
}

function valueWriter({ type }: FieldSchema): Write {
  if (type.kind === 'message') {
    const inner = encoder(type.message)
    return (writer, value) => {
      writer.fork()
      inner.write(writer, value)
      writer.ldelim()
    }
  }
  if (type.kind === 'enum') {
    const { values } = type.enum
    return (writer, value) => {
      writer.int32(typeof value === 'number' ? value : (values[value as string] ?? 0))
    }
  }
  switch (type.scalar) {
    case 'int64':
    case 'uint64':
      return (writer, value) => {
        writer.uint64(typeof value === 'bigint' ? longBits(value) : (value as number))
      }
    case 'string':
      return (writer, value) => {
        writer.string(wellFormed(value as string))
      }
    default: {
      const { scalar } = type
      return (writer, value) => {
        writer[scalar](value as never)
      }
    }
  }
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
    put(into[key] as Record<string, unknown>, name, value ?? {})
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
      if (audience === 'peer') return number
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

/** protobufjs would write half a surrogate pair as it is, which is no UTF-8. */
function wellFormed(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed()
}

function wireType({ type }: FieldSchema): number {
  if (type.kind === 'message') return LENGTH
  if (type.kind === 'enum') return VARINT
  switch (type.scalar) {
    case 'double':
      return FIXED64
    case 'float':
      return FIXED32
    case 'string':
    case 'bytes':
      return LENGTH
    default:
      return VARINT
  }
}

function longBits(value: bigint): protobuf.Long {
  const low = Number(BigInt.asIntN(32, value))
  const high = Number(BigInt.asIntN(32, value >> 32n))
  return { low, high, unsigned: true } as protobuf.Long
}

function signed(value: number | protobuf.Long): bigint {
  if (typeof value === 'number') return BigInt(value)
  return BigInt.asIntN(64, (BigInt(value.high) << 32n) | BigInt(value.low >>> 0))
}
