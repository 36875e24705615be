/** What a person means who names one of several things: its id, its name, or the beginning of its id. */
import { Failure } from './failure.ts'
import { named } from './terminal.ts'

/** Fewest characters of an id that stand for the whole: what is shorter is too easily a slip, or the name of something that is gone. */
const MIN_ID_CHARACTERS = 4

/** The ids of pipelines and of runs, as nodes make them (RFC 9562). */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const ANY_UUID = '00000000-0000-0000-0000-000000000000'

/** Whether it looks like the whole id of a pipeline or of a run. */
export const isWholeId = (given: string): boolean => UUID.test(given)

/** Whether the id of a pipeline or of a run may begin with it, without being it. */
export const mayBeginId = (given: string): boolean =>
  given.length >= MIN_ID_CHARACTERS && given.length < ANY_UUID.length && UUID.test(given + ANY_UUID.slice(given.length))

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
