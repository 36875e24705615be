/** Service objects into the protobuf wire format: an encoder per message, built once. */
import protobuf from 'protobufjs'
import { type FieldSchema, type MessageSchema, TIMESTAMP } from './schema.ts'
import { bytesOf } from './unchanging.ts'
import { LENGTH, wireType } from './wire-type.ts'

type Writer = protobuf.Writer
type Write = (writer: Writer, value: unknown) => void

/** Writes the fields of a service object, without a length before them. */
interface Encoder {
  write: Write
  /** One field each, by key. */
  fields: ReadonlyMap<string, Write>
}

/** A writer whose buffer has grown beyond this is not used again, bytes. */
const MAX_WRITER_BYTES = 64 * 1024

const encoders = new WeakMap<MessageSchema, Encoder>()
/** What is encoded next is written here, in a buffer that has grown to what most messages need, and copied out. */
let spare = protobuf.Writer.create()

/** Encodes a service object (see handlers.ts) as `message`. Half a surrogate pair becomes U+FFFD. The bytes are the caller's. */
export function encodeBinary(message: MessageSchema, value: unknown): Buffer {
  return written(encoder(message).write, value)
}

/** As `encodeBinary`; the bytes of an unchanging value are made once and stay the value's: not to be written to. */
export function binaryOf(message: MessageSchema, value: object): Uint8Array {
  return bytesOf(value, (known) => encodeBinary(message, known)) ?? encodeBinary(message, value)
}

/** Encodes a service object of which only the member `key`, a field of `message`, is set: to `value`. */
export function encodeMember(message: MessageSchema, key: string, value: unknown): Buffer {
  const write = encoder(message).fields.get(key)
  if (write === undefined) throw new TypeError(`${message.name} has no ${key}`)
  return written(write, value)
}

function written(write: Write, value: unknown): Buffer {
  const writer = spare
  try {
    write(writer, value)
  } catch (error) {
    // It may be in the middle of an inner message.
    spare = protobuf.Writer.create()
    throw error
  }
  const bytes = writer.finish() as Buffer
  if (bytes.length > MAX_WRITER_BYTES) spare = protobuf.Writer.create()
  else writer.reset()
  return bytes
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

function writeTimestamp(writer: Writer, value: unknown): void {
  const milliseconds = (value as Date).getTime()
  const seconds = Math.floor(milliseconds / 1000)
  if (seconds !== 0) writer.uint32(8).int64(seconds)
  const nanos = (milliseconds - seconds * 1000) * 1_000_000
  if (nanos !== 0) writer.uint32(16).int32(nanos)
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
    const encode = (value: unknown): Uint8Array => {
      // Not the spare writer: this is in the middle of another message.
      const writer = protobuf.Writer.create()
      inner.write(writer, value)
      return writer.finish()
    }
    return (writer, value) => {
      const bytes = bytesOf(value as object, encode)
      if (bytes !== undefined) {
        writer.bytes(bytes)
        return
      }
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

/** protobufjs would write half a surrogate pair as it is, which is no UTF-8. */
function wellFormed(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed()
}

function longBits(value: bigint): protobuf.Long {
  const low = Number(BigInt.asIntN(32, value))
  const high = Number(BigInt.asIntN(32, value >> 32n))
  return { low, high, unsigned: true } as protobuf.Long
}
