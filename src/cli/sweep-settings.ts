/** The `--set` of a sweep: which places of a configuration they mean, and the configurations with each of their values. */
import { components } from '../dataplane/components/registry.ts'
import type { SchemaNode } from '../dataplane/engine/schema.ts'
import { isObject, memberNamed } from '../text/json-object.ts'
import { camelCase, suggestion } from '../text/names.ts'
import { pointerOf, tokensOf } from '../text/pointer.ts'
import { componentOf, stepsOf } from './component-field.ts'
import { Failure, UsageFailure } from './failure.ts'
import { readValues } from './sweep-values.ts'
import { named } from './terminal.ts'

type Container = Record<string, unknown>

/** One `--set`. */
export interface Setting {
  /** As it was written: `encoder.repair`, or the id of a variable. */
  readonly target: string
  /** The places it is written to, as the steps that lead to them. */
  readonly places: readonly (readonly string[])[]
  /** What its component and field are called in messages. */
  readonly subject: string
  /** It sets a variable, which what is wrong at one of its places says itself. */
  readonly isVariable: boolean
  readonly values: readonly unknown[]
}

/** One value of each setting, in their order. */
export type Combination = readonly unknown[]

interface Place {
  readonly steps: string[]
  readonly subject: string
  /** The field takes texts. */
  readonly isText: boolean
}

const isNamed = (name: string, token: string): boolean => name === token || camelCase(name) === token

/** What there is, for who named something else. */
const choice = (name: string, known: readonly string[]): string =>
  suggestion(name, known) || (known.length > 0 ? ` There are ${known.join(', ')}.` : ' There are none.')

/** Follows `field` (`repair`, `phases.0.delay`, `phases[0].delay`) through the schema of a component. */
function follow(schema: SchemaNode, field: string, component: string): { tokens: string[]; node: SchemaNode } {
  const tokens: string[] = []
  let node = schema
  for (const token of stepsOf(field)) {
    const refuse = (why: string) => new Failure(`--set: ${component} ${why}`)
    const at = tokens.length > 0 ? ` in "${tokens.join('.')}"` : ''
    if (node.properties) {
      const known = Object.keys(node.properties)
      const name = known.find((each) => isNamed(each, token))
      if (name === undefined) throw refuse(`has no field "${token}"${at}.${choice(token, known)}`)
      node = node.properties[name] as SchemaNode
    } else if (node.items) {
      if (!/^\d+$/.test(token)) throw refuse(`has a list${at}: name an entry by its number from 0, not "${token}"`)
      node = node.items
    } else throw refuse(`has nothing more${at}: "${token}" leads nowhere`)
    tokens.push(token)
  }
  return { tokens, node }
}

/** The place that `target` names; undefined when it names no component. */
function placeOf(target: string, config: Container): Place | undefined {
  const engine = ['engine_config', 'engineConfig'].find((name) => Object.hasOwn(config, name)) as string
  const { pipeline } = config[engine] as { pipeline: Record<string, Container> }
  const component = componentOf(target, pipeline)
  if (component === undefined) return undefined
  const [member = ''] = Object.keys(pipeline[component] ?? {}).filter((name) => pipeline[component]?.[name] !== null)
  const key = [...components.keys()].find((each) => isNamed(each, member)) ?? member
  const schema = components.get(key)?.config as SchemaNode
  const what = `component "${component}" (${key})`
  const field = target.slice(component.length + 1)
  if (field === '') {
    const known = Object.keys(schema.properties ?? {})
    throw new UsageFailure(`--set ${target}: say which field of ${what}: ${known.join(', ')}`)
  }
  const { tokens, node } = follow(schema, field, what)
  return {
    steps: [engine, 'pipeline', component, member, ...tokens],
    subject: `${what}, field "${field}"`,
    isText: node.type === 'string' && node.enumeration === undefined,
  }
}

/** The places of the variable that `target` names; undefined when there is none. Fails on one that points to nothing, which would change nothing. */
function placesOfVariable(target: string, config: Container): string[][] | undefined {
  const variables = (config.variables ?? []) as { id: string; paths?: string[] | null }[]
  const variable = variables.find(({ id }) => id === target)
  if (variable === undefined) return undefined
  const paths = variable.paths ?? []
  if (paths.length === 0) throw new Failure(`--set: variable "${target}" points to nothing: its paths are empty`)
  return paths.map((path) => {
    if (path.startsWith('/')) return tokensOf(path)
    throw new Failure(`--set: variable "${target}": path "${path}" is no JSON pointer, which starts with /`)
  })
}

function readSetting(assignment: string, config: Container): Setting {
  const [, target, text] = /^([^=]+)=(.*)$/s.exec(assignment) ?? []
  if (target === undefined || text === undefined) {
    throw new UsageFailure(`--set ${assignment}: write it component.field=value, or component.field=value,value`)
  }
  const places = placesOfVariable(target, config)
  if (places !== undefined) {
    const isText = places.some((steps) => typeof valueAt(config, steps) === 'string')
    return {
      target,
      subject: `variable "${target}"`,
      isVariable: true,
      places,
      values: readValues(text, target, isText),
    }
  }
  const place = placeOf(target, config)
  if (place !== undefined) {
    const { steps, subject, isText } = place
    return { target, subject, isVariable: false, places: [steps], values: readValues(text, target, isText) }
  }
  const { pipeline } = (config.engine_config ?? config.engineConfig) as { pipeline: object }
  const [component = ''] = target.split('.')
  const known = Object.keys(pipeline)
  throw new Failure(named(`--set ${target}: there is no component "${component}".${choice(component, known)}`))
}

/** The settings of `assignments`, `config` being the JSON of a configuration that has been checked. Fails on what is not in it. */
export function readSettings(assignments: readonly string[], config: unknown): Setting[] {
  const settings = assignments.map((assignment) => readSetting(assignment, config as Container))
  const seen = new Set<string>()
  for (const { target, places, values } of settings) {
    for (const place of places.map(pointerOf)) {
      if (seen.has(place)) {
        throw new UsageFailure(`--set ${target}: it is set twice; put all values into one, ${target}=${values[0]},…`)
      }
      seen.add(place)
    }
  }
  return settings
}

const memberOf = (container: Container, token: string): string => memberNamed(container, token) ?? token

function valueAt(config: unknown, steps: readonly string[]): unknown {
  return steps.reduce<unknown>(
    (value, step) =>
      isObject(value) || Array.isArray(value) ? (value as Container)[memberOf(value as Container, step)] : undefined,
    config,
  )
}

/** A copy of `config` with the values of `combination`; null takes a field out. */
export function withValues(config: unknown, settings: readonly Setting[], combination: Combination): unknown {
  const copy = structuredClone(config)
  settings.forEach(({ target, places, isVariable }, i) => {
    for (const steps of places) {
      const container = valueAt(copy, steps.slice(0, -1))
      if (!isObject(container) && !Array.isArray(container)) {
        throw new Failure(
          `--set ${target}: the configuration has nothing at ${pointerOf(steps.slice(0, -1))} to set it in`,
        )
      }
      const last = steps.at(-1) as string
      if (isVariable && Array.isArray(container) && !Object.hasOwn(container, last)) {
        throw new Failure(
          `--set ${target}: variable "${target}": "${pointerOf(steps)}" is no entry of the list, which has ${container.length}`,
        )
      }
      ;(container as Container)[memberOf(container as Container, last)] = combination[i]
    }
  })
  return copy
}

/** All combinations of the settings' values, the last setting going through its own first; one, empty, of no settings. */
export function combinationsOf(settings: readonly Setting[]): Combination[] {
  return settings.reduce<unknown[][]>(
    (combinations, { values }) => combinations.flatMap((combination) => values.map((value) => [...combination, value])),
    [[]],
  )
}

/** `encoder.repair=2` for each setting. */
export function assignmentsOf(settings: readonly Setting[], combination: Combination): string[] {
  return settings.map(({ target }, i) => `${target}=${valueText(combination[i])}`)
}

/** A value as it is written on the command line. */
export function valueText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
