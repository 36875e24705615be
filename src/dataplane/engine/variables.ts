/** Variables of a configuration: which of them a problem is about, and which cannot be set. */
import { isObject, Members } from '../../text/json-object.ts'
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
    for (const place of pointers) {
      const others = places.get(place)
      if (others === undefined) places.set(place, [{ id, name }])
      else others.push({ id, name })
    }
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
  // A place may have thousands of variables, and thousands of problems where its name is written in as many ways.
  const subjects = new Map<string, string>()
  return problems.map((problem) => {
    const place = plain(problem.pointer)
    const variables = places.get(place)
    if (variables === undefined) return problem
    const subject = subjects.get(place) ?? subjectOf(variables)
    subjects.set(place, subject)
    return { ...problem, message: subject + problem.message }
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
  const places = new Places(value, available)
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
      else if (!places.leadsSomewhere(path)) {
        warn([i, 'paths', j], `"${path}" leads to nothing in the configuration: the variable cannot be set`)
      }
    })
  })
  return warnings
}

/** The places of a checked configuration: a variable alone may have thousands of pointers to them. */
class Places {
  readonly #value: unknown
  readonly #members = new Members()
  readonly #available: Registry
  /** The keys of components by their names in lowerCamelCase. */
  readonly #keys: ReadonlyMap<string, string>

  constructor(value: unknown, available: Registry) {
    this.#value = value
    this.#available = available
    this.#keys = new Map([...available.keys()].map((key) => [camelCase(key), key]))
  }

  /** Whether there is the place that a pointer means, or a field of that name can be set there; names are in either casing. */
  leadsSomewhere(pointer: string): boolean {
    const steps = tokensOf(pointer)
    const last = steps.at(-1) ?? ''
    let at = this.#value
    for (const token of steps.slice(0, -1)) {
      if (typeof at !== 'object' || at === null) return false
      const name = this.#members.named(at, token)
      if (name === undefined) return false
      at = (at as Record<string, unknown>)[name]
    }
    if (Array.isArray(at)) return /^\d+$/.test(last) && Number(last) < at.length
    if (!isObject(at)) return false
    return this.#members.named(at, last) !== undefined || this.#takes(this.#schemaAt(steps.slice(0, -1)), last)
  }

  /** Whether an object with that schema may have a field or entry of that name. */
  #takes({ properties, patternProperties }: SchemaNode, name: string): boolean {
    return (
      patternProperties !== undefined ||
      (properties !== undefined && this.#members.named(properties, name) !== undefined)
    )
  }

  /** The schema of what stands at the end of these steps; an empty one where that is no field, but a whole component. */
  #schemaAt(steps: readonly string[]): SchemaNode {
    const [, , , member, ...own] = steps
    const [first = '', second] = steps.map(camelCase)
    if (first === 'engineConfig' && second === 'pipeline' && steps.length > 2) {
      const key = member === undefined ? undefined : this.#keys.get(camelCase(member))
      return key === undefined ? NOTHING : this.#within(this.#available.get(key)?.config as SchemaNode, own)
    }
    return this.#within(Shell as SchemaNode, steps)
  }

  #within(schema: SchemaNode, steps: readonly string[]): SchemaNode {
    let at = schema
    for (const step of steps) {
      const { properties = NONE, patternProperties = NONE, items } = at
      at =
        properties[this.#members.named(properties, step) ?? ''] ??
        Object.values(patternProperties)[0] ??
        items ??
        NOTHING
    }
    return at
  }
}

const NOTHING = {} as SchemaNode
const NONE: Readonly<Record<string, SchemaNode>> = {}
