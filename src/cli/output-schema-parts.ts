/** What the JSON Schemas of output are made of: messages of the API, and shapes that several commands print. */
import { Type } from '@sinclair/typebox'
import { type JsonSchema, MessageSchemas } from '../contract/json-schema.ts'
import { loadSchema } from '../contract/load-schema.ts'

const DEFINITIONS = '#/$defs/'
const api = loadSchema()
const messages = new MessageSchemas(api, DEFINITIONS)
const definitions = messages.all()

/** An answer of the API, or a part of one, by its short name; it refers to others. */
export const definitionOf = (name: string): JsonSchema => definitions[name] as JsonSchema

/** A reference to the message of the API of that name. */
export function message(name: string): JsonSchema {
  const found = api.messages.get(`servicegrpc.${name}`)
  if (found === undefined) throw new Error(`there is no message ${name}`)
  return messages.answer(found)
}

export const closed = { additionalProperties: false } as const
export const text = Type.String()
export const real = Type.Number()
export const count = Type.Integer({ minimum: 0 })
export const maybe = Type.Optional
export const kpis = Type.Array(Type.Unsafe(message('pipeline.Kpi')))
export const metrics = Type.Record(text, Type.Record(text, Type.Union([real, text, Type.Boolean()])), {
  description: 'Component name to metric name to value.',
})
export const outcome = Type.Union(['STOPPED', 'FAILED', 'COMPLETED'].map((each) => Type.Literal(each)))
export const configuration = Type.Object({ version: Type.Literal(1), engine_config: Type.Object({}) })

/** The definitions that `schema` refers to, and those that they refer to, by name. */
export function definitionsOf(schema: unknown, found: Record<string, JsonSchema> = {}): Record<string, JsonSchema> {
  if (typeof schema !== 'object' || schema === null) return found
  for (const [key, item] of Object.entries(schema)) {
    if (key !== '$ref') {
      definitionsOf(item, found)
      continue
    }
    const name = String(item).slice(DEFINITIONS.length)
    if (name in found) continue
    found[name] = definitions[name] as JsonSchema
    definitionsOf(found[name], found)
  }
  return found
}
