/** Means, spreads, and how sure a share is that was counted in a sample. */

/** Of values, one at least. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** Sample variance (n - 1 in the denominator); 0 of a single value. */
function variance(values: readonly number[]): number {
  if (values.length < 2) return 0
  const middle = mean(values)
  return values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1)
}

/** Sample standard deviation, in the unit of the values; 0 of a single value. */
export function standardDeviation(values: readonly number[]): number {
  return Math.sqrt(variance(values))
}

/** The 95th percentile of the standard normal distribution. */
const Z_95 = 1.6449

/**
 * Upper limit, with 95 % confidence, of the mean of a Poisson distribution of which `count` was seen: half the 95th percentile of a
 * chi-square distribution of 2 (count + 1) degrees of freedom (Garwood 1936), by the approximation of Wilson and Hilferty (1931), within
 * 1 % of it; 2.97 of none.
 */
function poissonUpperLimit(count: number): number {
  const shape = count + 1
  return shape * (1 - 1 / (9 * shape) + Z_95 / (3 * Math.sqrt(shape))) ** 3
}

/** Upper limit, with 95 % confidence, of the share of packets that are lost. */
export interface LossSample {
  /** Packets lost, by run. */
  readonly lost: readonly number[]
  /** Packets sent in all of the runs together. */
  readonly sent: number
  /** Packets that are lost together at least, when any are: 1 where each is lost by itself. */
  readonly together: number
}

/**
 * Upper limit, with 95 % confidence, of the share of packets lost. Packets are lost together, a block or a burst at a time, so events are
 * counted rather than packets: an event has as many packets as the variance of the runs over their mean says (the dispersion of a
 * quasi-Poisson model), `together` at least.
 */
export function lossUpperLimit({ lost, sent, together }: LossSample): number {
  const total = lost.reduce((sum, count) => sum + count, 0)
  const dispersion = total === 0 ? 0 : variance(lost) / mean(lost)
  const each = Math.max(1, together, dispersion)
  return Math.min(1, (each * poissonUpperLimit(total / each)) / sent)
}
