/** TinyMT32 (RFC 8682) and the coding coefficients that RFC 8681, section 3.6, draws from it: what the addon's kernels are held against. */

const FIRST = 0x8f7011ee
const SECOND = 0xfc78ff1f
const TEMPER = 0x3793fdff

/** A generator of 32-bit numbers; any `seed` of 32 bits. */
export class TinyMt32 {
  private readonly state: Int32Array

  constructor(seed: number) {
    this.state = Int32Array.of(seed, FIRST, SECOND, TEMPER)
    const { state } = this
    for (let i = 1; i < 8; i++) {
      const before = state[(i - 1) & 3]
      state[i & 3] ^= i + Math.imul(1812433253, before ^ (before >>> 30))
    }
    for (let i = 0; i < 8; i++) this.step()
  }

  /** The next number, 0 to 2^32 - 1. */
  draw(): number {
    this.step()
    const [a, , c, d] = this.state
    const sum = (a + (c >>> 8)) | 0
    return (d ^ sum ^ ((sum & 1) === 1 ? TEMPER : 0)) >>> 0
  }

  private step(): void {
    const { state } = this
    let y = state[3]
    let x = (state[0] & 0x7fffffff) ^ state[1] ^ state[2]
    x ^= x << 1
    y ^= (y >>> 1) ^ x
    const odd = -(y & 1)
    state[0] = state[1]
    state[1] = state[2] ^ (odd & FIRST)
    state[2] = x ^ (y << 10) ^ (odd & SECOND)
    state[3] = y
  }
}

/** The coefficients of the `count` sources of a repair with `key` (16 bits), the oldest first: m = 8, DT = 15, so none of them is 0. */
export function codingCoefficients(key: number, count: number): Uint8Array<ArrayBuffer> {
  const random = new TinyMt32(key)
  const coefficients = new Uint8Array(count)
  for (let i = 0; i < count; i++) while (coefficients[i] === 0) coefficients[i] = random.draw()
  return coefficients
}
