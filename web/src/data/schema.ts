/** The catalogue of components, read out of the JSON Schema of configurations that a node publishes. */
import { camelCase, type Json } from './json.ts'

/** A part of that schema: what of JSON Schema it uses, and its own keywords. */
export interface Schema {
  readonly type?: string | readonly string[]
  readonly title?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  /** False, or the schema of a map's values. */
  readonly additionalProperties?: boolean | Schema
  readonly anyOf?: readonly Schema[]
  readonly $ref?: string
  readonly $defs?: Readonly<Record<string, Schema>>
  readonly enum?: readonly Json[]
  readonly const?: Json
  readonly default?: Json
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly maxLength?: number
  readonly pattern?: string
  /** The value names a connection point. */
  readonly 'x-port'?: 'input' | 'output'
  readonly 'x-unit'?: string
  readonly 'x-secret'?: boolean
  /** A running pipeline takes a change of it over. */
  readonly 'x-live'?: boolean
  /** Of a component. */
  readonly 'x-family'?: string
  /** Of a component, in a sentence. */
  readonly 'x-summary'?: string
  /** Fields of which exactly one is set. */
  readonly 'x-one-of'?: readonly string[]
}

/** A kind of component that there is to build with. */
export interface Kind {
  readonly key: string
  readonly family: string
  readonly summary: string
  readonly schema: Schema
}

/** Kinds by key, in either casing. */
export type Catalogue = ReadonlyMap<string, Kind>

/** The kinds that the schema of configurations has. */
export function catalogueOf({ $defs = {} }: Schema): Catalogue {
  const kinds = Object.entries($defs).flatMap(([key, schema]): Kind[] => {
    const family = schema['x-family']
    return family === undefined ? [] : [{ key, family, summary: schema['x-summary'] ?? '', schema }]
  })
  return new Map(kinds.flatMap((kind) => [kind.key, camelCase(kind.key)].map((key) => [key, kind])))
}

/** Every kind once. */
export function kindsOf(catalogue: Catalogue): readonly Kind[] {
  return [...new Set(catalogue.values())]
}

/** The schema that a `$ref` within `root` stands for. */
export function resolved(schema: Schema, root: Schema): Schema {
  const name = schema.$ref?.replace('#/$defs/', '')
  return name === undefined ? schema : (root.$defs?.[name] ?? {})
}

/** The schema of the field `name`, which may be written in either casing; undefined: there is none. */
export function propertyOf(schema: Schema, name: string): Schema | undefined {
  const { properties = {}, additionalProperties } = schema
  if (Object.hasOwn(properties, name)) return properties[name]
  const known = Object.keys(properties).find((key) => camelCase(key) === name)
  if (known !== undefined) return properties[known]
  return typeof additionalProperties === 'object' ? additionalProperties : undefined
}

export interface Bounds {
  readonly minimum?: number
  readonly maximum?: number
}

/** The range of a number, where 0 may stand for no value besides. */
export function boundsOf(schema: Schema): Bounds {
  const ranged = schema.anyOf?.find(({ minimum, maximum }) => minimum !== undefined || maximum !== undefined) ?? schema
  const minimum = ranged.minimum ?? ranged.exclusiveMinimum
  const maximum = ranged.maximum ?? ranged.exclusiveMaximum
  return { ...(minimum === undefined ? {} : { minimum }), ...(maximum === undefined ? {} : { maximum }) }
}

export function isRequired(parent: Schema, name: string): boolean {
  return parent.required?.includes(name) ?? false
}
