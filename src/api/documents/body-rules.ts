/** What the service holds bodies to beyond the types of their fields: what must be there, and bounds. */
import type { JsonSchema } from '../../contract/json-schema.ts'

interface BodyRules {
  readonly required: readonly string[]
  /** JSON Schema by field, besides what its type says. */
  readonly bounds: Readonly<Record<string, JsonSchema>>
}

const bounds = {
  name: { minLength: 1, maxLength: 256 },
  jsonConfig: { minLength: 1 },
  instructionsTimeout: { minimum: 1 },
}
const update: BodyRules = { required: ['name', 'jsonConfig', 'instructionsTimeout'], bounds }

/** By operation; of others whatever is left out has a default. */
const RULES: Readonly<Record<string, BodyRules>> = {
  createPipeline: { required: ['name', 'jsonConfig'], bounds },
  updatePipeline: update,
  explainUpdate: update,
}

/** Whether there has to be a body at all. */
export const needsBody = (operation: string): boolean => RULES[operation] !== undefined

/** The schema of an operation's body, with its rules. */
export function ruled(operation: string, schema: JsonSchema): JsonSchema {
  const rules = RULES[operation]
  if (rules === undefined) return schema
  const properties = { ...(schema.properties as Record<string, JsonSchema>) }
  for (const [name, bound] of Object.entries(rules.bounds)) properties[name] = { ...properties[name], ...bound }
  return { ...schema, required: [...rules.required], properties }
}
