/** How long a node waits before it tries its hub again. */

export const MIN_BACK_OFF_MS = 500
export const MAX_BACK_OFF_MS = 30_000
/** Longest wait of the first attempts in a row: the nodes of a hub that was started again are back within it, and are spread over it. */
const MAX_EARLY_BACK_OFF_MS = 2_000
/** How many attempts these are: about the first quarter of a minute. */
export const EARLY_ATTEMPTS = 13

/** A link that stood this long ends the row of attempts. */
export const HEALTHY_MS = 10_000

/**
 * Milliseconds before the attempt after `attempts` failed ones: any between 0.5 s and 1 s, then 2 s twelve times, 4 s, 8 s, 16 s, 30 s from then on,
 * so that nodes do not come all at once.
 */
export function reconnectDelay(attempts: number, random: number): number {
  const early = Math.min(MAX_EARLY_BACK_OFF_MS, 2 * MIN_BACK_OFF_MS * 2 ** Math.min(attempts, 16))
  const late = Math.min(MAX_BACK_OFF_MS, MAX_EARLY_BACK_OFF_MS * 2 ** Math.min(attempts - EARLY_ATTEMPTS + 1, 16))
  const most = attempts < EARLY_ATTEMPTS ? early : late
  return MIN_BACK_OFF_MS + random * (most - MIN_BACK_OFF_MS)
}

/**
 * Milliseconds before the first attempt at another server of the hub, which is likely to be up: any up to 2 s, so that the nodes of a server that is gone do
 * not come all at once.
 */
export function changeOverDelay(random: number): number {
  return random * MAX_EARLY_BACK_OFF_MS
}
