/** Symbols of the sliding window code, and its repairs by the definition. */
import { multiplyAdd } from '../../src/dataplane/codes/gf256.ts'
import { codingCoefficients } from '../../src/dataplane/codes/tinymt32.ts'
import type { Random } from '../../src/dataplane/engine/random.ts'

/** A symbol with a payload of these bytes. */
export function symbolOf(payload: Uint8Array): Uint8Array {
  return Uint8Array.of(payload.length >> 8, payload.length & 255, ...payload)
}
export function randomSymbol(random: Random, most = 60): Uint8Array {
  const payload = new Uint8Array(random.below(most))
  random.fill(payload, 0, payload.length)
  return symbolOf(payload)
}

/** The repair over `sources`, which are in order. */
export function repairOf(sources: readonly Uint8Array[], key: number): Uint8Array {
  const repair = new Uint8Array(Math.max(...sources.map(({ length }) => length)))
  const coefficients = codingCoefficients(key, sources.length)
  sources.forEach((source, i) => {
    multiplyAdd(repair, 0, source, 0, source.length, coefficients[i])
  })
  return repair
}
