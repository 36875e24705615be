/** The messages, enums and services of the proto files, as plain data that codecs and listeners are built from. */

/** The scalar types the protos use. */
export type Scalar = 'double' | 'float' | 'int32' | 'int64' | 'uint32' | 'uint64' | 'bool' | 'string' | 'bytes'

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

export interface ServiceSchema {
  readonly name: string
  readonly comment: string
  readonly methods: readonly MethodSchema[]
}

export interface Schema {
  readonly messages: ReadonlyMap<string, MessageSchema>
  readonly enums: ReadonlyMap<string, EnumSchema>
  readonly services: readonly ServiceSchema[]
}

/** Full name of the well-known type that service objects hold as Date. */
export const TIMESTAMP = 'google.protobuf.Timestamp'
