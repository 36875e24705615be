/** Key casing and the nearest known name for a misspelt one. */
import { closest, distance } from 'fastest-levenshtein'

/** lowerCamelCase as proto3 JSON derives it from snake_case: `parity_2d_encoder` is `parity2dEncoder`. */
export function camelCase(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

/** ` Did you mean "x"?` for the known name closest to `name`, '' when none is close. */
export function suggestion(name: string, known: readonly string[]): string {
  if (known.length === 0) return ''
  const nearest = closest(name, known as string[])
  return distance(name, nearest) <= Math.max(2, Math.ceil(name.length / 3)) ? ` Did you mean "${nearest}"?` : ''
}

/** Escapes one reference token of a JSON pointer (RFC 6901). */
export function pointerToken(token: string | number): string {
  return String(token).replaceAll('~', '~0').replaceAll('/', '~1')
}
