/** The field, the matrices and the erasure code, over every erasure pattern that a block must survive. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cauchyMatrix, decodingMatrix, repairPoint } from './cauchy.ts'
import { EXP, inverse, LOG, multiply, multiplyAdd } from './gf256.ts'
import { invertMatrix, matrixProduct } from './matrix.ts'
import { decode, encode } from './reed-solomon.ts'

/** Shift-and-add product with reduction by 0x11D. */
function slowProduct(a: number, b: number): number {
  let product = 0
  for (let bit = 7; bit >= 0; bit--) {
    product <<= 1
    if (product & 0x100) product ^= 0x11d
    if ((b >> bit) & 1) product ^= a
  }
  return product
}

const identity = (size: number) => Uint8Array.from({ length: size * size }, (_, n) => (n % (size + 1) === 0 ? 1 : 0))

describe('GF(2^8)', () => {
  it('multiplies as polynomials modulo 0x11D', () => {
    for (let a = 0; a < 256; a++) for (let b = 0; b < 256; b++) expect(multiply(a, b)).toBe(slowProduct(a, b))
  })

  it('inverts every element but 0', () => {
    for (let a = 1; a < 256; a++) {
      expect(multiply(a, inverse(a))).toBe(1)
      expect(EXP[LOG[a]]).toBe(a)
    }
    expect(() => inverse(0)).toThrow(RangeError)
  })

  it('adds multiples of regions', () => {
    const target = Uint8Array.of(9, 1, 2, 3)
    multiplyAdd(target, 1, Uint8Array.of(7, 0, 255), 0, 3, 29)
    expect([...target]).toEqual([9, 1 ^ slowProduct(7, 29), 2, 3 ^ slowProduct(255, 29)])
  })
})

describe('matrices', () => {
  it('inverts, and knows what is singular', () => {
    expect(invertMatrix(Uint8Array.of(1, 2, 2, 4), 2)).toBeNull()
    expect(invertMatrix(Uint8Array.of(0, 1, 1, 0), 2)).toEqual(Uint8Array.of(0, 1, 1, 0))
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.infiniteStream(fc.nat(255)), (size, stream) => {
        const matrix = Uint8Array.from({ length: size * size }, () => stream.next().value as number)
        const inverted = invertMatrix(matrix, size)
        if (inverted) expect(matrixProduct(matrix, inverted, size, size, size)).toEqual(identity(size))
      }),
      { seed: 1 },
    )
  })

  it('gives by closed form what elimination gives', () => {
    const pattern = fc
      .record({ k: fc.integer({ min: 1, max: 40 }), r: fc.integer({ min: 1, max: 20 }) })
      .chain(({ k, r }) =>
        fc.record({
          k: fc.constant(k),
          r: fc.constant(r),
          missing: fc.uniqueArray(fc.nat(k - 1), { minLength: 1, maxLength: Math.min(k, r), size: 'max' }),
          order: fc.shuffledSubarray(
            Array.from({ length: r }, (_, j) => j),
            { minLength: Math.min(k, r) },
          ),
        }),
      )
    fc.assert(
      fc.property(pattern, ({ k, r, missing, order }) => {
        missing.sort((a, b) => a - b)
        const used = order.slice(0, missing.length).sort((a, b) => a - b)
        const present = Array.from({ length: k }, (_, i) => i).filter((i) => !missing.includes(i))
        // The k rows of [identity; Cauchy] at hand, inverted: rows of the missing sources are the decoding matrix.
        const whole = Uint8Array.from([...identity(k), ...cauchyMatrix(k, r)])
        const rows = [...present, ...used.map((j) => k + j)].flatMap((row) => [
          ...whole.subarray(row * k, (row + 1) * k),
        ])
        const inverted = invertMatrix(Uint8Array.from(rows), k) as Uint8Array
        const wanted = missing.flatMap((i) => [...inverted.subarray(i * k, (i + 1) * k)])
        const got = new Uint8Array(missing.length * k)
        const points = Uint8Array.from([...present, ...used.map(repairPoint)])
        decodingMatrix(points, k, Uint8Array.from(missing), missing.length, got)
        expect([...got]).toEqual(wanted)
      }),
      { seed: 2 },
    )
  })
})

describe('the erasure code', () => {
  const block = (k: number, bytes: number) =>
    Array.from({ length: k }, (_, i) => Uint8Array.from({ length: bytes }, (_, n) => (i * 89 + n * 57 + 11) & 255))

  it('survives every erasure pattern of small blocks', () => {
    let patterns = 0
    for (let k = 1; k <= 5; k++) {
      for (let r = 0; r <= 4; r++) {
        const sources = block(k, 5)
        const repairs = encode(sources, r)
        for (let lost = 0; lost < 1 << (k + r); lost++) {
          const there = (symbol: Uint8Array, n: number) => ((lost >> n) & 1 ? null : symbol)
          const decoded = decode(
            sources.map(there),
            repairs.map((symbol, j) => there(symbol, k + j)),
          )
          const erasures = lost.toString(2).replaceAll('0', '').length
          expect(decoded).toEqual(erasures <= r ? sources : null)
          patterns++
        }
      }
    }
    expect(patterns).toBeGreaterThan(1900)
  })

  it('survives random patterns of large blocks, up to 255 symbols', () => {
    for (const [k, r] of [
      [50, 10],
      [128, 127],
      [1, 254],
      [254, 1],
      [200, 55],
    ]) {
      const sources = block(k, 3)
      const repairs = encode(sources, r)
      fc.assert(
        fc.property(fc.uniqueArray(fc.nat(k + r - 1), { minLength: r, maxLength: r }), (lost) => {
          const gone = new Set(lost)
          const decoded = decode(
            sources.map((symbol, i) => (gone.has(i) ? null : symbol)),
            repairs.map((symbol, j) => (gone.has(k + j) ? null : symbol)),
          )
          expect(decoded).toEqual(sources)
        }),
        { seed: 3, numRuns: 10 },
      )
    }
  })

  it('refuses more than 255 symbols', () => {
    expect(() => encode(block(200, 1), 56)).toThrow('256')
  })
})
