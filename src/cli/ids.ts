/** What a person means who names one of several things: its id, its name, or the beginning of its id. */
import { Failure } from './failure.ts'

/** Fewest characters of an id that stand for the whole: what is shorter is too easily a slip, or the name of something that is gone. */
const MIN_ID_CHARACTERS = 4

/** What stands in the help of arguments that `meant` reads. */
export const ID_OR_NAME = 'its id, the beginning of that, or its name'

/** What a failure to find something says of the beginnings of ids. */
export const OF_BEGINNINGS = `of an id at least ${MIN_ID_CHARACTERS} characters are wanted`

/**
 * The one of `all` whose id is `given`, else the one of that name, else the one whose id begins with it; undefined when there is none. Throws
 * a failure with the ids when there are several; `kind` is what they are, in the plural.
 */
export function meant<T extends { readonly id: string; readonly name?: string }>(
  all: readonly T[],
  given: string,
  kind: string,
): T | undefined {
  const known = all.find(({ id }) => id === given)
  if (known !== undefined) return known
  const named = all.filter(({ name }) => name === given)
  if (named.length > 0) return only(named, `${named.length} ${kind} are called "${given}"`)
  if (given.length < MIN_ID_CHARACTERS) return undefined
  const begun = all.filter(({ id }) => id.startsWith(given))
  return only(begun, `the ids of ${begun.length} ${kind} begin with "${given}"`)
}

function only<T extends { readonly id: string }>(found: readonly T[], told: string): T | undefined {
  if (found.length > 1) throw new Failure(`${told}: use one of the ids ${found.map(({ id }) => id).join(', ')}`)
  return found[0]
}
