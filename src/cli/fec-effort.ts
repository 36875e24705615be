/** How much `fec advise` simulates of each code. */

/** Simulations of each candidate, with seeds of their own: what their losses differ by says how many packets are lost together. */
export const RUNS = 4
export const DEFAULT_PACKETS = 100_000
export const MIN_PACKETS = 400
/** Most packets of a trial. */
export const MAX_PACKETS = 100_000_000

export interface Effort {
  /** Packets of all runs of a candidate together. */
  readonly packets: number
  /** Of the first run of each candidate. */
  readonly seed: number
}
