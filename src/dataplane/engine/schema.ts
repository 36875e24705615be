/** Vocabulary of component schemas: ports, probabilities, durations, rates, seeds, addresses, keys. */
import { type SchemaOptions, type TSchema, Type } from '@sinclair/typebox'

declare const port: unique symbol
/** The name of a connection point that a component reads from. */
export type InputName = string & { readonly [port]: 'input' }
/** The name of a connection point that a component writes to. */
export type OutputName = string & { readonly [port]: 'output' }

/** Own annotations that schemas carry beside JSON Schema's. */
export interface Annotations {
  /** 'input' or 'output': the value names a connection point. */
  port?: 'input' | 'output'
  /** ms, s, bytes, packets, Mbit/s, … for the reference page. */
  unit?: string
  /** Type in the proto contract: i32, u32, u64, double, float, bool, string or an enum's name. */
  proto?: string
  /** 0 stands for no value, as where the field is not given. */
  zeroUnset?: boolean
  /** Appended to the error when the value is out of range. */
  hint?: string
  /** The same, when it is above the maximum only. */
  aboveHint?: string
  /** Name to number, for enums, which are accepted by both. */
  enumeration?: Readonly<Record<string, number>>
  /** Never shown in logs, errors or tables. */
  secret?: boolean
  /** The value names a file of the node; see files.ts. */
  file?: boolean
  /** Of such a value: with @ in front it is an abstract name (unix(7)) and no file. */
  abstract?: boolean
  /** Names of an object's properties of which exactly one is given; what refuses others is the component's own check. */
  exactlyOne?: readonly string[]
  /** The value is an address and port, or a host name and port; see host-names.ts. */
  address?: boolean
}

/** A schema, or one within it, as who walks through it reads it: what JSON Schema's keywords and the annotations say. */
export type SchemaNode = TSchema &
  Annotations & {
    properties?: Record<string, SchemaNode>
    patternProperties?: Record<string, SchemaNode>
    required?: string[]
    items?: SchemaNode
    minimum?: number
    maximum?: number
    exclusiveMinimum?: number
    exclusiveMaximum?: number
    minLength?: number
    maxLength?: number
    minItems?: number
    maxItems?: number
    format?: string
    default?: unknown
  }

type Options = SchemaOptions & Annotations

export const Input = (description = 'Connection point to read from.') =>
  Type.Unsafe<InputName>(Type.String({ port: 'input', proto: 'string', minLength: 1, maxLength: 256, description }))

export const Output = (description = 'Connection point to write to.') =>
  Type.Unsafe<OutputName>(Type.String({ port: 'output', proto: 'string', minLength: 1, maxLength: 256, description }))

export const Optional = <T extends TSchema>(schema: T) => Type.Optional(schema)

/** A list of `item`, 1 to 4,096 of them. */
export const List = <T extends TSchema>(item: T, description: string, options: Options & { minItems?: number } = {}) =>
  Type.Array(item, { maxItems: 4096, minItems: 1, ...options, description })

export const Int32 = (description: string, options: Options & { minimum?: number; maximum?: number } = {}) =>
  Type.Integer({ minimum: -2147483648, maximum: 2147483647, proto: 'i32', ...options, description })

export const Uint32 = (description: string, options: Options & { minimum?: number; maximum?: number } = {}) =>
  Type.Integer({ minimum: 0, maximum: 4294967295, proto: 'u32', ...options, description })

/** 0 to 2^64 - 1: decimal digits in a string, or a JSON number while those are exact. `uint64Words` reads it. */
export const Uint64 = (description: string, options: Options = {}) =>
  Type.Unsafe<string | number>({
    type: ['string', 'integer'],
    format: 'uint64',
    maxLength: 20,
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    proto: 'u64',
    aboveHint: 'a larger one is written as a string of digits',
    ...options,
    description,
  })

export const Double = (description: string, options: Options & { minimum?: number; maximum?: number } = {}) =>
  Type.Number({ proto: 'double', ...options, description })

export const Bool = (description: string, options: Options = {}) =>
  Type.Boolean({ proto: 'bool', ...options, description })

export const Text = (description: string, options: Options & { minLength?: number; maxLength?: number } = {}) =>
  Type.String({ proto: 'string', maxLength: 4096, ...options, description })

/** 0..1. */
export const Probability = (description: string) =>
  Double(description, { minimum: 0, maximum: 1, unit: 'probability', hint: 'a probability is 0..1: 5 % is 0.05' })

/** Milliseconds, all of u32. As nanoseconds they are exact in a double: 2^32 ms are less than 2^53 ns. */
export const Milliseconds = (description: string, options: Options & { minimum?: number; maximum?: number } = {}) =>
  Uint32(description, { unit: 'ms', ...options })

/** Milliseconds where the contract has i32: 0 to 2^31 - 1. */
export const Int32Milliseconds = (
  description: string,
  options: Options & { minimum?: number; maximum?: number } = {},
) => Int32(description, { minimum: 0, unit: 'ms', ...options })

/** Megabit (10^6) per second, 1 kbit/s to 1 Tbit/s: bounds that keep the time a byte takes a number worth calculating with. */
export const Megabits = (description: string, options: Options = {}) =>
  Double(description, { minimum: 0.001, maximum: 1_000_000, unit: 'Mbit/s', ...options })

export const Seed = (proto: 'i32' | 'u32' = 'i32') =>
  proto === 'i32'
    ? Int32('Seed of the random numbers; unset: drawn at start and shown in the run log.')
    : Uint32('Seed of the random numbers; unset: drawn at start and shown in the run log.')

/** For a number that has no meaning as 0. */
export const ZERO_UNSET = { zeroUnset: true, hint: '0 leaves it unset' } as const

/** Largest packet payload, bytes; 0 is taken as unset. */
export const Mtu = (proto: 'i32' | 'u32', options: Options & { default?: number; minimum?: number } = {}) => {
  const description =
    'Largest packet; larger ones are dropped and counted. Every IPv4 network carries 68 bytes (RFC 791), and no packet here has more than 65,535. Read when the run begins, which makes its packet slots for it.'
  const limits = { minimum: 68, maximum: 65_535, unit: 'bytes', ...ZERO_UNSET, ...options }
  return proto === 'i32' ? Int32(description, limits) : Uint32(description, limits)
}

/** `ip:port`, `[ip6]:port`, or `name:port`, whose name is one of a host; components are given an address in its place. */
export const Address = (description: string) =>
  Text(description, { address: true, format: 'socket-address', unit: 'ip:port or name:port', maxLength: 260 })

/** A file of the node, relative to the directory of files that configurations may name; others only from whom the node trusts. */
export const FileName = (description: string) =>
  Text(description, { file: true, unit: 'path', minLength: 1, format: 'file-name' })

/** A socket in the file system, where the rules of `FileName` hold, or an abstract name, `@…`; `longest` in characters. */
export const SocketName = (description: string, longest: number) =>
  Text(description, {
    file: true,
    abstract: true,
    unit: 'path or @name',
    minLength: 1,
    maxLength: longest,
    format: 'file-name',
  })

/** The name of a network interface, of which Linux takes 15 bytes. */
export const InterfaceName = (description: string) =>
  Text(`${description} Linux gives it 15 bytes.`, { format: 'interface-name' })

/** One of `names`, given by name or number. */
export const Enumeration = <const T extends Record<string, number>>(
  description: string,
  name: string,
  enumeration: T,
  options: Options = {},
) =>
  Type.Unsafe<keyof T & string>(
    Type.String({ enum: Object.keys(enumeration), enumeration, proto: name, ...options, description }),
  )

/** A cipher key of `bytes` bytes, hex or `base64:…`. */
export const Key = (bytes: number, description: string) =>
  Text(description, {
    format: `key-${bytes}`,
    secret: true,
    unit: `${bytes * 2} hex digits or base64:`,
    maxLength: 256,
  })
