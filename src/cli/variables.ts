/** Writes values to the places that a configuration's variables point to, and to fields of its components. */
import { isObject, memberNamed } from '../text/json-object.ts'
import { readJson } from '../text/json-text.ts'
import { suggestion } from '../text/names.ts'
import { pointerOf, tokensOf } from '../text/pointer.ts'
import { componentOf, stepsOf } from './component-field.ts'
import { Failure, UsageFailure } from './failure.ts'
import { problemLines } from './options.ts'
import { named } from './terminal.ts'
import { typedValue } from './typed-value.ts'

interface Variable {
  id: string
  paths?: string[]
}

type Container = Record<string, unknown>

const isContainer = (value: unknown): value is Container => typeof value === 'object' && value !== null

/** Of what the configuration, which may be another machine's, calls by its names. */
const refusal = (message: string): Failure => new Failure(named(message))

/** `subject` is what messages call the place. */
function write(config: unknown, pointer: string, text: string, subject: string): void {
  if (!pointer.startsWith('/')) {
    throw refusal(`${subject}: path "${pointer}" is no JSON pointer, which starts with /`)
  }
  const tokens = tokensOf(pointer)
  const last = tokens.pop() as string
  let container = config
  for (const token of tokens) {
    const name = isContainer(container) ? memberNamed(container, token) : undefined
    if (name === undefined) throw refusal(`${subject}: "${pointer}" does not exist in the configuration`)
    container = (container as Container)[name]
  }
  if (!isContainer(container)) {
    throw refusal(`${subject}: "${pointer}" does not exist in the configuration`)
  }
  if (Array.isArray(container) && !Object.hasOwn(container, last)) {
    throw refusal(`${subject}: "${pointer}" is no entry of the list, which has ${container.length}`)
  }
  const name = memberNamed(container, last) ?? last
  // What was text stays text.
  container[name] = typeof container[name] === 'string' ? text : typedValue(text, subject)
}

/** The JSON pointer of the field of a component that `target` names; undefined when it names none, or a component only. */
function pointerOfField(target: string, pipeline: Container): string | undefined {
  const component = componentOf(target, pipeline)
  if (component === undefined || component === target) return undefined
  const keyed = pipeline[component]
  const [key = ''] = isObject(keyed) ? Object.keys(keyed).filter((name) => keyed[name] !== null) : []
  return pointerOf(['engine_config', 'pipeline', component, key, ...stepsOf(target.slice(component.length + 1))])
}

/** What `target`, which is neither a variable nor a field, may have meant. */
function cureOf(target: string, variables: readonly string[], pipeline: Container): string {
  const components = Object.keys(pipeline)
  if (components.includes(target)) return ` It has a component of that name: name a field of it, ${target}.FIELD=VALUE.`
  if (target.includes('.')) {
    const [component = ''] = target.split('.')
    return ` Nor a component "${component}".${suggestion(component, components) || ` It has ${components.join(', ')}.`}`
  }
  if (variables.length === 0) return ' It has none; a field of a component is set as COMPONENT.FIELD=VALUE.'
  return suggestion(target, variables) || ` It has ${variables.join(', ')}.`
}

const ASSIGNMENT = /^([^=]+)=(.*)$/s

/** The configuration with every `variable=value` written to all of the variable's paths, and every `component.field=value` to that field. */
export function setVariables(jsonConfig: string, assignments: readonly string[]): string {
  const { value, problems } = readJson(jsonConfig)
  // What JSON.parse drops in silence would be lost before the node can refuse it.
  if (problems.length > 0) throw new Failure(`the configuration cannot be read:\n${problemLines(problems)}`)
  const config = value as Container & { variables?: Variable[] }
  const variables = new Map((config.variables ?? []).map((variable) => [variable.id, variable.paths ?? []]))
  const engine = config[memberNamed(config, 'engine_config') ?? '']
  const pipeline = isObject(engine) && isObject(engine.pipeline) ? engine.pipeline : {}
  for (const assignment of assignments) {
    const [, target, text] = ASSIGNMENT.exec(assignment) ?? []
    if (target === undefined || text === undefined) {
      throw new UsageFailure(`"${assignment}" is no assignment: write it variable=value, or component.field=value`)
    }
    const paths = variables.get(target)
    if (paths !== undefined) {
      if (paths.length === 0) throw refusal(`variable "${target}" points to nothing: its paths are empty`)
      for (const path of paths) write(config, path, text, `variable "${target}"`)
      continue
    }
    const field = pointerOfField(target, pipeline)
    if (field === undefined) {
      throw refusal(`the configuration has no variable "${target}".${cureOf(target, [...variables.keys()], pipeline)}`)
    }
    write(config, field, text, `field "${target}"`)
  }
  return JSON.stringify(config, null, 2)
}
