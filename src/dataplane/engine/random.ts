/** Seeded random numbers: xoshiro128** 1.1 (Blackman and Vigna, 2018), its state filled by SplitMix32. */

export class Random {
  private a: number
  private b: number
  private c: number
  private d: number

  /** The same 32-bit seed gives the same sequence. */
  constructor(seed: number) {
    let state = seed | 0
    const next = (): number => {
      state = (state + 0x9e3779b9) | 0
      let z = state
      z = Math.imul(z ^ (z >>> 16), 0x21f0aaad)
      z = Math.imul(z ^ (z >>> 15), 0x735a2d97)
      return z ^ (z >>> 15)
    }
    this.a = next()
    this.b = next()
    this.c = next()
    this.d = next() | 1
  }

  /** 32 random bits as a signed integer. */
  bits(): number {
    const { b } = this
    const m = Math.imul(b, 5)
    const result = Math.imul((m << 7) | (m >>> 25), 9)
    const t = b << 9
    this.c ^= this.a
    this.d ^= b
    this.b ^= this.c
    this.a ^= this.d
    this.c ^= t
    this.d = (this.d << 11) | (this.d >>> 21)
    return result
  }

  /** Uniform in [0, 1), 32 bits fine. */
  float(): number {
    return (this.bits() >>> 0) / 4294967296
  }

  /** True with probability `p`; 0 is never, 1 always. */
  chance(p: number): boolean {
    return this.bits() >>> 0 < p * 4294967296
  }

  /** Uniform integer in [0, limit), limit ≤ 2^31 (bias under limit / 2^32). */
  below(limit: number): number {
    return Math.floor(((this.bits() >>> 0) / 4294967296) * limit)
  }

  /** Uniform integer in [low, high]. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1)
  }

  /** Fills `data[from..to)`. */
  fill(data: Uint8Array, from: number, to: number): void {
    let at = from
    for (; at + 4 <= to; at += 4) {
      const word = this.bits()
      data[at] = word
      data[at + 1] = word >>> 8
      data[at + 2] = word >>> 16
      data[at + 3] = word >>> 24
    }
    for (; at < to; at++) data[at] = this.bits()
  }
}

/**
 * The seed of one of several runs at the same time: that of the first, from 0, is `seed`, the others' are drawn from it, so that the runs of `seed` and
 * those of its neighbours have none in common but by chance. As great as `seed` may be: 31 bits.
 */
export function seedOfRun(seed: number, index: number): number {
  if (index === 0) return seed
  // The last steps of MurmurHash3 (Appleby, 2011).
  let z = seed + Math.imul(index, 0x9e3779b9)
  z = Math.imul(z ^ (z >>> 16), 0x85ebca6b)
  z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35)
  return (z ^ (z >>> 16)) >>> 1
}
