/** Whether this process has just stood still: was stopped (SIGSTOP), or its machine slept. */

/** How often it is looked, ms. */
const TICK_MS = 250
/** How late a look may be before the process counts as having stood still, ms. */
const LATE_MS = 1_000
/** How long it then takes in what has come meanwhile, ms. */
const CATCH_UP_MS = 500

let lookedAt = 0
let caughtUpAt = 0
let timer: NodeJS.Timeout | undefined

function look(): void {
  const now = performance.now()
  if (now - lookedAt > TICK_MS + LATE_MS) caughtUpAt = now + CATCH_UP_MS
  lookedAt = now
}

/** Milliseconds until what has come while this process stood still has been taken in; 0: it has not, or that is over. From the first call on. */
export function catchingUp(): number {
  if (timer === undefined) {
    lookedAt = performance.now()
    timer = setInterval(look, TICK_MS)
    timer.unref()
  }
  // The loop may bring what has come before it calls the timer that is late.
  look()
  return Math.max(0, caughtUpAt - lookedAt)
}
