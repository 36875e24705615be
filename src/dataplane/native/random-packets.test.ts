/** Packets of random linear combinations, made by every kernel, against the definition. */
import { afterEach, describe, expect, test } from 'vitest'
import { seededCombination } from '../../../test/harness/coefficients.ts'
import { bytesOf, packetMemory, packetOf, pattern } from './fixture.ts'
import { native } from './native.ts'

const SKIP = 12
const MORE = 4
const SEEDS = [1, -5, 0x7fffffff, 0, 99, 12_345]
const fastest = native.gfKernel()
afterEach(() => native.gfUse(fastest))

/** Blocks of packets of these sizes in a memory, and room for two more each. */
function blocksOf(sizes: readonly (readonly number[])[], slots: number) {
  const memory = packetMemory(slots)
  const blocks = sizes.map((block) => block.map((size, i) => pattern(SKIP + size, size + i)))
  const list = Int32Array.from(blocks.flatMap((block) => [...block.map((bytes) => packetOf(memory, bytes)), -7, -7]))
  return { memory, blocks, list, id: native.memoryOpen(memory) }
}

describe.each(native.gfKernels())('packets of random combinations with %s', (kernel) => {
  test.each([[[3, 9, 1]], [[31, 30, 2]], [[70, 1, 500]], [[1280, 1280, 1280]]])(
    'sources of %j bytes: each is that of its seed, with more room in front',
    (sizes) => {
      native.gfUse(kernel)
      const { memory, blocks, list, id } = blocksOf([sizes, [5, 5, 5], sizes], 20)
      expect(native.gfRandomPackets(id, Int32Array.from(SEEDS), list, 3, 3, 2, SKIP, MORE)).toBe(6)
      blocks.forEach((block, b) => {
        const symbols = block.map((bytes) => bytes.subarray(SKIP))
        for (const j of [0, 1]) {
          const made = list[b * 5 + 3 + j]
          const symbol = bytesOf(memory, made).subarray(SKIP + MORE)
          expect([...symbol]).toEqual([...seededCombination(symbols, SEEDS[2 * b + j])])
          // The symbol lies in its slot where those of the sources do.
          expect(memory.offset[made] - made * memory.slotBytes).toBe(memory.headroom - MORE)
        }
      })
      native.memoryClose(id)
    },
  )
})

test('headers and seeds are written where the first of them is given', () => {
  const { memory, list, id } = blocksOf([[8], [9]], 20)
  const header = Int32Array.of(0xb3040200 | 0, 7 * 256 + 1, 0xffffffff | 0)
  expect(native.gfRandomPackets(id, Int32Array.from(SEEDS), list, 2, 1, 2, SKIP, MORE, header)).toBe(4)
  const words = (made: number) => {
    const view = new DataView(bytesOf(memory, made).slice().buffer)
    return [0, 4, 8, 12].map((at) => view.getInt32(at))
  }
  const first = header[0]
  expect([1, 2, 4, 5].map((at) => words(list[at]))).toEqual([
    [first, header[1], -1, SEEDS[0]],
    [first + 1, header[1], -1, SEEDS[1]],
    [first, header[1], 0, SEEDS[2]],
    [first + 1, header[1], 0, SEEDS[3]],
  ])
  expect(() => native.gfRandomPackets(id, Int32Array.from(SEEDS), list, 1, 1, 1, 8, MORE, header)).toThrow(
    /12 bytes in front .* header of 16/,
  )
  native.memoryClose(id)
})

test('where slots run out the last ones are not made', () => {
  const { memory, list, id } = blocksOf([[8], [9]], 5)
  expect(native.gfRandomPackets(id, Int32Array.from(SEEDS), list, 2, 1, 2, SKIP, MORE)).toBe(3)
  expect(list[5]).toBe(-7)
  expect(memory.free[0]).toBe(0)
  native.memoryClose(id)
})

test('too few seeds, packets that are too short and slots that are too small throw, and nothing is taken', () => {
  const { memory, list, id } = blocksOf([[8], [9]], 8)
  const free = memory.free[0]
  const seeds = Int32Array.from(SEEDS)
  expect(() => native.gfRandomPackets(id, seeds.subarray(3), list, 2, 1, 2, SKIP, MORE)).toThrow(/seeds/)
  expect(() => native.gfRandomPackets(id, seeds, list, 2, 1, 2, 22, MORE)).toThrow(/shorter than 22/)
  expect(() => native.gfRandomPackets(id, seeds, list, 2, 1, 2, SKIP, memory.slotBytes)).toThrow(/slot/)
  expect(() => native.gfRandomPackets(id, seeds, list, 2, 256, 2, SKIP, MORE)).toThrow(/k must be/)
  expect(memory.free[0]).toBe(free)
  native.memoryClose(id)
})
