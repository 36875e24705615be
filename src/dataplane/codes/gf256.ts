/** Arithmetic in GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11D), in which 2 generates every element but 0. */

const POLYNOMIAL = 0x11d

/** `EXP[n]` is 2^n, for 0 ≤ n < 510, so that a sum of two logarithms needs no reduction. */
export const EXP = new Uint8Array(510)
/** `LOG[a]` is the n in [0, 255) with 2^n = a; 0 has none and gives 0 here. */
export const LOG = new Uint8Array(256)

for (let n = 0, a = 1; n < 255; n++) {
  EXP[n] = a
  EXP[n + 255] = a
  LOG[a] = n
  a <<= 1
  if (a > 255) a ^= POLYNOMIAL
}

export function multiply(a: number, b: number): number {
  return a === 0 || b === 0 ? 0 : EXP[LOG[a] + LOG[b]]
}

/** 1 / a. Throws for 0. */
export function inverse(a: number): number {
  if (a === 0) throw new RangeError('0 has no inverse')
  return EXP[255 - LOG[a]]
}

/** target[t + n] += coefficient · source[s + n] for 0 ≤ n < bytes. */
export function multiplyAdd(
  target: Uint8Array,
  t: number,
  source: Uint8Array,
  s: number,
  bytes: number,
  coefficient: number,
): void {
  if (coefficient === 0) return
  const log = LOG[coefficient]
  for (let n = 0; n < bytes; n++) {
    const a = source[s + n]
    if (a !== 0) target[t + n] ^= EXP[log + LOG[a]]
  }
}
