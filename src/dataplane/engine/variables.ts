/** Variables of a configuration: which of them a problem is about, and which cannot be set. */
import { isObject, memberNamed } from '../../text/json-object.ts'
import { camelCase } from '../../text/names.ts'
import { type Problem, pointerOf, tokensOf } from '../../text/pointer.ts'
import type { Registry } from './component.ts'
import type { PipelineConfig, Warning } from './config.ts'
import { Shell } from './config-shell.ts'
import type { SchemaNode } from './schema.ts'

/** The pointer with every name in lowerCamelCase: pointers are written in either casing. */
const plain = (pointer: string): string => pointerOf(tokensOf(pointer).map(camelCase))

interface Named {
  readonly id: unknown
  readonly name: string
}

/** The variables of a configuration that may not have been checked, by the plain pointers of the places that they set. */
function variablesByPlace(value: unknown): Map<string, Named[]> {
  const variables = isObject(value) && Array.isArray(value.variables) ? value.variables.filter(isObject) : []
  const places = new Map<string, Named[]>()
  for (const { id, label, paths } of variables) {
    const name = [label, id].find((text): text is string => typeof text === 'string' && text !== '')
    if (name === undefined || !Array.isArray(paths)) continue
    const pointers = new Set(paths.filter((path) => typeof path === 'string').map(plain))
    for (const place of pointers) places.set(place, [...(places.get(place) ?? []), { id, name }])
  }
  return places
}

/** What a message about a place that these variables set begins with. */
function subjectOf(variables: readonly Named[]): string {
  const names = variables.map(({ name }) => `"${name}"`).join(', ')
  return `${variables.length === 1 ? 'variable' : 'variables'} ${names}: `
}

/** The problems of a configuration with the value `value`; those at a place that variables set say which variables these are. */
export function namingVariables(problems: readonly Problem[], value: unknown): Problem[] {
  const places = variablesByPlace(value)
  if (places.size === 0) return [...problems]
  return problems.map((problem) => {
    const variables = places.get(plain(problem.pointer))
    return variables === undefined ? problem : { ...problem, message: subjectOf(variables) + problem.message }
  })
}

/**
 * What keeps variables from being set: an id that another has, paths that lead nowhere in the checked configuration with the value `value`,
 * whose components `available` has.
 */
export function variableWarnings(
  variables: PipelineConfig['variables'],
  value: unknown,
  available: Registry,
): Warning[] {
  const warnings: Warning[] = []
  const warn = (steps: (string | number)[], message: string): void => {
    warnings.push({ component: '', pointer: pointerOf(['variables', ...steps]), message })
  }
  const ids = new Map<string, number>()
  variables.forEach(({ id, paths }, i) => {
    const other = ids.get(id)
    if (other === undefined) ids.set(id, i)
    else warn([i, 'id'], `"${id}" is the id of /variables/${other} too: one of them cannot be set`)
    if (paths.length === 0) warn([i], `variable "${id}" has no paths: it cannot be set`)
    paths.forEach((path, j) => {
      if (!path.startsWith('/')) warn([i, 'paths', j], `"${path}" is no JSON pointer, which starts with /`)
      else if (!leadsSomewhere(path, value, available)) {
        warn([i, 'paths', j], `"${path}" leads to nothing in the configuration: the variable cannot be set`)
      }
    })
  })
  return warnings
}

/** Whether there is the place that a pointer means, or a field of that name can be set there; names are in either casing. */
function leadsSomewhere(pointer: string, value: unknown, available: Registry): boolean {
  const steps = tokensOf(pointer)
  const last = steps.at(-1) ?? ''
  let at = value
  for (const token of steps.slice(0, -1)) {
    if (typeof at !== 'object' || at === null) return false
    const name = memberNamed(at, token)
    if (name === undefined) return false
    at = (at as Record<string, unknown>)[name]
  }
  if (Array.isArray(at)) return /^\d+$/.test(last) && Number(last) < at.length
  if (!isObject(at)) return false
  return memberNamed(at, last) !== undefined || takes(schemaAt(steps.slice(0, -1), available), last)
}

/** Whether an object with that schema may have a field or entry of that name. */
function takes({ properties, patternProperties }: SchemaNode, name: string): boolean {
  return patternProperties !== undefined || (properties !== undefined && memberNamed(properties, name) !== undefined)
}

/** The schema of what stands at the end of these steps of a checked configuration; an empty one where that is no field, but a whole component. */
function schemaAt(steps: readonly string[], available: Registry): SchemaNode {
  const [, , , member, ...own] = steps
  const [first = '', second] = steps.map(camelCase)
  if (first === 'engineConfig' && second === 'pipeline' && steps.length > 2) {
    const key = [...available.keys()].find((name) => member !== undefined && camelCase(name) === camelCase(member))
    return key === undefined ? NOTHING : within(available.get(key)?.config as SchemaNode, own)
  }
  return within(Shell as SchemaNode, steps)
}

const NOTHING = {} as SchemaNode

function within(schema: SchemaNode, steps: readonly string[]): SchemaNode {
  let at = schema
  for (const step of steps) {
    const { properties = {}, patternProperties = {}, items } = at
    at = properties[memberNamed(properties, step) ?? ''] ?? Object.values(patternProperties)[0] ?? items ?? NOTHING
  }
  return at
}
