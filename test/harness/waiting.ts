/** How tests wait: for a condition, with a deadline; and for what is on its way inside this process. */

/** Far above what a loaded machine takes, below the time limit of a test. */
const DEADLINE_MS = 20_000
/** Turns of the event loop that are looked at one after the other, before looks have pauses between them. */
const EAGER_TURNS = 200
const PAUSE_MS = 5

/** Waits until a condition holds; fails when it does not by the deadline, saying `what` was waited for. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  what: string | (() => string) = `${holds}`,
  milliseconds = DEADLINE_MS,
): Promise<void> {
  const end = performance.now() + milliseconds
  for (let turn = 0; !(await holds()); turn++) {
    if (performance.now() > end) {
      throw new Error(`not within ${milliseconds / 1000} s: ${typeof what === 'string' ? what : what()}`)
    }
    await new Promise<void>((resolve) => {
      if (turn < EAGER_TURNS) setImmediate(resolve)
      else setTimeout(resolve, PAUSE_MS)
    })
  }
}

/** Lets what is on its way inside this process arrive: so many turns of the event loop. */
export async function settle(turns = 20): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
}
