/** The coefficients of random linear combinations, as docs/wire-formats.md says that a seed gives them. */
import { combine } from '../../src/dataplane/codes/linear.ts'
import { Random } from '../../src/dataplane/engine/random.ts'

/** Those of the first `count` sources: the words of the generator as bytes, least significant first. */
export function coefficients(seed: number, count: number): Uint8Array<ArrayBuffer> {
  const random = new Random(seed)
  const bytes = new Uint8Array((count + 3) & ~3)
  random.fill(bytes, 0, bytes.length)
  return bytes.slice(0, count)
}

/** The combination of `sources` that `seed` gives. */
export function seededCombination(sources: readonly Uint8Array[], seed: number): Uint8Array<ArrayBuffer> {
  return combine(sources, coefficients(seed, sources.length))
}
