/** The schema of proto files (proto-files.ts). The bundled program has what it gives in parsed-schemas.ts, and reads files for descriptors alone. */
import protobuf from 'protobufjs'
import { camelCase } from '../text/names.ts'
import { readProtoFiles } from './proto-files.ts'
import type { EnumSchema, FieldSchema, MessageSchema, MethodSchema, Scalar, Schema, ServiceSchema } from './schema.ts'
import { namesOf } from './stored-schema.ts'

const SCALARS: ReadonlySet<string> = new Set<Scalar>([
  'double',
  'float',
  'int32',
  'int64',
  'uint32',
  'uint64',
  'bool',
  'string',
  'bytes',
])

/** What `namespace` declares, as its files have it. Throws when one does not parse. */
export function readNamespace(namespace: string): Schema {
  return new SchemaReader(readProtoFiles(namespace).root).read(namespace)
}

class SchemaReader {
  readonly #root: protobuf.Root
  readonly #messages = new Map<string, MessageSchema>()
  readonly #enums = new Map<string, EnumSchema>()
  readonly #services: ServiceSchema[] = []

  constructor(root: protobuf.Root) {
    this.#root = root
  }

  read(namespace: string): Schema {
    this.#namespace(this.#root.lookup(namespace) as protobuf.Namespace)
    return { messages: this.#messages, enums: this.#enums, services: this.#services }
  }

  #namespace(namespace: protobuf.NamespaceBase): void {
    for (const nested of namespace.nestedArray) {
      if (nested instanceof protobuf.Enum) this.#enum(nested)
      else if (nested instanceof protobuf.Service) this.#service(nested)
      else {
        if (nested instanceof protobuf.Type) this.#message(nested)
        if (nested instanceof protobuf.Namespace) this.#namespace(nested)
      }
    }
  }

  #enum(type: protobuf.Enum): EnumSchema {
    const name = type.fullName.slice(1)
    let schema = this.#enums.get(name)
    if (schema === undefined) {
      // A plain object: that of protobufjs inherits the numbers.
      const values = { ...type.values }
      schema = { name, comment: type.comment ?? '', values, names: namesOf(values) }
      this.#enums.set(name, schema)
    }
    return schema
  }

  #message(type: protobuf.Type): MessageSchema {
    const name = type.fullName.slice(1)
    const known = this.#messages.get(name)
    if (known !== undefined) return known
    const fields: FieldSchema[] = []
    const byName = new Map<string, FieldSchema>()
    // Entered before its fields are read: a message may hold itself.
    const schema: MessageSchema = { name, comment: type.comment ?? '', fields, byName }
    this.#messages.set(name, schema)
    for (const field of type.fieldsArray) {
      const read = this.#field(field)
      fields.push(read)
      byName.set(read.name, read)
      byName.set(read.key, read)
    }
    return schema
  }

  #field(field: protobuf.Field): FieldSchema {
    const oneof = field.partOf
    const optional = oneof?.isProto3Optional === true
    const resolved = field.resolvedType
    const mapKey = field instanceof protobuf.MapField ? (field.keyType as Scalar) : undefined
    if (resolved === null && !SCALARS.has(field.type)) {
      throw new Error(`${field.fullName}: the codecs know no ${field.type}; use one of ${[...SCALARS].join(', ')}`)
    }
    const type: FieldSchema['type'] =
      resolved === null
        ? { kind: 'scalar', scalar: field.type as Scalar }
        : resolved instanceof protobuf.Enum
          ? { kind: 'enum', enum: this.#enum(resolved) }
          : { kind: 'message', message: this.#message(resolved) }
    return {
      name: field.name,
      key: camelCase(field.name),
      number: field.id,
      comment: field.comment ?? '',
      repeated: field.repeated,
      mapKey,
      optional,
      presence: !field.repeated && mapKey === undefined && (oneof !== null || type.kind === 'message'),
      oneof: oneof === null || optional ? undefined : oneof.name,
      type,
    }
  }

  #service(service: protobuf.Service): void {
    this.#services.push({
      name: service.fullName.slice(1),
      comment: service.comment ?? '',
      methods: service.methodsArray.map((method) => ({
        name: method.name,
        comment: method.comment ?? '',
        request: this.#message(method.resolvedRequestType as protobuf.Type),
        response: this.#message(method.resolvedResponseType as protobuf.Type),
        requestStream: method.requestStream === true,
        responseStream: method.responseStream === true,
        http: httpRules(method),
      })),
    })
  }
}

interface HttpRule {
  body?: string
  additional_bindings?: HttpRule | HttpRule[]
  [verb: string]: unknown
}

function httpRules(method: protobuf.Method): MethodSchema['http'] {
  const option = method.parsedOptions?.find((entry: Record<string, unknown>) => '(google.api.http)' in entry)
  if (option === undefined) return []
  const rules: { verb: string; path: string; body: boolean }[] = []
  const add = (rule: HttpRule): void => {
    for (const verb of ['get', 'put', 'post', 'delete', 'patch'] as const) {
      const path = rule[verb]
      if (typeof path === 'string') rules.push({ verb: verb.toUpperCase(), path, body: rule.body === '*' })
    }
    const more = rule.additional_bindings
    if (Array.isArray(more)) for (const binding of more) add(binding)
    else if (more !== undefined) add(more)
  }
  add(option['(google.api.http)'] as HttpRule)
  return rules
}
