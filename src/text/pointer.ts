/** JSON pointers (RFC 6901), and what is wrong at the places they lead to. */

/** One thing wrong with a text or a request. */
export interface Problem {
  /** JSON pointer: `/jsonConfig`, `/metadata/items/region`. Empty for the whole. */
  readonly pointer: string
  /** What is wrong there and what to do about it. */
  readonly message: string
}

/** The pointer one step below `pointer`. */
export function below(pointer: string, token: string | number): string {
  return `${pointer}/${String(token).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** The pointer whose steps these are. */
export function pointerOf(tokens: readonly (string | number)[]): string {
  return tokens.reduce<string>(below, '')
}

/** The steps of a pointer; of the empty one none. */
export function tokensOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
}
