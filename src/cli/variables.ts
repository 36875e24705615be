/** Writes values to the places that a configuration's variables point to. */
import { memberNamed } from '../text/json-object.ts'
import { readJson } from '../text/json-text.ts'
import { suggestion } from '../text/names.ts'
import { tokensOf } from '../text/pointer.ts'
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

function write(config: unknown, pointer: string, text: string, variable: string): void {
  if (!pointer.startsWith('/')) {
    throw refusal(`variable "${variable}": path "${pointer}" is no JSON pointer, which starts with /`)
  }
  const tokens = tokensOf(pointer)
  const last = tokens.pop() as string
  let container = config
  for (const token of tokens) {
    const name = isContainer(container) ? memberNamed(container, token) : undefined
    if (name === undefined) throw refusal(`variable "${variable}": "${pointer}" does not exist in the configuration`)
    container = (container as Container)[name]
  }
  if (!isContainer(container)) {
    throw refusal(`variable "${variable}": "${pointer}" does not exist in the configuration`)
  }
  if (Array.isArray(container) && !Object.hasOwn(container, last)) {
    throw refusal(`variable "${variable}": "${pointer}" is no entry of the list, which has ${container.length}`)
  }
  const name = memberNamed(container, last) ?? last
  // What was text stays text.
  container[name] = typeof container[name] === 'string' ? text : typedValue(text, `variable "${variable}"`)
}

const ASSIGNMENT = /^([^=]+)=(.*)$/s

/** The configuration with every `variable=value` written to all of the variable's paths. */
export function setVariables(jsonConfig: string, assignments: readonly string[]): string {
  const { value, problems } = readJson(jsonConfig)
  // What JSON.parse drops in silence would be lost before the node can refuse it.
  if (problems.length > 0) throw new Failure(`the configuration cannot be read:\n${problemLines(problems)}`)
  const config = value as { variables?: Variable[] }
  const variables = new Map((config.variables ?? []).map((variable) => [variable.id, variable.paths ?? []]))
  for (const assignment of assignments) {
    const [, id, value] = ASSIGNMENT.exec(assignment) ?? []
    if (id === undefined) throw new UsageFailure(`"${assignment}" is no assignment: write it variable=value`)
    const paths = variables.get(id)
    if (!paths) {
      const known = [...variables.keys()]
      const hint = suggestion(id, known) || (known.length > 0 ? ` It has ${known.join(', ')}.` : ' It has none.')
      throw refusal(`the configuration has no variable "${id}".${hint}`)
    }
    if (paths.length === 0) throw refusal(`variable "${id}" points to nothing: its paths are empty`)
    for (const path of paths) write(config, path, value, id)
  }
  return JSON.stringify(config, null, 2)
}
