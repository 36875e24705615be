/** JSON text to values, with the position of the fault when there is one. */
import { refuse } from '../contract/json-decode.ts'
import { readJson } from '../text/json-text.ts'

/** Parses JSON; throws INVALID_ARGUMENT with position, line and column when it is malformed, with the pointer when a key is given twice. */
export function parseJson(text: string): unknown {
  const { value, problems } = readJson(text)
  refuse(problems)
  return value
}
