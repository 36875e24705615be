/** What the schema of configurations says about a place in one. */
import type { Json, Path } from '../../data/json.ts'
import { type Bounds, boundsOf, propertyOf, resolved, type Schema } from '../../data/schema.ts'

/** The schema of the value that `path` leads to; undefined: it is not known. */
export function schemaAt(root: Schema, path: Path): Schema | undefined {
  return path.reduce<Schema | undefined>((at, step) => {
    if (at === undefined) return undefined
    const next = typeof step === 'number' ? at.items : propertyOf(at, step)
    return next === undefined ? undefined : resolved(next, root)
  }, root)
}

/** What a field takes, in a few words: `0 to 1`, `LINUX, GENERIC`, `ms, default 30`. */
export function rangeOf(schema: Schema): string {
  const { minimum, maximum } = narrowed(boundsOf(schema))
  const unit = schema['x-unit']
  const range =
    minimum !== undefined && maximum !== undefined
      ? `${shown(minimum)} to ${shown(maximum)}`
      : minimum !== undefined
        ? `at least ${shown(minimum)}`
        : maximum !== undefined
          ? `at most ${shown(maximum)}`
          : ''
  const values = [range, unit === undefined || unit === 'probability' ? '' : unit]
    .filter((part) => part !== '')
    .join(' ')
  const zero = schema.anyOf?.some((each) => each.const === 0) ? 'or 0: unset' : ''
  const fallback = schema.default === undefined ? '' : `default ${textOf(schema.default)}`
  return [values, zero, fallback].filter((part) => part !== '').join(', ')
}

/** The ends of the integers of 32 bits say nothing about the field. */
const ENDS = [-(2 ** 31), 2 ** 31 - 1, 2 ** 32 - 1]

function narrowed({ minimum, maximum }: Bounds): Bounds {
  return {
    ...(minimum === undefined || ENDS.includes(minimum) ? {} : { minimum }),
    ...(maximum === undefined || ENDS.includes(maximum) ? {} : { maximum }),
  }
}

const shown = (value: number): string => value.toLocaleString('en')

function textOf(value: Json): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** A text that a value can begin as, with `#` where typing goes on. */
export function beginningOf(schema: Schema): string {
  if (schema.default !== undefined && typeof schema.default !== 'object') return JSON.stringify(schema.default)
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type
  if (type === 'object' || schema.properties !== undefined || schema.$ref !== undefined) return '{ # }'
  if (type === 'array') return '[#]'
  if (type === 'boolean') return 'true#'
  if (type === 'number' || type === 'integer') return String(boundsOf(schema).minimum ?? 0)
  return '"#"'
}
