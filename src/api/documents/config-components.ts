/** The schema of configurations as components of an OpenAPI or AsyncAPI document. */
import type { JsonSchema } from '../../contract/json-schema.ts'
import { camelCase } from '../../text/names.ts'

/** The name of the whole. */
export const CONFIG_SCHEMA_NAME = 'PipelineConfig'

/** `udp_local` is UdpLocalConfig. */
function nameOf(key: string): string {
  const name = camelCase(key)
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}Config`
}

/** The schema and its `$defs`, each by its name in the document, with references that lead there. */
export function configComponents(schema: JsonSchema): Record<string, JsonSchema> {
  const { $schema: _, $defs, ...whole } = schema
  const parts = Object.entries($defs as Record<string, JsonSchema>).map(([key, part]) => [nameOf(key), moved(part)])
  return Object.fromEntries([[CONFIG_SCHEMA_NAME, moved(whole)], ...parts])
}

function moved(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(moved)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      const name = key === '$ref' ? /^#\/\$defs\/(\w+)$/.exec(String(item))?.[1] : undefined
      return [key, name === undefined ? moved(item) : `#/components/schemas/${nameOf(name)}`]
    }),
  )
}
