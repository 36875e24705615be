/** JSON text to values, with the position of the fault when there is one. */
import { invalidArgument } from '../services/errors.ts'

/** Parses JSON; throws INVALID_ARGUMENT with position, line and column when it is malformed. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw invalidArgument('', `malformed JSON ${where(text, error as Error)}`)
  }
}

function where(text: string, error: Error): string {
  // V8 names the position in some of its messages and only quotes the text around it in others.
  const named = /at position (\d+)/.exec(error.message)?.[1]
  const at = named === undefined ? faultPosition(text) : Number(named)
  if (at >= text.length) return `at position ${text.length}: the text ends too early`
  const before = text.slice(0, at)
  const line = before.split('\n').length
  return `at position ${at} (line ${line}, column ${at - before.lastIndexOf('\n')})`
}

const SPACE = /[ \t\n\r]*/y
// Escapes and control characters need no check: V8 names the position of those.
const STRING = /"(?:[^"\\]+|\\.)*"/sy
const NUMBER_OR_WORD = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y

/** Offset of the first token of `text` that is no JSON where it stands (RFC 8259); the length when it ends too early. */
function faultPosition(text: string): number {
  let at = 0
  const take = (pattern: RegExp): boolean => {
    pattern.lastIndex = at
    if (!pattern.test(text)) return false
    at = pattern.lastIndex
    return true
  }
  const open: string[] = []
  let wanted: 'value' | 'value or end' | 'key' | 'key or end' | 'comma or end' = 'value'
  for (;;) {
    take(SPACE)
    const next = text[at]
    if (next === undefined) return at
    const inner = open[open.length - 1]
    if (wanted === 'comma or end') {
      if (inner === undefined) return at
      if (next === ',') wanted = inner === '{' ? 'key' : 'value'
      else if (next === (inner === '{' ? '}' : ']')) open.pop()
      else return at
      at++
    } else if ((wanted === 'key or end' && next === '}') || (wanted === 'value or end' && next === ']')) {
      open.pop()
      at++
      wanted = 'comma or end'
    } else if (wanted === 'key' || wanted === 'key or end') {
      if (!take(STRING)) return at
      take(SPACE)
      if (text[at] !== ':') return at
      at++
      wanted = 'value'
    } else if (next === '{' || next === '[') {
      open.push(next)
      at++
      wanted = next === '{' ? 'key or end' : 'value or end'
    } else if (take(STRING) || take(NUMBER_OR_WORD)) wanted = 'comma or end'
    else return at
  }
}
