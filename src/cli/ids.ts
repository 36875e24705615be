/** What a person means who names one of several things: its id, its name, or the beginning of its id. */
import { Failure } from './failure.ts'
import { named } from './terminal.ts'

/** Fewest characters of an id that stand for the whole: what is shorter is too easily a slip, or the name of something that is gone. */
const MIN_ID_CHARACTERS = 4

/** What stands in the help of arguments that `meant` reads. */
export const ID_OR_NAME = 'its id, the beginning of that, or its name'

/** What a failure to find something says of the beginnings of ids. */
export const OF_BEGINNINGS = `of an id at least ${MIN_ID_CHARACTERS} characters are wanted`

/**
 * The one of `all` whose id is `given`, else the one of that name or whose id begins with it; undefined when there is none. Throws a failure
 * with the ids when there are several, as names can be chosen to be the beginning of another's id; `kind` is what they are, in the plural.
 */
export function meant<T extends { readonly id: string; readonly name?: string }>(
  all: readonly T[],
  given: string,
  kind: string,
): T | undefined {
  const known = all.find(({ id }) => id === given)
  if (known !== undefined) return known
  const called = all.filter(({ name }) => name === given)
  const begun = given.length < MIN_ID_CHARACTERS ? [] : all.filter(({ id }) => id.startsWith(given))
  const found = [...new Set([...called, ...begun])]
  if (found.length < 2) return found[0]
  const told = [
    ...(called.length === 0 ? [] : [`"${named(given)}" is the name of ${idsOf(called)}`]),
    ...(begun.length === 0 ? [] : [`"${given}" is the beginning of ${idsOf(begun)}`]),
  ]
  throw new Failure(`${found.length} ${kind} can be meant: ${told.join('; ')}: use one of the ids`)
}

const idsOf = (found: readonly { readonly id: string }[]): string => found.map(({ id }) => id).join(', ')
