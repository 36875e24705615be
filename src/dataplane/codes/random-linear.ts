/** Random linear combinations over GF(2^8) as mathematics: the coefficients that a seed gives, one symbol at a time. */
import { Random } from '../engine/random.ts'
import { multiplyAdd } from './gf256.ts'

/**
 * The coefficients of the first `count` sources in the combination of `seed` (u32): the words of xoshiro128** 1.1 (Blackman and Vigna),
 * its state filled by SplitMix32(seed), as bytes, least significant first. 0 is one of them.
 */
export function coefficients(seed: number, count: number): Uint8Array<ArrayBuffer> {
  const random = new Random(seed)
  const bytes = new Uint8Array((count + 3) & ~3)
  random.fill(bytes, 0, bytes.length)
  return bytes.slice(0, count)
}

/** The combination of `sources` that `seed` gives; as long as the longest of them, shorter ones count as padded with zeros. */
export function combine(sources: readonly Uint8Array[], seed: number): Uint8Array<ArrayBuffer> {
  const symbol = new Uint8Array(Math.max(0, ...sources.map(({ length }) => length)))
  const row = coefficients(seed, sources.length)
  sources.forEach((source, i) => {
    multiplyAdd(symbol, 0, source, 0, source.length, row[i])
  })
  return symbol
}
