/** Packets of random linear combinations, made by every kernel, against the definition. */
import { afterEach, describe, expect, test } from 'vitest'
import { seededCombination } from '../../../test/harness/coefficients.ts'
import { bytesOf, packetMemory, packetOf, pattern } from './fixture.ts'
import { native } from './native.ts'

const SKIP = 12
const MORE = 4
/** The last of six seeds is behind the largest. */
const SEED = 0xfffffffb
const seedOf = (n: number) => (SEED + n) | 0
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
      expect(native.gfRandomPackets(id, SEED, list, 3, 3, 2, SKIP, MORE)).toBe(6)
      blocks.forEach((block, b) => {
        const symbols = block.map((bytes) => bytes.subarray(SKIP))
        for (const j of [0, 1]) {
          const made = list[b * 5 + 3 + j]
          const symbol = bytesOf(memory, made).subarray(SKIP + MORE)
          expect([...symbol]).toEqual([...seededCombination(symbols, seedOf(2 * b + j))])
          // The symbol lies in its slot where those of the sources do.
          expect(memory.offset[made] - made * memory.slotBytes).toBe(memory.headroom - MORE)
        }
      })
      native.memoryClose(id)
    },
  )
})

test('coefficients are those of their seeds in whatever order these come: they are drawn ahead where seeds count up', () => {
  const memory = packetMemory(40, 512)
  const id = native.memoryOpen(memory)
  const symbols = Array.from({ length: 20 }, (_, i) => pattern(30, i))
  const handles = symbols.map((bytes) => packetOf(memory, bytes))
  const place = (handle: number) => memory.offset[handle]
  const targets = Array.from({ length: 12 }, () => packetOf(memory, new Uint8Array(30)))
  const draw = (seed: number, m: number, k: number) => {
    const places = Int32Array.from([...handles.slice(0, k), ...targets.slice(0, m)], place)
    native.gfRandomMultiply(id, seed, places, k, m, 30)
    for (let j = 0; j < m; j++) {
      const wanted = seededCombination(symbols.slice(0, k), (seed + j) | 0)
      expect([...bytesOf(memory, targets[j])], `seed ${seed} + ${j}, ${k} sources`).toEqual([...wanted])
    }
  }
  // One behind the other, around the largest and past the sixteenth; then with gaps, small and large, back, with more sources and more at once.
  for (let n = 0; n < 24; n += 3) draw((0xfffffff0 + n) >>> 0, 3, 5)
  const seeds = [100, 105, 120, 121, 118, 118, 5000, 5001, 0, 0xffffffff]
  for (const [at, k] of [5, 9, 17, 20, 4].entries())
    for (const seed of seeds) draw(seed + at > 0xffffffff ? at : seed + at, 2, k)
  for (const m of [1, 8, 9, 12, 8]) for (const seed of [200, 200 + m, 215]) draw(seed, m, 16)
  native.memoryClose(id)
})

test('headers and seeds are written where the first of them is given', () => {
  const { memory, list, id } = blocksOf([[8], [9]], 20)
  const header = Int32Array.of(0xb3040200 | 0, 7 * 256 + 1, 0xffffffff | 0)
  expect(native.gfRandomPackets(id, SEED, list, 2, 1, 2, SKIP, MORE, header)).toBe(4)
  const words = (made: number) => {
    const view = new DataView(bytesOf(memory, made).slice().buffer)
    return [0, 4, 8, 12].map((at) => view.getInt32(at))
  }
  const first = header[0]
  expect([1, 2, 4, 5].map((at) => words(list[at]))).toEqual([
    [first, header[1], -1, seedOf(0)],
    [first + 1, header[1], -1, seedOf(1)],
    [first, header[1], 0, seedOf(2)],
    [first + 1, header[1], 0, seedOf(3)],
  ])
  expect(() => native.gfRandomPackets(id, SEED, list, 1, 1, 1, 8, MORE, header)).toThrow(
    /12 bytes in front .* header of 16/,
  )
  native.memoryClose(id)
})

test('where slots run out the last ones are not made', () => {
  const { memory, list, id } = blocksOf([[8], [9]], 5)
  expect(native.gfRandomPackets(id, SEED, list, 2, 1, 2, SKIP, MORE)).toBe(3)
  expect(list[5]).toBe(-7)
  expect(memory.free[0]).toBe(0)
  native.memoryClose(id)
})

test('seeds that are no words, packets that are too short and slots that are too small throw, and nothing is taken', () => {
  const { memory, list, id } = blocksOf([[8], [9]], 8)
  const free = memory.free[0]
  expect(() => native.gfRandomPackets(id, 2 ** 32, list, 2, 1, 2, SKIP, MORE)).toThrow(/seed/)
  expect(() => native.gfRandomPackets(id, SEED, list, 2, 1, 2, 22, MORE)).toThrow(/shorter than 22/)
  expect(() => native.gfRandomPackets(id, SEED, list, 2, 1, 2, SKIP, memory.slotBytes)).toThrow(/slot/)
  expect(() => native.gfRandomPackets(id, SEED, list, 2, 256, 2, SKIP, MORE)).toThrow(/k must be/)
  expect(memory.free[0]).toBe(free)
  native.memoryClose(id)
})
