/** Elimination on the fly against the same mathematics done at once, over patterns of loss and orders of arrival. */
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { coefficients } from '../../../test/harness/coefficients.ts'
import { Packets } from '../engine/packets.ts'
import { Random } from '../engine/random.ts'
import { native } from '../native/native.ts'
import { Elimination } from './elimination.ts'
import { multiplyAdd } from './gf256.ts'
import { determined } from './linear.ts'

const BYTES = 70

/** Symbols in slots: sources 0 to k - 1, then combinations, then room for what is computed. */
class Symbols {
  readonly packets: Packets
  readonly memory: number

  readonly k: number
  readonly combinations: number

  constructor(k: number, combinations: number, seed = 1) {
    this.k = k
    this.combinations = combinations
    this.packets = new Packets({ slots: 2 * k + combinations, mtu: BYTES })
    this.memory = native.memoryOpen(this.packets)
    new Random(seed).fill(this.packets.data, 0, k * this.packets.slotBytes)
  }

  place(slot: number): number {
    return slot * this.packets.slotBytes
  }

  bytes(slot: number, length = BYTES): Uint8Array {
    return this.packets.data.slice(this.place(slot), this.place(slot) + length)
  }

  /** Writes combination n of the first `covered` sources; `lengths` of them count. */
  combine(n: number, seed: number, covered: number, lengths: readonly number[]): void {
    const symbol = new Uint8Array(BYTES)
    const row = coefficients(seed, covered)
    for (let i = 0; i < covered; i++) multiplyAdd(symbol, 0, this.bytes(i), 0, lengths[i], row[i])
    this.packets.data.set(symbol, this.place(this.k + n))
  }

  get targets(): Int32Array {
    return Int32Array.from({ length: this.k }, (_, i) => this.place(this.k + this.combinations + i))
  }
}

describe('the coefficients of combinations', () => {
  it('are the bytes of the stream of random words, the same in the addon', () => {
    const random = new Random(0x80000001)
    const words = [random.bits(), random.bits()]
    const wanted = words.flatMap((word) => [0, 8, 16, 24].map((shift) => (word >>> shift) & 255))
    expect([...coefficients(0x80000001, 8)]).toEqual(wanted)
    expect([...coefficients(0x80000001, 7)]).toEqual(wanted.slice(0, 7))
    const symbols = new Symbols(9, 1)
    const places = Int32Array.from({ length: 10 }, (_, i) => symbols.place(i))
    native.gfRandomMultiply(symbols.memory, 0xfffffffb, places, 9, 1, BYTES)
    const made = symbols.bytes(9)
    symbols.combine(0, -5, 9, Array(9).fill(BYTES))
    expect(made).toEqual(symbols.bytes(9))
    native.memoryClose(symbols.memory)
  })
})

const fastest = native.gfKernel()
afterEach(() => native.gfUse(fastest))

describe.each(native.gfKernels())('elimination with %s', (kernel) => {
  it('tells every source at the moment it follows, with its bytes, in any order of arrival', () => {
    native.gfUse(kernel)
    const scenario = fc.record({
      k: fc.integer({ min: 1, max: 24 }),
      r: fc.integer({ min: 1, max: 12 }),
      seed: fc.integer(),
      loss: fc.double({ min: 0, max: 0.8, noNaN: true }),
      prefix: fc.boolean(),
    })
    let told = 0
    fc.assert(
      fc.property(scenario, ({ k, r, seed, loss, prefix }) => {
        const random = new Random(seed)
        const symbols = new Symbols(k, r, seed)
        const lengths = Array.from({ length: k }, () => 1 + random.below(BYTES))
        const covered = Array.from({ length: r }, () => (prefix ? 1 + random.below(k) : k))
        const seeds = Array.from({ length: r }, () => random.bits())
        for (let n = 0; n < r; n++) symbols.combine(n, seeds[n], covered[n], lengths)
        const arriving = Array.from({ length: k + r }, (_, n) => ({ n, at: random.float() }))
          .filter(() => !random.chance(loss))
          .sort((a, b) => a.at - b.at)
        const elimination = new Elimination(24, 12)
        elimination.begin(k, r)
        const { targets } = symbols
        const known = new Set<number>()
        const had = new Set<number>()
        const rows: Uint8Array[] = []
        for (const { n } of arriving) {
          if (n < k) {
            if (had.has(n)) continue
            elimination.know(n, symbols.place(n), lengths[n])
            known.add(n)
          } else {
            elimination.take(seeds[n - k], covered[n - k], symbols.place(n), BYTES)
            rows.push(Uint8Array.from({ length: k }, (_, i) => coefficients(seeds[n - k], covered[n - k])[i] ?? 0))
          }
          const unknowns = [...Array(k).keys()].filter((i) => !known.has(i))
          const wanted = determined(rows, unknowns).filter((i) => !had.has(i))
          // Now and then more packets come before anybody looks.
          if (random.chance(0.3)) continue
          expect(elimination.solve(symbols.memory, targets, 0, BYTES)).toBe(wanted.length)
          expect(elimination.solve(symbols.memory, targets, k, BYTES)).toBe(wanted.length)
          expect([...elimination.found.subarray(0, wanted.length)]).toEqual(wanted)
          wanted.forEach((i, at) => {
            const symbol = symbols.bytes(k + r + at)
            expect(symbol.subarray(0, lengths[i])).toEqual(symbols.bytes(i, lengths[i]))
            expect(symbol.subarray(lengths[i]).every((byte) => byte === 0)).toBe(true)
            had.add(i)
            told++
          })
          expect(elimination.solve(symbols.memory, targets, k, BYTES)).toBe(0)
        }
        native.memoryClose(symbols.memory)
      }),
      { seed: 3, numRuns: 150 },
    )
    expect(told).toBeGreaterThan(200)
  })
})

describe('elimination', () => {
  it('needs more random combinations than there are unknowns as seldom as random matrices over GF(256) are singular', () => {
    const symbols = new Symbols(8, 10)
    const elimination = new Elimination(8, 10)
    const random = new Random(5)
    const { targets } = symbols
    const rounds = 60_000
    for (const unknown of [1, 2, 5, 8]) {
      const short = [0, 0, 0]
      for (let round = 0; round < rounds; round++) {
        elimination.begin(8, 10)
        for (let i = unknown; i < 8; i++) elimination.know(i, symbols.place(i), BYTES)
        for (let n = 0; n < unknown; n++) elimination.take(random.bits(), 8, symbols.place(8 + n), BYTES)
        for (let more = 0; more < 3; more++) {
          const left = elimination.solve(symbols.memory, targets, 0, BYTES)
          if (left < unknown) short[more]++
          if (left === unknown || more === 2) break
          elimination.take(random.bits(), 8, symbols.place(8 + unknown + more), BYTES)
        }
      }
      // A matrix of n + m rows and n columns over GF(q) has full rank with probability Π (1 - q^-(m + i)), i = 1 to n.
      for (const more of [0, 1]) {
        let full = 1
        for (let i = 1; i <= unknown; i++) full *= 1 - 256 ** -(more + i)
        const wanted = rounds * (1 - full)
        const deviation = Math.sqrt(rounds * full * (1 - full))
        expect(Math.abs(short[more] - wanted), `${unknown} unknowns, ${more} more`).toBeLessThan(3.9 * deviation + 1)
      }
    }
    native.memoryClose(symbols.memory)
  })

  it('refuses more than there is room for', () => {
    const elimination = new Elimination(4, 2)
    expect(() => elimination.begin(5, 2)).toThrow(RangeError)
    expect(() => elimination.begin(4, 3)).toThrow(RangeError)
  })

  it('refuses a damaged table, and places outside of the slab', () => {
    const symbols = new Symbols(4, 2)
    const { memory, targets } = symbols
    const [good, bad] = [symbols.place(4), symbols.packets.data.length - BYTES + 1]
    /** Of 4 sources, none known, and two combinations: of `covered` sources, and of the first. */
    const solve = (change: Partial<Record<number, number>>, length = 1000) => {
      const head = [4, 2, 4, 2, 0, 0, 4, BYTES]
      const sources = [...Array(4).fill(-1), ...Array(4).fill(0), ...Array(4).fill(0), ...targets]
      const combinations = [good, good, BYTES, BYTES, 1, 2, 1, 1, 0, 0]
      const table = new Int32Array(length)
      table.set([...head, ...sources, ...combinations].slice(0, length))
      for (const [at, value] of Object.entries(change)) table[Number(at)] = value as number
      return native.gfSolve(memory, table)
    }
    const [combined, covered, pivots] = [24, 30, 32]
    expect(solve({})).toBe(1)
    expect(() => solve({ 0: 256 })).toThrow(/table\[0\] = 256/)
    expect(() => solve({ 7: 2 ** 31 - 1 })).toThrow(/table\[7\]/)
    expect(() => solve({ 5: -1 })).toThrow(RangeError)
    expect(() => solve({}, 60)).toThrow(/table has 60 elements/)
    expect(() => solve({ 2: 5 })).toThrow(/5 sources, 2 combinations/)
    expect(() => solve({ 3: 3 })).toThrow(/3 combinations/)
    expect(() => solve({ 6: 5 })).toThrow(/room for 5/)
    expect(() => solve({ 4: 2, 5: 1 })).toThrow(/table of 2 rows/)
    expect(() => solve({ [covered]: 5 })).toThrow(/5 of 4/)
    expect(() => solve({ 4: 1, 5: 1, [pivots]: 4 })).toThrow(/column 4/)
    expect(() => solve({ [combined]: bad })).toThrow(/slab/)
    expect(() => solve({ 20: bad })).toThrow(/target/)
    expect(() => solve({ 9: bad, 13: BYTES, [covered]: 2 })).toThrow(/slab/)
    native.memoryClose(memory)
  })
})
