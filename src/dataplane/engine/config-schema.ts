/**
 * The JSON Schema (2020-12) of configurations, made from the schemas that `check.ts` checks them by: for editors, and for who makes
 * configurations by program.
 */
import { isObject } from '../../text/json-object.ts'
import { MAX_COMPONENT_NAME_LENGTH, MAX_COMPONENTS } from './check.ts'
import type { AnyComponent, Registry } from './component.ts'
import { Shell } from './config-shell.ts'
import { OWN_PATHS } from './own-metrics.ts'
import type { SchemaNode } from './schema.ts'

/** A JSON Schema, or a part of one. */
export type JsonSchema = Record<string, unknown>

/** Keywords that mean the same in a schema of the engine and in JSON Schema. */
const KEYWORDS = [
  ...['type', 'enum', 'default', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'],
  ...['minLength', 'maxLength', 'minItems', 'maxItems', 'maxProperties'],
]

const BASE64 = 'base64:[A-Za-z0-9+/_-]+={0,2}'

/** The formats of `check.ts` as patterns; where a pattern cannot say all of it, the node refuses more. */
const PATTERNS: Readonly<Record<string, string>> = {
  'socket-address': '^(\\[[0-9A-Fa-f:.%\\w-]+\\]|[^:\\[\\]]+):\\d{1,5}$',
  ip: '^[0-9A-Fa-f:.]+(%.+)?$',
  'interface-name': '^[^\\s/%:]{1,15}$',
  'file-name': '^[^\\u0000]*$',
  'key-16': `^([0-9a-fA-F]{32}|${BASE64})$`,
  'key-32': `^([0-9a-fA-F]{64}|${BASE64})$`,
  'nonce-12': `^([0-9a-fA-F]{24}|${BASE64})$`,
  'ascii-16': '^([ -~]{16})?$',
  uint64: '^[0-9]{1,20}$',
}

/**
 * The schema of configurations that `registry` can run. Its names are those of the format in snake_case, its enums go by name: how
 * configurations are written. What lies between fields (connections, expressions, one of several settings) only the node checks.
 */
export function configSchema(registry: Registry): JsonSchema {
  const definitions = [...registry.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
  const shell = plain(Shell as SchemaNode)
  const { engine_config: engine, version } = shell.properties as Record<string, JsonSchema>
  Object.assign(version as JsonSchema, { maximum: 1, default: 1 })
  Object.assign((engine as JsonSchema).properties as JsonSchema, { pipeline: pipelineSchema() })
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Pipeline configuration',
    ...shell,
    $defs: {
      Component: componentSchema(definitions),
      ...Object.fromEntries(definitions.map((definition) => [definition.key, definitionSchema(definition)])),
    },
  }
}

function pipelineSchema(): JsonSchema {
  return {
    type: 'object',
    minProperties: 1,
    maxProperties: MAX_COMPONENTS,
    propertyNames: { minLength: 1, maxLength: MAX_COMPONENT_NAME_LENGTH, not: { enum: [...OWN_PATHS] } },
    additionalProperties: { $ref: '#/$defs/Component' },
  }
}

function componentSchema(definitions: readonly AnyComponent[]): JsonSchema {
  return {
    title: 'Component',
    description: 'One component: exactly one of these is set.',
    type: 'object',
    minProperties: 1,
    maxProperties: 1,
    additionalProperties: false,
    properties: Object.fromEntries(definitions.map(({ key }) => [key, { $ref: `#/$defs/${key}` }])),
  }
}

function definitionSchema({ key, family, summary, details, config, live = [] }: AnyComponent): JsonSchema {
  const schema = plain(config as SchemaNode)
  const properties = schema.properties as Record<string, JsonSchema>
  for (const name of live as readonly string[]) {
    const property = properties[name] as JsonSchema
    property.description = sentences(property.description, 'A running pipeline takes a change of it over.')
    property['x-live'] = true
  }
  return { title: key, description: sentences(summary, details), 'x-family': family, 'x-summary': summary, ...schema }
}

function sentences(...parts: unknown[]): string {
  return parts.filter((part) => typeof part === 'string' && part !== '').join(' ')
}

/** `node` without annotations of the engine's own: what they say is in the description, and for programs in the keywords that begin with `x-`. */
function plain(node: SchemaNode): JsonSchema {
  const schema: JsonSchema = {}
  const description = sentences(node.description, node.unit && node.unit !== 'probability' ? `Unit: ${node.unit}.` : '')
  if (description !== '') schema.description = description
  for (const keyword of KEYWORDS) if (node[keyword] !== undefined) schema[keyword] = node[keyword]
  if (node.format !== undefined) schema.pattern = patternOf(node.format)
  if (node.unit !== undefined) schema['x-unit'] = node.unit
  if (node.port !== undefined) schema['x-port'] = node.port
  if (node.secret) schema['x-secret'] = true
  if (node.exactlyOne !== undefined) schema['x-one-of'] = node.exactlyOne
  if (node.items !== undefined) schema.items = plain(node.items)
  if (isObject(node.patternProperties)) {
    schema.additionalProperties = plain(Object.values(node.patternProperties)[0] as SchemaNode)
  } else if (node.properties !== undefined) Object.assign(schema, objectKeywords(node))
  if (node.format === 'uint64') return eitherWay(schema)
  return node.zeroUnset ? withZero(schema) : schema
}

/** A 64-bit number: digits in a string, or a number while it is exact. */
function eitherWay({ pattern, maxLength, minimum, maximum, type: _, ...rest }: JsonSchema): JsonSchema {
  return {
    ...rest,
    anyOf: [
      { type: 'string', pattern, maxLength },
      { type: 'integer', minimum, maximum },
    ],
  }
}

function patternOf(format: string): string {
  const pattern = PATTERNS[format]
  if (pattern === undefined) throw new Error(`there is no pattern for the format ${format}: add it here`)
  return pattern
}

function objectKeywords({ properties = {}, required = [] }: SchemaNode): JsonSchema {
  const demanded = required.filter((name) => properties[name]?.default === undefined)
  return {
    properties: Object.fromEntries(Object.entries(properties).map(([name, child]) => [name, plain(child)])),
    ...(demanded.length === 0 ? {} : { required: demanded }),
    additionalProperties: false,
  }
}

/** A number of which 0 stands for no value. */
function withZero({ minimum, maximum, ...rest }: JsonSchema): JsonSchema {
  const bounds = { ...(minimum === undefined ? {} : { minimum }), ...(maximum === undefined ? {} : { maximum }) }
  return { ...rest, description: sentences(rest.description, '0: unset.'), anyOf: [{ enum: [0] }, bounds] }
}
