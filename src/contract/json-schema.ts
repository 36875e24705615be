/** The messages of requests and answers as JSON Schema (2020-12): proto3 JSON as this API has it (docs/api.md). */
import { oneofsOf, reachedBy, requestName, typeName, words } from './reach.ts'
import { type EnumSchema, type FieldSchema, type MessageSchema, type Schema, TIMESTAMP } from './schema.ts'

/** A JSON Schema, or a part of one. */
export type JsonSchema = Record<string, unknown>

type Direction = 'request' | 'answer'

const INTEGERS = {
  int32: { type: 'integer', format: 'int32', minimum: -(2 ** 31), maximum: 2 ** 31 - 1 },
  uint32: { type: 'integer', minimum: 0, maximum: 2 ** 32 - 1 },
  int64: { type: 'string', pattern: '^-?[0-9]{1,19}$' },
  uint64: { type: 'string', pattern: '^[0-9]{1,20}$' },
} as const

const NUMBER = {
  description: 'A number; those that JSON has not are strings.',
  oneOf: [{ type: 'number' }, { type: 'string', enum: ['NaN', 'Infinity', '-Infinity'] }],
}

/** Writes schemas that refer to each other below `base`, such as `#/components/schemas/`. */
export class MessageSchemas {
  readonly #base: string
  readonly #schema: Schema
  readonly #requests: ReadonlySet<MessageSchema>
  readonly #answers: ReadonlySet<MessageSchema>
  readonly #contents: Readonly<Record<string, JsonSchema>>

  /** `contents`: what the JSON in a text field of that key is. */
  constructor(schema: Schema, base: string, contents: Readonly<Record<string, JsonSchema>> = {}) {
    const { requests, answers } = reachedBy(schema)
    this.#base = base
    this.#contents = contents
    this.#schema = schema
    this.#requests = requests
    this.#answers = answers
  }

  /** Every message and enum of requests and answers by its name. What both hold is there twice: requests may leave fields out. */
  all(): Record<string, JsonSchema> {
    const { enums } = reachedBy(this.#schema)
    return Object.fromEntries([
      ...[...enums].map((type) => [typeName(type.name), enumSchema(type)]),
      ['Number', NUMBER],
      ...[...this.#answers].map((message) => [typeName(message.name), this.#object(message, 'answer')]),
      ...[...this.#requests].map((message) => [requestName(message, this.#answers), this.#object(message, 'request')]),
    ])
  }

  /** `{ $ref }` of a request, or of a message in one. */
  request(message: MessageSchema): JsonSchema {
    return { $ref: this.#base + requestName(message, this.#answers) }
  }

  /** `{ $ref }` of an answer. */
  answer(message: MessageSchema): JsonSchema {
    return { $ref: this.#base + typeName(message.name) }
  }

  /** A request without the fields that its path names: the body. */
  body(message: MessageSchema, inPath: ReadonlySet<string>): JsonSchema {
    if (inPath.size === 0) return this.request(message)
    const fields = message.fields.filter(({ name }) => !inPath.has(name))
    return this.#object({ ...message, fields }, 'request')
  }

  /** The value of a field; the whole list or map where it is one. */
  field(field: FieldSchema, direction: Direction): JsonSchema {
    const value = this.#value(field, direction)
    const schema =
      field.mapKey !== undefined
        ? { type: 'object', additionalProperties: value }
        : field.repeated
          ? { type: 'array', items: value }
          : value
    const content = this.#contents[field.key]
    return {
      ...schema,
      ...(field.comment === '' ? {} : { description: words(field.comment) }),
      ...(content === undefined ? {} : { contentMediaType: 'application/json', contentSchema: content }),
    }
  }

  #object(message: MessageSchema, direction: Direction): JsonSchema {
    const { comment, fields } = message
    const always = direction === 'answer' ? fields.filter(({ presence }) => !presence) : []
    return {
      type: 'object',
      ...(comment === '' ? {} : { description: words(comment) }),
      properties: Object.fromEntries(fields.map((field) => [field.key, this.field(field, direction)])),
      ...(always.length === 0 ? {} : { required: always.map(({ key }) => key) }),
      // A node tells of a field that it does not know; who reads an answer of a later version passes it over.
      ...(direction === 'request' ? { additionalProperties: false } : {}),
      ...atMostOne(message),
    }
  }

  #value({ type }: FieldSchema, direction: Direction): JsonSchema {
    if (type.kind === 'enum') return { $ref: this.#base + typeName(type.enum.name) }
    if (type.kind === 'message') {
      if (type.message.name === TIMESTAMP) return { type: 'string', format: 'date-time' }
      return direction === 'request' ? this.request(type.message) : this.answer(type.message)
    }
    switch (type.scalar) {
      case 'string':
        return { type: 'string' }
      case 'bool':
        return { type: 'boolean' }
      case 'bytes':
        return { type: 'string', contentEncoding: 'base64' }
      case 'double':
      case 'float':
        return { $ref: `${this.#base}Number` }
      default:
        return { ...INTEGERS[type.scalar] }
    }
  }
}

/** What says that of each one-of at most one member is set. */
function atMostOne(message: MessageSchema): JsonSchema {
  const oneofs = [...oneofsOf(message).values()]
  if (oneofs.length === 0) return {}
  if (oneofs.length === 1 && oneofs[0]?.length === message.fields.length) return { maxProperties: 1 }
  return {
    allOf: oneofs.map((members) => {
      const set = members.map(({ key }) => ({ required: [key] }))
      return { oneOf: [...set, { not: { anyOf: set } }] }
    }),
  }
}

function enumSchema({ comment, values }: EnumSchema): JsonSchema {
  return { type: 'string', enum: Object.keys(values), ...(comment === '' ? {} : { description: words(comment) }) }
}
