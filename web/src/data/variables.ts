/** The variables of a configuration: names for places in it that are meant to be changed. */
import { fieldOf, isFields } from './configuration.ts'
import { readJson } from './json.ts'
import { asBefore, asShown } from './line-breaks.ts'
import { valueAt } from './places.ts'

export interface Variable {
  readonly id: string
  readonly label: string
  readonly description: string
  /** JSON pointers; all get the value. */
  readonly paths: readonly string[]
  /** What is at the first of them; undefined: nothing yet. */
  readonly value: unknown
}

/** The variables of a configuration's JSON text that have a place. */
export function variablesOf(jsonConfig: string): readonly Variable[] {
  const config: unknown = JSON.parse(jsonConfig)
  const variables = fieldOf(config, 'variables')
  if (!Array.isArray(variables)) return []
  return variables.filter(isFields).flatMap(({ id, label, description, paths }) => {
    const places = Array.isArray(paths) ? paths.filter((path) => typeof path === 'string') : []
    if (typeof id !== 'string' || places[0] === undefined) return []
    const value = valueAt(config, places[0])
    return [{ id, label: textOf(label) || id, description: textOf(description), paths: places, value }]
  })
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** A value as it is typed; a text is written without quotes. */
export function typed(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? asShown(value) : JSON.stringify(value)
}

/** What was typed as a value: what was a text stays one, the rest is JSON where it is JSON. */
export function valueOfText(text: string, before: unknown): unknown {
  if (typeof before === 'string') return asBefore(text, before)
  try {
    return readJson(text)
  } catch {
    return text
  }
}

/** What is typed in place of a variable's value. */
export interface Draft {
  readonly text: string
  /** What was stored, as it is typed, when that was begun or last decided about. */
  readonly base: string
}

/** Whether what is typed says something else than what is stored. */
export function isChanged({ value }: Variable, draft: Draft | undefined): boolean {
  if (draft === undefined || asShown(draft.text) === typed(value)) return false
  return typed(valueOfText(asShown(draft.text), value)) !== typed(value)
}

/** What is typed, by place; only what it changes. */
export function changedValues(
  variables: readonly Variable[],
  drafts: ReadonlyMap<string, Draft>,
): ReadonlyMap<string, unknown> {
  const values = new Map<string, unknown>()
  for (const variable of variables) {
    const draft = drafts.get(variable.id)
    if (draft === undefined || !isChanged(variable, draft)) continue
    for (const path of variable.paths) values.set(path, valueOfText(asShown(draft.text), variable.value))
  }
  return values
}
