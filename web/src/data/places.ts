/** Values at places of a configuration, which JSON pointers (RFC 6901) name in either casing. */
import { isFields, memberOf } from './configuration.ts'

/** The pointer whose steps these are. */
export function pointerOf(steps: readonly string[]): string {
  return steps.map((step) => `/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

function stepsOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** What holds the value, and under which key it does or would; undefined when the configuration has no such place. */
function holderOf(config: unknown, pointer: string): readonly [Record<string, unknown>, string] | undefined {
  const steps = stepsOf(pointer)
  const last = steps.pop()
  let holder = config
  for (const step of steps) {
    const member = isFields(holder) ? memberOf(holder, step) : undefined
    if (member === undefined) return undefined
    holder = (holder as Record<string, unknown>)[member]
  }
  if (last === undefined || !isFields(holder)) return undefined
  return [holder as Record<string, unknown>, memberOf(holder, last) ?? last]
}

/** The value at the place; undefined when there is none. */
export function valueAt(config: unknown, pointer: string): unknown {
  const found = holderOf(config, pointer)
  return found === undefined || !Object.hasOwn(found[0], found[1]) ? undefined : found[0][found[1]]
}

/** The JSON text with other values at some places; undefined takes a value away. Throws where there is no such place. */
export function withValues(jsonConfig: string, values: ReadonlyMap<string, unknown>): string {
  const config: unknown = JSON.parse(jsonConfig)
  for (const [pointer, value] of values) {
    const found = holderOf(config, pointer)
    if (found === undefined) throw new Error(`the configuration has no ${pointer} any more`)
    const [holder, key] = found
    // JSON leaves out what is undefined. A list that is set stays as it was given: a later value may be for a place in it.
    holder[key] = structuredClone(value)
  }
  return `${JSON.stringify(config, null, 2)}\n`
}
