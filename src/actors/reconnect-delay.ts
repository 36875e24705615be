/** How long a node waits before it tries its hub again. */

export const MIN_BACK_OFF_MS = 500
export const MAX_BACK_OFF_MS = 30_000
/** Longest wait of the first attempts in a row: the nodes of a hub that was started again are back within it, and are spread over it. */
const MAX_EARLY_BACK_OFF_MS = 2_000
/** How many attempts these are: about the first quarter of a minute. */
const EARLY_ATTEMPTS = 13
/** Longest wait of those that follow: a hub that was away for less than a minute has its nodes back soon. */
const MAX_LATER_BACK_OFF_MS = 4_000
/**
 * How many attempts wait no longer than that, the early ones counted: their waits come to 76 s in the mean, and to less than a minute once in
 * a thousand times.
 */
export const MINUTE_ATTEMPTS = 40

/** A link that stood this long ends the row of attempts. */
export const HEALTHY_MS = 10_000

/**
 * Milliseconds before the attempt after `attempts` failed ones: any between 0.5 s and 1 s, then 2 s twelve times, 4 s 27 times, 8 s, 16 s, 30 s from then
 * on, so that nodes do not come all at once.
 */
export function reconnectDelay(attempts: number, random: number): number {
  return MIN_BACK_OFF_MS + random * (longestWait(attempts) - MIN_BACK_OFF_MS)
}

function longestWait(attempts: number): number {
  if (attempts < EARLY_ATTEMPTS) return Math.min(MAX_EARLY_BACK_OFF_MS, 2 * MIN_BACK_OFF_MS * 2 ** attempts)
  const late = Math.max(0, attempts - MINUTE_ATTEMPTS + 1)
  return Math.min(MAX_BACK_OFF_MS, MAX_LATER_BACK_OFF_MS * 2 ** late)
}

/**
 * Milliseconds before the first attempt at another server of the hub, which is likely to be up: any up to 2 s, so that the nodes of a server that is gone do
 * not come all at once.
 */
export function changeOverDelay(random: number): number {
  return random * MAX_EARLY_BACK_OFF_MS
}
