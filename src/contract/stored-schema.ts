/** A schema as JSON, in which messages and enums are named where the schema refers to them: what a bundle holds is not read from proto files again. */
import type { EnumSchema, FieldSchema, MessageSchema, Schema, ServiceSchema } from './schema.ts'

type StoredType = { scalar: string } | { enum: string } | { message: string }
type StoredField = Omit<FieldSchema, 'type'> & { type: StoredType }

export interface StoredSchema {
  readonly messages: readonly (Omit<MessageSchema, 'fields' | 'byName'> & { fields: readonly StoredField[] })[]
  readonly enums: readonly Omit<EnumSchema, 'names'>[]
  readonly services: readonly (Omit<ServiceSchema, 'methods'> & {
    methods: readonly (Omit<ServiceSchema['methods'][number], 'request' | 'response'> & {
      request: string
      response: string
    })[]
  })[]
}

function storedType(type: FieldSchema['type']): StoredType {
  switch (type.kind) {
    case 'scalar':
      return { scalar: type.scalar }
    case 'enum':
      return { enum: type.enum.name }
    case 'message':
      return { message: type.message.name }
  }
}

export function stored({ messages, enums, services }: Schema): StoredSchema {
  return {
    messages: [...messages.values()].map(({ name, comment, fields }) => ({
      name,
      comment,
      fields: fields.map((field) => ({ ...field, type: storedType(field.type) })),
    })),
    enums: [...enums.values()].map(({ name, comment, values }) => ({ name, comment, values })),
    services: services.map((service) => ({
      ...service,
      methods: service.methods.map((method) => ({
        ...method,
        request: method.request.name,
        response: method.response.name,
      })),
    })),
  }
}

/** The schema that `stored` was made of. */
export function restored(schema: StoredSchema): Schema {
  const enums = new Map(schema.enums.map((own) => [own.name, { ...own, names: namesOf(own.values) }]))
  // All are there before the fields of one are: a message may hold itself.
  const messages = new Map(
    schema.messages.map(({ name, comment }) => {
      const fields: FieldSchema[] = []
      return [name, { name, comment, fields, byName: new Map<string, FieldSchema>() }]
    }),
  )
  const messageOf = (name: string): MessageSchema => messages.get(name) as MessageSchema
  const typeOf = (type: StoredType): FieldSchema['type'] => {
    if ('scalar' in type)
      return { kind: 'scalar', scalar: type.scalar as Extract<FieldSchema['type'], { kind: 'scalar' }>['scalar'] }
    if ('enum' in type) return { kind: 'enum', enum: enums.get(type.enum) as EnumSchema }
    return { kind: 'message', message: messageOf(type.message) }
  }
  for (const { name, fields } of schema.messages) {
    const message = messages.get(name) as { fields: FieldSchema[]; byName: Map<string, FieldSchema> }
    for (const own of fields) {
      // Named one by one: what JSON leaves out where it is undefined is a property all the same.
      const field: FieldSchema = {
        ...{ name: own.name, key: own.key, number: own.number, comment: own.comment, repeated: own.repeated },
        ...{ mapKey: own.mapKey, optional: own.optional, presence: own.presence, oneof: own.oneof },
        type: typeOf(own.type),
      }
      message.fields.push(field)
      message.byName.set(field.name, field)
      message.byName.set(field.key, field)
    }
  }
  const services = schema.services.map((service) => ({
    ...service,
    methods: service.methods.map((method) => ({
      ...method,
      request: messageOf(method.request),
      response: messageOf(method.response),
    })),
  }))
  return { messages, enums, services }
}

/** The names of an enum's numbers; of several the last. */
export function namesOf(values: Readonly<Record<string, number>>): ReadonlyMap<number, string> {
  return new Map(Object.entries(values).map(([name, number]) => [number, name]))
}
