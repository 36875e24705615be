/** Shares, whole milliseconds and bit rates as options give them. */
import { InvalidArgumentError } from 'commander'
import { typedDuration } from './durations.ts'

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
  const value = typedDuration(given)
  if (value === undefined || !Number.isInteger(value)) {
    throw new InvalidArgumentError('A time is written 40ms or 1s, in whole milliseconds.')
  }
  return value
}

/** Reads how many packets are lost in a row on average, `4` or `2.5`; one at least. */
export function burstLength(given: string): number {
  const value = Number(given)
  if (!/^\d+(\.\d+)?$/.test(given) || value < 1 || value > 1_000_000) {
    throw new InvalidArgumentError('A burst is a number of packets from 1 to 1000000, such as 4 or 2.5.')
  }
  return value
}

const PER_MEGABIT: Readonly<Record<string, number>> = { k: 1e-3, M: 1, G: 1e3 }
/** As tc(8) writes them, which takes either case (`bps` is bytes to it), with `/s` as reports here do. */
const BIT_UNITS: Readonly<Record<string, string>> = { kbit: 'k', mbit: 'M', gbit: 'G' }

/** Reads `500k`, `10M`, `1G` bit/s, `10mbit` and `10Mbit/s`; gives Mbit/s. */
export function bitRate(given: string): number {
  const [, digits, unit = ''] = /^(\d+(?:\.\d+)?)([a-z]+?)(?:(?<=bit)\/s)?$/i.exec(given) ?? []
  const value = Number(digits) * (PER_MEGABIT[BIT_UNITS[unit.toLowerCase()] ?? unit] ?? Number.NaN)
  if (!(value >= 0.001 && value <= 1_000_000)) {
    throw new InvalidArgumentError('A rate is written 500k, 10M or 1G (bit/s), from 1k to 1000G.')
  }
  return value
}
