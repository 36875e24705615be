/** Many steps that wait for the engine: not all at once. */

/** Writes under way at once, for which the engine is not to be flooded. */
const MAX_AT_ONCE = 64

/** Does `step` for each item, MAX_AT_ONCE at a time, all of them; rejects as the first that failed did. */
export async function inTurns<T>(items: Iterable<T>, step: (item: T) => Promise<unknown>): Promise<void> {
  const rest = items[Symbol.iterator]()
  const failures: unknown[] = []
  const work = async () => {
    for (let next = rest.next(); next.done !== true; next = rest.next()) {
      await step(next.value).catch((error: unknown) => failures.push(error))
    }
  }
  await Promise.all(Array.from({ length: MAX_AT_ONCE }, work))
  if (failures.length > 0) throw failures[0]
}
