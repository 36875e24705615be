/** Variables of a configuration: which of them a problem is about. */
import { isObject } from '../../text/json-object.ts'
import { camelCase } from '../../text/names.ts'
import { type Problem, pointerOf, tokensOf } from '../../text/pointer.ts'

/** The pointer with every name in lowerCamelCase: pointers are written in either casing. */
const plain = (pointer: string): string => pointerOf(tokensOf(pointer).map(camelCase))

/** The problems of a configuration with the value `value`; those at a place that a variable sets say which variable that is. */
export function namingVariables(problems: readonly Problem[], value: unknown): Problem[] {
  const variables = isObject(value) && Array.isArray(value.variables) ? value.variables.filter(isObject) : []
  const names = new Map<string, string>()
  for (const { id, label, paths } of variables) {
    const name = [label, id].find((text): text is string => typeof text === 'string' && text !== '')
    if (name === undefined || !Array.isArray(paths)) continue
    for (const path of paths) if (typeof path === 'string') names.set(plain(path), name)
  }
  if (names.size === 0) return [...problems]
  return problems.map((problem) => {
    const name = names.get(plain(problem.pointer))
    return name === undefined ? problem : { ...problem, message: `variable "${name}": ${problem.message}` }
  })
}
