/** The published JSON Schema of configurations: that of the engine, with the words of the proto files where it has none. */

import { loadSchema } from '../contract/load-schema.ts'
import { words } from '../contract/reach.ts'
import type { MessageSchema } from '../contract/schema.ts'
import { components } from '../dataplane/components/registry.ts'
import { configSchema, type JsonSchema } from '../dataplane/engine/config-schema.ts'

let made: JsonSchema | undefined

/** JSON Schema (2020-12) of pipeline configurations, all components included; made once. Not to be changed. */
export function pipelineConfigSchema(): JsonSchema {
  if (made !== undefined) return made
  const schema = configSchema(components)
  const { messages } = loadSchema()
  describe(schema, messages.get('servicegrpc.pipeline.PipelineConfig') as MessageSchema)
  made = schema
  return made
}

/** Gives every part of `schema` that has no description the comment of its field, or of its message. */
function describe(schema: JsonSchema, message: MessageSchema): void {
  if (message.comment !== '') schema.description ??= words(message.comment)
  for (const [name, property] of Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>)) {
    const field = message.byName.get(name)
    if (field === undefined) continue
    if (field.comment !== '') property.description ??= words(field.comment)
    if (field.type.kind !== 'message') continue
    const inner = (field.mapKey !== undefined ? property.additionalProperties : property.items) ?? property
    describe(inner as JsonSchema, field.type.message)
  }
}
