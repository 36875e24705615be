/** The missing sources of Reed-Solomon blocks and of random combinations, made as packets by every kernel, against the mathematics. */
import { afterEach, describe, expect, test } from 'vitest'
import { coefficients, seededCombination } from '../../../test/harness/coefficients.ts'
import { determined } from '../codes/linear.ts'
import { encode } from '../codes/reed-solomon.ts'
import { Random } from '../engine/random.ts'
import { bytesOf, freePacket, packetMemory, packetOf, pattern } from './fixture.ts'
import { native, type PacketMemory } from './native.ts'

const fastest = native.gfKernel()
afterEach(() => native.gfUse(fastest))

/** A symbol: its payload's length in two bytes, and the payload. */
function symbolOf(bytes: number, seed: number): Uint8Array {
  return Uint8Array.of(bytes >> 8, bytes & 255, ...pattern(bytes, seed))
}

/** Sources of these lengths with `r` repairs as packets, but for those lost, whose entries are 0; `first` entries stand before them. */
function blockOf(
  memory: PacketMemory,
  sources: readonly Uint8Array[],
  r: number,
  lost: ReadonlySet<number>,
  first = 0,
) {
  const all = [...sources, ...encode(sources, r)]
  const entries = all.map((symbol, n) => (lost.has(n) ? 0 : packetOf(memory, symbol) + 1))
  return Int32Array.of(...new Array<number>(first).fill(77), ...entries)
}

/** So many different ones of `count` symbols. */
function someOf(random: Random, count: number, chosen: number): Set<number> {
  const lost = new Set<number>()
  while (lost.size < chosen) lost.add(random.below(count))
  return lost
}

describe.each(native.gfKernels())('recovery with %s', (kernel) => {
  test.each([1, 2, 3])('gives back what was lost, whichever it was, seed %i', (seed) => {
    native.gfUse(kernel)
    const random = new Random(seed)
    const memory = packetMemory(256, 512)
    const id = native.memoryOpen(memory)
    for (let round = 0; round < 150; round++) {
      const [k, r] = [1 + random.below(40), random.below(20)]
      const sources = Array.from({ length: k }, (_, i) => symbolOf(random.below(300), round * 50 + i))
      const bytes = Math.max(...sources.map(({ length }) => length))
      const lost = someOf(random, k + r, random.below(r + 1))
      const first = random.below(5)
      const symbols = blockOf(memory, sources, r, lost, first)
      const like = packetOf(memory, Uint8Array.of(1))
      memory.arrival[like] = round + 0.5
      const made = new Int32Array(3 * Math.min(k, r))
      const missing = [...lost].filter((n) => n < k).sort((a, b) => a - b)
      expect(native.gfRecover(id, symbols, first, k, r, k, bytes, like, made)).toBe(missing.length)
      missing.forEach((i, n) => {
        const [index, packet, length] = made.subarray(3 * n)
        expect([index, length]).toEqual([i, sources[i].length - 2])
        const whole = new Uint8Array(bytes)
        whole.set(sources[i])
        expect([...bytesOf(memory, packet)]).toEqual([...whole])
        expect(memory.arrival[packet]).toBe(round + 0.5)
        freePacket(memory, packet)
      })
      for (const entry of symbols.subarray(first)) if (entry > 0) freePacket(memory, entry - 1)
      freePacket(memory, like)
      expect(memory.free[0]).toBe(256)
    }
    native.memoryClose(id)
  })
})

/** As `blockOf` with repairs that are random combinations, each behind its seed. */
function randomBlockOf(
  memory: PacketMemory,
  sources: readonly Uint8Array[],
  seeds: readonly number[],
  lost: ReadonlySet<number>,
) {
  const repairs = seeds.map((seed) =>
    Uint8Array.of(seed >> 24, seed >> 16, seed >> 8, seed, ...seededCombination(sources, seed)),
  )
  return Int32Array.from([...sources, ...repairs], (bytes, n) => {
    if (lost.has(n)) return 0
    const packet = packetOf(memory, bytes)
    if (n >= sources.length) {
      memory.offset[packet] += 4
      memory.length[packet] -= 4
    }
    return packet + 1
  })
}

describe.each(native.gfKernels())('recovery of random combinations with %s', (kernel) => {
  test.each([1, 2, 3])(
    'gives back what was lost where repairs suffice, and says where they do not, seed %i',
    (seed) => {
      native.gfUse(kernel)
      const random = new Random(seed)
      const memory = packetMemory(512, 768)
      const id = native.memoryOpen(memory)
      let [dependent, spared] = [0, 0]
      for (let round = 0; round < 150; round++) {
        // Coefficients of up to four vectors of 64.
        const [k, r] = [1 + random.below(round % 5 === 0 ? 255 : 80), random.below(20)]
        const sources = Array.from({ length: k }, (_, i) => symbolOf(random.below(400), round * 50 + i))
        const bytes = Math.max(...sources.map(({ length }) => length))
        // Seeds that come again make equations that follow from others.
        const seeds = Array.from({ length: r }, () => (random.chance(0.2) ? 7 : random.bits()))
        const lost = someOf(random, k + r, random.below(r + 1))
        const missing = [...lost].filter((n) => n < k).sort((a, b) => a - b)
        const rows = seeds.filter((_, j) => !lost.has(k + j)).map((own) => coefficients(own, k))
        const symbols = randomBlockOf(memory, sources, seeds, lost)
        const like = packetOf(memory, Uint8Array.of(1))
        memory.arrival[like] = round + 0.5
        const made = new Int32Array(3 * Math.min(k, r))
        const count = native.gfRecoverRandom(id, symbols, 0, k, r, k, bytes, like, made)
        const follows = determined(rows, missing).length === missing.length
        expect(count).toBe(follows ? missing.length : -2)
        if (!follows) dependent++
        else if (
          rows.length > missing.length &&
          determined(rows.slice(0, missing.length), missing).length < missing.length
        )
          spared++
        missing.slice(0, Math.max(count, 0)).forEach((i, n) => {
          const [index, packet, length] = made.subarray(3 * n)
          expect([index, length]).toEqual([i, sources[i].length - 2])
          const whole = new Uint8Array(bytes)
          whole.set(sources[i])
          expect(bytesOf(memory, packet)).toEqual(whole)
          expect(memory.arrival[packet]).toBe(round + 0.5)
          freePacket(memory, packet)
        })
        for (const entry of symbols) if (entry > 0) freePacket(memory, entry - 1)
        freePacket(memory, like)
        expect(memory.free[0]).toBe(512)
      }
      // Both kinds of blocks were there, and some in which a repair took the place of one that says nothing new.
      expect(dependent).toBeGreaterThan(0)
      expect(spared).toBeGreaterThan(0)
      native.memoryClose(id)
    },
  )
})

test('a repair whose seed is not in the slab throws', () => {
  const memory = packetMemory(4, 512)
  const id = native.memoryOpen(memory)
  const repair = packetOf(memory, pattern(9, 1))
  expect(repair).toBe(0)
  memory.offset[repair] = 2
  expect(() => native.gfRecoverRandom(id, Int32Array.of(0, 1), 0, 1, 1, 1, 9, 0, new Int32Array(3))).toThrow(/seed/)
  expect(memory.free[0]).toBe(3)
  native.memoryClose(id)
})

test('patterns that come again after many others are recovered as they were', () => {
  const memory = packetMemory(64, 512)
  const id = native.memoryOpen(memory)
  const sources = Array.from({ length: 12 }, (_, i) => symbolOf(20, i))
  const made = new Int32Array(9)
  for (let turn = 0; turn < 2; turn++) {
    // All 455 ways to lose three of fifteen.
    for (let a = 0; a < 15; a++) {
      for (let b = 0; b < a; b++) {
        for (let c = 0; c < b; c++) {
          const symbols = blockOf(memory, sources, 3, new Set([a, b, c]))
          const count = native.gfRecover(id, symbols, 0, 12, 3, 12, 22, 0, made)
          expect(count).toBe([a, b, c].filter((n) => n < 12).length)
          for (let n = 0; n < count; n++) {
            expect([...bytesOf(memory, made[3 * n + 1])]).toEqual([...sources[made[3 * n]]])
            freePacket(memory, made[3 * n + 1])
          }
          for (const entry of symbols) if (entry > 0) freePacket(memory, entry - 1)
        }
      }
    }
  }
  native.memoryClose(id)
})

test('a block that ended early has the sources that are wanted', () => {
  const memory = packetMemory(16, 512)
  const id = native.memoryOpen(memory)
  const sources = [symbolOf(9, 1), symbolOf(7, 2)]
  const [repair] = encode(sources, 1)
  const symbols = Int32Array.of(0, packetOf(memory, sources[1]) + 1, 0, 0, packetOf(memory, repair) + 1)
  const made = new Int32Array(3)
  expect(native.gfRecover(id, symbols, 0, 4, 1, 2, 11, 0, made)).toBe(1)
  expect([...bytesOf(memory, made[1])]).toEqual([...sources[0]])
  native.memoryClose(id)
})

describe('nothing is made', () => {
  function few() {
    const memory = packetMemory(6, 512)
    const symbols = blockOf(memory, [symbolOf(9, 1), symbolOf(9, 2), symbolOf(9, 3)], 2, new Set([0, 2]))
    return { memory, symbols, made: new Int32Array(6), id: native.memoryOpen(memory) }
  }

  test('where slots are too few, which is said', () => {
    const { memory, symbols, made, id } = few()
    for (let n = 0; n < 2; n++) packetOf(memory, Uint8Array.of(1))
    expect(memory.free[0]).toBe(1)
    expect(native.gfRecover(id, symbols, 0, 3, 2, 3, 11, 0, made)).toBe(-1)
    expect(memory.free[0]).toBe(1)
    native.memoryClose(id)
  })

  test('where too few symbols are at hand, one is no packet, or lists are too short, which throws', () => {
    const { memory, symbols, made, id } = few()
    const spoiled = (at: number, value: number) => symbols.map((entry, n) => (n === at ? value : entry))
    expect(() => native.gfRecover(id, spoiled(4, 0), 0, 3, 2, 3, 11, 0, made)).toThrow(
      /2 symbols are at hand, 3 are needed/,
    )
    expect(() => native.gfRecover(id, spoiled(1, 500), 0, 3, 2, 3, 11, 0, made)).toThrow(/= 499 is no packet/)
    expect(() => native.gfRecover(id, symbols, 1, 3, 2, 3, 11, 0, made)).toThrow(/symbols/)
    expect(() => native.gfRecover(id, symbols, 0, 3, 2, 3, 11, 0, made.subarray(1))).toThrow(/made/)
    expect(() => native.gfRecover(id, symbols, 0, 3, 253, 3, 11, 0, made)).toThrow(/r must be/)
    expect(() => native.gfRecover(id, symbols, 0, 3, 2, 4, 11, 0, made)).toThrow(/wanted must be/)
    expect(memory.free[0]).toBe(3)
    native.memoryClose(id)
  })
})
