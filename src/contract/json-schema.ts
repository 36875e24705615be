/** JSON Schemas of messages as the JSON codec writes them. */
import { type FieldSchema, type MessageSchema, type Scalar, type Schema, TIMESTAMP } from './schema.ts'

/** A JSON Schema, or a part of one. */
export type JsonSchema = Readonly<Record<string, unknown>>

const WHOLE = { type: 'string', pattern: '^-?\\d+$' }
const REAL = { type: ['number', 'string'] }
const SCALARS: Readonly<Record<Scalar, JsonSchema>> = {
  double: REAL,
  float: REAL,
  int32: { type: 'integer' },
  uint32: { type: 'integer', minimum: 0 },
  int64: WHOLE,
  uint64: WHOLE,
  bool: { type: 'boolean' },
  string: { type: 'string' },
  bytes: { type: 'string', contentEncoding: 'base64' },
}

/** The schema of `message`, in which every field that is always written is required, and no other field is allowed. */
function jsonSchemaOf(message: MessageSchema): JsonSchema {
  if (message.name === TIMESTAMP) return { type: 'string', format: 'date-time' }
  return {
    type: 'object',
    ...(message.comment === '' ? {} : { description: oneLine(message.comment) }),
    properties: Object.fromEntries(message.fields.map((field) => [field.key, fieldSchema(field)])),
    required: message.fields.filter(({ presence }) => !presence).map(({ key }) => key),
    additionalProperties: false,
  }
}

/** The schema of the message of that full name. */
export function jsonSchemaNamed(schema: Schema, name: string): JsonSchema {
  const message = schema.messages.get(name)
  if (message === undefined) throw new Error(`there is no message ${name}`)
  return jsonSchemaOf(message)
}

const oneLine = (comment: string): string => comment.replace(/\s*\n\s*/g, ' ').trim()

function fieldSchema(field: FieldSchema): JsonSchema {
  const value = valueSchema(field)
  const description = field.comment === '' ? {} : { description: oneLine(field.comment) }
  if (field.mapKey !== undefined) return { type: 'object', ...description, additionalProperties: value }
  if (field.repeated) return { type: 'array', ...description, items: value }
  return { ...value, ...description }
}

function valueSchema({ type }: FieldSchema): JsonSchema {
  if (type.kind === 'message') return jsonSchemaOf(type.message)
  if (type.kind === 'enum') return { type: 'string', enum: Object.keys(type.enum.values) }
  return SCALARS[type.scalar]
}
