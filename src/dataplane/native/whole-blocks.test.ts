/** Whole blocks of a batch, passed on in one call: what is told of them, and what cannot be. */
import { expect, test } from 'vitest'
import { coefficients, seededCombination } from '../../../test/harness/coefficients.ts'
import { crc32c } from '../codes/crc32c.ts'
import { encode } from '../codes/reed-solomon.ts'
import { bytesOf, packetMemory, packetOf, pattern } from './fixture.ts'
import { native, type PacketMemory } from './native.ts'

const [K, R, PLACES] = [3, 2, 4]
const STRIDE = K + R
const [SEEN, RECOVERED, REPLACED] = [-1, -2, -3]
/** Of a run: shape, session, block, packets, sources, sources of the block, bytes of the longest source's symbol, and of a repair's. */
const RUN_WORDS = 8

/** The repairs of a batch's block are one of the Cauchy code, or combinations of these seeds. */
interface BatchBlock {
  readonly block: number
  readonly lost: readonly number[]
  readonly seeds?: readonly number[]
}

/** A random combination behind its seed. */
function repairOf(memory: PacketMemory, sources: readonly Uint8Array[], seed: number): number {
  const bytes = seededCombination(sources, seed)
  const packet = packetOf(memory, Uint8Array.of(seed >> 24, seed >> 16, seed >> 8, seed, ...bytes))
  memory.offset[packet] += 4
  memory.length[packet] -= 4
  return packet
}

/** A batch of blocks of which `lost` sources did not come and their repairs did, behind a packet that is not theirs. */
function batchOf(blocks: readonly BatchBlock[]) {
  const memory = packetMemory(32, 512)
  const payloads = (block: number) => [20, 31, 5].map((bytes, i) => pattern(bytes, 10 * block + i))
  const packets = [packetOf(memory, Uint8Array.of(1))]
  const words = [-1]
  const runs: number[] = []
  const isRandom = blocks.some(({ seeds }) => seeds)
  for (const { block, lost, seeds } of blocks) {
    const symbols = payloads(block).map((bytes) => Uint8Array.of(0, bytes.length, ...bytes))
    const arriving = symbols.map((bytes, index) => ({ index, bytes })).filter(({ index }) => !lost.includes(index))
    const sources = arriving.map(({ bytes }) => packetOf(memory, bytes))
    const combined = seeds?.map((seed) => repairOf(memory, symbols, seed))
    const repairs = combined ?? (lost.length > 0 ? [packetOf(memory, encode(symbols, R)[0])] : [])
    packets.push(...sources, ...repairs)
    words.push(...arriving.map(({ index }) => index), ...repairs.keys())
    runs.push((K << 8) | R, 77, block, sources.length + repairs.length, sources.length, K, 33, 33)
  }
  const id = native.memoryOpen(memory)
  const lists = Array.from({ length: 3 }, () => new Int32Array(PLACES * STRIDE).fill(9))
  const [symbols, shapes, sums] = lists
  const headers = Int32Array.from([...words, ...runs])
  const start = Int32Array.of(words.length, 1, PLACES, 0)
  const handles = Int32Array.from(packets)
  const out = new Int32Array(K * blocks.length)
  const pass = (count = blocks.length) =>
    native.blocksPass(id, isRandom, handles, headers, start, count, symbols, shapes, sums, out)
  const close = () => native.memoryClose(id)
  return { memory, id, handles, headers, start, symbols, shapes, sums, out, payloads, pass, close }
}

test('payloads leave block by block, those recovered behind the others; what has come stands at the place of its block', () => {
  const { memory, symbols, shapes, sums, out, payloads, pass, close } = batchOf([
    { block: -1, lost: [] },
    { block: 0, lost: [1] },
  ])
  expect(pass()).toBe(2)
  const [last, next] = [payloads(-1), payloads(0)]
  const wanted = [...last, next[0], next[2], next[1]]
  expect([...out].map((packet) => [...bytesOf(memory, packet)])).toEqual(wanted.map((bytes) => [...bytes]))
  const placeOf = (list: Int32Array, place: number) => [...list.subarray(place * STRIDE, (place + 1) * STRIDE)]
  expect(placeOf(symbols, 3)).toEqual([SEEN, SEEN, SEEN, 0, 0])
  expect(placeOf(symbols, 0)).toEqual([SEEN, RECOVERED, SEEN, SEEN, 0])
  expect(placeOf(shapes, 0)).toEqual([0, 0, 0, 33 * 256 + K, 0])
  expect(sums[1] >>> 0).toBe(crc32c(next[1], 0, next[1].length))
  expect(placeOf(symbols, 1)).toEqual([9, 9, 9, 9, 9])
  close()
})

test('a repair that says nothing of what its block misses is left out where another one came', () => {
  const seeds = Array.from({ length: 2000 }, (_, seed) => seed)
  const empty = seeds.find((seed) => coefficients(seed, K)[1] === 0) as number
  const [useful, other] = seeds.filter((seed) => coefficients(seed, K)[1] !== 0)
  const { memory, symbols, out, payloads, pass, close } = batchOf([
    { block: 0, lost: [1], seeds: [empty, useful] },
    { block: 1, lost: [1], seeds: [other] },
    { block: 2, lost: [0, 2], seeds: [useful, other] },
    { block: 3, lost: [1], seeds: [empty] },
  ])
  expect(pass()).toBe(3)
  const [first, second, third] = [payloads(0), payloads(1), payloads(2)]
  const wanted = [first[0], first[2], first[1], second[0], second[2], second[1], third[1], third[0], third[2]]
  expect([...out.subarray(0, 9)].map((packet) => [...bytesOf(memory, packet)])).toEqual(
    wanted.map((bytes) => [...bytes]),
  )
  expect([...symbols.subarray(3 * STRIDE)]).toEqual([9, 9, 9, 9, 9])
  close()
})

test('only what has been overtaken is taken for lost, where nothing is ever overtaken', () => {
  const { symbols, sums, start, pass, close } = batchOf([
    { block: 1, lost: [0] },
    { block: 2, lost: [2] },
  ])
  start[3] = 1
  expect(pass()).toBe(2)
  expect([symbols[STRIDE], symbols[2 * STRIDE + 2]]).toEqual([REPLACED, RECOVERED])
  expect([sums[STRIDE], sums[2 * STRIDE + 2] === 9]).toEqual([9, false])
  close()
})

test.each<[string, RegExp, (batch: ReturnType<typeof batchOf>) => void]>([
  [
    'more sources than its shape',
    /block 1 has/,
    ({ headers, start }) => headers.set([K + 1], start[0] + RUN_WORDS + 5),
  ],
  ['more sources than packets', /block 1 has/, ({ headers, start }) => headers.set([1], start[0] + RUN_WORDS + 3)],
  ['no source', /block 1 has/, ({ headers, start }) => headers.set([0], start[0] + RUN_WORDS + 4)],
  ['more packets than there are', /block 1 has/, ({ headers, start }) => headers.set([90], start[0] + RUN_WORDS + 3)],
  ['symbols longer than a slot', /block 1 has/, ({ headers, start }) => headers.set([513], start[0] + RUN_WORDS + 7)],
  [
    'a place that is not in the lists',
    /block 1 has/,
    ({ headers, start }) => {
      start.set([16], 2)
      headers.set([9], start[0] + RUN_WORDS + 2)
    },
  ],
  ['places that are no power of two', /power of two/, ({ start }) => start.set([3], 2)],
  ['words that are not there', /headers/, ({ start }) => start.set([start[0] + RUN_WORDS + 1], 0)],
  ['a negative index', /headers/, ({ start }) => start.set([-8], 0)],
  ['a first packet that is none', /block 0 has/, ({ start }) => start.set([-1], 1)],
])('blocks with %s are refused, and none is passed on', (_what, message, change) => {
  const batch = batchOf([
    { block: 0, lost: [1] },
    { block: 1, lost: [0] },
  ])
  change(batch)
  expect(() => batch.pass()).toThrow(message)
  expect([...batch.symbols]).toEqual(new Array(PLACES * STRIDE).fill(9))
  expect(batch.memory.free[0]).toBe(32 - 7)
  batch.close()
})

test.each<[string, (batch: ReturnType<typeof batchOf>) => void]>([
  ['a packet that is none', ({ memory, handles }) => memory.length.fill(600, handles[1], handles[1] + 1)],
  ['an index out of order', ({ headers }) => headers.set([1, 0], 1)],
  ['an index above those of its block', ({ headers }) => headers.set([K], 2)],
  ['a repair that its shape has no room for', ({ headers }) => headers.set([R], 3)],
])('a block with %s is refused', (_what, change) => {
  const batch = batchOf([{ block: 0, lost: [1] }])
  change(batch)
  expect(() => batch.pass()).toThrow(/block 0 has packets that cannot be/)
  expect([...batch.symbols]).toEqual(new Array(PLACES * STRIDE).fill(9))
  batch.close()
})

test('a block whose repairs contradict its sources is left as it was, and those behind it', () => {
  const batch = batchOf([
    { block: 0, lost: [0] },
    { block: 1, lost: [2] },
    { block: 2, lost: [] },
  ])
  // Of the second block a source that is longer than its repairs are.
  const longer = batch.handles[4]
  batch.memory.length[longer] = 100
  expect(batch.pass()).toBe(1)
  expect([...batch.symbols.subarray(STRIDE, 3 * STRIDE)]).toEqual(new Array(2 * STRIDE).fill(9))
  expect(batch.memory.length[longer]).toBe(100)
  // The first block gave a repair back, and has one that was made.
  expect(batch.memory.free[0]).toBe(32 - 10)
  batch.close()
})
