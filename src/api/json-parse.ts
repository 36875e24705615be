/** JSON text to values, with the position of the fault when there is one. */
import { readJson } from '../services/json-text.ts'
import { refuse } from './json-decode.ts'

/** Parses JSON; throws INVALID_ARGUMENT with position, line and column when it is malformed, with the pointer when a key is given twice. */
export function parseJson(text: string): unknown {
  const { value, problems } = readJson(text)
  refuse(problems)
  return value
}
