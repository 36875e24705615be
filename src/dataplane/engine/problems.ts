/** How many problems of a configuration are looked for. */
import type { Problem } from '../../text/pointer.ts'

/**
 * Problems that are looked for in one configuration: many more than an answer tells. One of nothing but mistakes has hundreds of thousands, and each
 * costs time and memory.
 */
export const MAX_FOUND = 5_000

/** Adds to `problems` what was found besides, as far as there is room. */
export function add(problems: Problem[], found: Iterable<Problem>): void {
  for (const problem of found) {
    if (problems.length >= MAX_FOUND) return
    problems.push(problem)
  }
}
