/** Shares, whole milliseconds and bit rates as options give them. */
import { InvalidArgumentError } from 'commander'
import { readDuration } from '../text/durations.ts'

/** Reads `5%` or `0.05`; gives a share from 0 to `most`, 1 being all. `what` begins the sentence about a wrong one. */
export function share(what: string, most = 1): (given: string) => number {
  return (given) => {
    const [, digits, sign] = /^(\d+(?:\.\d+)?|\.\d+)(%?)$/.exec(given) ?? []
    const value = Number(digits) / (sign === '%' ? 100 : 1)
    if (digits === undefined || value > most) {
      throw new InvalidArgumentError(`${what} is written 5% or 0.05, from 0 to ${most * 100} %.`)
    }
    return value
  }
}

/** Reads `40ms`, `1s`; gives whole milliseconds, 0 too. */
export function milliseconds(given: string): number {
  const value = readDuration(given)
  if (value === undefined || !Number.isInteger(value)) {
    throw new InvalidArgumentError('A time is written 40ms or 1s, in whole milliseconds.')
  }
  return value
}

const PER_MEGABIT: Readonly<Record<string, number>> = { k: 1e-3, M: 1, G: 1e3 }

/** Reads `500k`, `10M`, `1G` bit/s; gives Mbit/s. */
export function bitRate(given: string): number {
  const [, digits, unit = ''] = /^(\d+(?:\.\d+)?)([kMG])$/.exec(given) ?? []
  const value = Number(digits) * (PER_MEGABIT[unit] ?? Number.NaN)
  if (!(value >= 0.001 && value <= 1_000_000)) {
    throw new InvalidArgumentError('A rate is written 500k, 10M or 1G (bit/s), from 1k to 1000G.')
  }
  return value
}
