/** Names: their casing, and the known name nearest to a misspelt one. */
import { closest, distance } from 'fastest-levenshtein'

/** lowerCamelCase as protoc's json_name derives it from snake_case: `parity_2d_encoder` is `parity2dEncoder`. */
export function camelCase(name: string): string {
  return name.replace(/_+(.?)/g, (_, next: string) => next.toUpperCase())
}

/** Longer names are no slip or word, and the distance is quadratic in their length. */
const MAX_SLIP_LENGTH = 64

/** The name of `known` with the smallest edit distance (Levenshtein) to `name`, whatever its case, when it is small enough to be a slip. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  if (known.length === 0 || name.length > MAX_SLIP_LENGTH) return undefined
  const lower = known.map((candidate) => candidate.toLowerCase())
  const best = closest(name.toLowerCase(), lower)
  if (distance(name.toLowerCase(), best) > Math.max(2, Math.ceil(name.length / 3))) return undefined
  return known[lower.indexOf(best)]
}

/** Known names that are looked at for all guesses about one text: each takes about a microsecond. */
const MAX_COMPARED = 100_000

/**
 * ` Did you mean "x"?` for the known name nearest to `name`, '' when none is near. `before`: problems of the same text that were found already;
 * after many no more guesses are made.
 */
export function suggestion(name: string, known: readonly string[] | ReadonlySet<string>, before = 0): string {
  const count = 'size' in known ? known.size : known.length
  if ((before + 1) * count > MAX_COMPARED) return ''
  const guess = nearest(name, [...known])
  return guess === undefined ? '' : ` Did you mean "${guess}"?`
}

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[a-z0-9]+/g) ?? []

/** Whether `text`, a name or a sentence, has all words of `wanted`: `uniform_loss` has `loss`, and not `los`. */
export function hasWords(text: string, wanted: string): boolean {
  if (wanted.length > MAX_SLIP_LENGTH) return false
  const words = new Set(wordsOf(text))
  const needed = wordsOf(wanted)
  return needed.length > 0 && needed.every((word) => words.has(word))
}
