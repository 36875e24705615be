/** The messages, enums and services of the proto files, as plain data that codecs and listeners are built from. */
import { readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import protobuf from 'protobufjs'
import { packageRoot } from '../package-root.ts'
import { camelCase } from '../text/names.ts'

/** The scalar types the protos use. */
export type Scalar = 'double' | 'float' | 'int32' | 'int64' | 'uint32' | 'uint64' | 'bool' | 'string' | 'bytes'

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

export interface EnumSchema {
  /** Full name, without a leading dot. */
  readonly name: string
  readonly comment: string
  /** Numbers by value name, in declaration order. */
  readonly values: Readonly<Record<string, number>>
  /** Names by number. */
  readonly names: ReadonlyMap<number, string>
}

export interface FieldSchema {
  /** Name in the proto file, snake_case. */
  readonly name: string
  /** Name in JSON and in service objects, lowerCamelCase. */
  readonly key: string
  readonly number: number
  readonly comment: string
  readonly repeated: boolean
  /** Key type of a map; the field's own type is the value's. */
  readonly mapKey: Scalar | undefined
  /** Declared with the keyword `optional`. */
  readonly optional: boolean
  /** Whether absence differs from the default: optional fields, messages and one-of members. */
  readonly presence: boolean
  /** Name of the (declared, not synthetic) one-of this is a member of. */
  readonly oneof: string | undefined
  readonly type:
    | { readonly kind: 'scalar'; readonly scalar: Scalar }
    | { readonly kind: 'enum'; readonly enum: EnumSchema }
    | { readonly kind: 'message'; readonly message: MessageSchema }
}

export interface MessageSchema {
  /** Full name, without a leading dot. */
  readonly name: string
  readonly comment: string
  /** In declaration order. */
  readonly fields: readonly FieldSchema[]
  /** By proto name and by JSON key. */
  readonly byName: ReadonlyMap<string, FieldSchema>
}

export interface MethodSchema {
  readonly name: string
  readonly comment: string
  readonly request: MessageSchema
  readonly response: MessageSchema
  readonly requestStream: boolean
  readonly responseStream: boolean
  /** `google.api.http` rules, the additional bindings after the first. */
  readonly http: readonly { readonly verb: string; readonly path: string; readonly body: boolean }[]
}

interface ServiceSchema {
  readonly name: string
  readonly comment: string
  readonly methods: readonly MethodSchema[]
}

export interface Schema {
  readonly messages: ReadonlyMap<string, MessageSchema>
  readonly enums: ReadonlyMap<string, EnumSchema>
  readonly services: readonly ServiceSchema[]
  /** The protobufjs tree it was read from, for descriptors. */
  readonly root: protobuf.Root
}

/** Full name of the well-known type that service objects hold as Date. */
export const TIMESTAMP = 'google.protobuf.Timestamp'

let loaded: Schema | undefined

/** Reads every file below the package's `proto/servicegrpc`, once per process; throws when one does not parse. */
export function loadSchema(): Schema {
  if (loaded !== undefined) return loaded
  const files = readdirSync(join(packageRoot(), 'proto', 'servicegrpc'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.proto'))
    .sort()
  loaded = readSchema(
    files.map((file) => join('servicegrpc', file)),
    'servicegrpc',
  )
  return loaded
}

/**
 * Reads `files` (below the package's `proto`) and what they import: what `namespace` declares, and the messages and enums that its
 * fields are of. Throws when one does not parse.
 */
export function readSchema(files: string[], namespace: string): Schema {
  const directory = join(packageRoot(), 'proto')
  const bundled = dirname(createRequire(import.meta.url).resolve('protobufjs/package.json'))
  const root = new protobuf.Root()
  root.resolvePath = (_origin, target) =>
    target.startsWith('google/') && !target.startsWith('google/protobuf/timestamp')
      ? join(bundled, target)
      : target.startsWith('google/')
        ? target
        : join(directory, target)
  root.loadSync(files, { keepCase: true, alternateCommentMode: true, preferTrailingComment: false })
  root.resolveAll()
  return new SchemaReader(root).read(namespace)
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
    return { messages: this.#messages, enums: this.#enums, services: this.#services, root: this.#root }
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
      const names = new Map(Object.entries(type.values).map(([value, number]) => [number, value]))
      schema = { name, comment: type.comment ?? '', values: type.values, names }
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
