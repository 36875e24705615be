/** Runs of a batch that come as they were sent, taken in one call: what is told of them, and what cannot be. */
import { expect, test } from 'vitest'
import { coefficients, seededCombination } from '../../../test/harness/coefficients.ts'
import { crc32c } from '../codes/crc32c.ts'
import { encode } from '../codes/reed-solomon.ts'
import { BEGINS_RUN, PASS, SOURCE_PACKET, WINDOW_PLACES, WINDOW_SYMBOLS, WINDOW_WORDS } from './code-calls.ts'
import { bytesOf, packetMemory, packetOf, passWords, pattern } from './fixture.ts'
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
    const at = words.length
    words.push(...arriving.map(({ index }) => SOURCE_PACKET | index), ...repairs.map((_, index) => (K << 8) | index))
    words[at] |= BEGINS_RUN
    runs.push((K << 8) | R, 77, block, sources.length + repairs.length, sources.length, K, 33, 33)
  }
  const id = native.memoryOpen(memory)
  const window = new Int32Array(WINDOW_WORDS)
  const [symbols, sums, shapes] = [0, 1, 2].map((n) =>
    window
      .subarray(n * WINDOW_SYMBOLS)
      .subarray(0, PLACES * STRIDE)
      .fill(9),
  )
  const headers = Int32Array.from([...words, ...runs])
  const newest = blocks[0].block - 1
  const most = blocks.length
  const run = words.length
  const start = passWords({
    run,
    first: 1,
    end: run,
    most,
    newest,
    places: PLACES,
    replaces: false,
    shape: (K << 8) | R,
    session: 77,
  })
  const handles = Int32Array.from(packets)
  const out = new Int32Array(K * blocks.length)
  /** Returns how many runs were taken. */
  const pass = () => {
    native.blocksPass(id, isRandom, handles, headers, window, start, out)
    return (start[PASS.run] - run) / RUN_WORDS
  }
  const close = () => native.memoryClose(id)
  return { memory, id, handles, headers, start, run, window, symbols, shapes, sums, out, payloads, pass, close }
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

test('sources of a block that goes on leave and are kept, until its others and its repairs have come', () => {
  const memory = packetMemory(32, 512, 128, 64, 1)
  const id = native.memoryOpen(memory)
  const window = new Int32Array(WINDOW_WORDS)
  const payloads = [pattern(20, 1), pattern(31, 2), pattern(5, 3)]
  const sources = payloads.map((bytes) => Uint8Array.of(0, bytes.length, ...bytes))
  const repairs = encode(sources, R)
  let newest = 6
  /** Takes sources from `first` on and repairs of block 7; what left, and how many copies there are more. */
  const take = (first: number, count: number, from: number, repaired: number) => {
    const came = [...sources.slice(first, first + count), ...repairs.slice(from, from + repaired)]
    const handles = Int32Array.from(came, (bytes) => packetOf(memory, bytes))
    const words = came.map((_, n) => (n < count ? SOURCE_PACKET | (first + n) : (K << 8) | (from + n - count)))
    words[0] |= BEGINS_RUN
    const run = [(K << 8) | R, 77, 7, came.length, count, 0, Math.max(0, ...came.slice(0, count).map((s) => s.length))]
    const end = came.length
    const pass = passWords({
      run: end,
      first: 0,
      end,
      most: 1,
      newest,
      places: PLACES,
      replaces: false,
      shape: (K << 8) | R,
      session: 77,
    })
    const out = new Int32Array(K)
    native.blocksPass(id, false, handles, Int32Array.from([...words, ...run, 33]), window, pass, out)
    newest = pass[PASS.newest]
    const left = [...out.subarray(0, pass[PASS.sent])]
    const { taken, held, redundant } = {
      taken: pass[PASS.first],
      held: pass[PASS.held],
      redundant: pass[PASS.redundant],
    }
    const bytes = left.map((packet) => [...bytesOf(memory, packet)])
    expect(pass[PASS.bytes]).toBe(bytes.flat().length)
    return { bytes, taken, held, redundant, sources: pass[PASS.sources] }
  }
  const wanted = payloads.map((bytes) => [...bytes])
  expect(take(0, 1, 0, 0)).toEqual({ bytes: [wanted[0]], taken: 1, held: 1, redundant: 0, sources: 1 })
  expect(newest).toBe(7)
  // Not the one behind the last, and repairs without the last source.
  expect(take(2, 1, 0, 2)).toMatchObject({ bytes: [], taken: 0 })
  expect(take(1, 1, 0, 1)).toMatchObject({ bytes: [], taken: 0 })
  expect(take(1, 1, 0, 0)).toMatchObject({ bytes: [wanted[1]], taken: 1, held: 1 })
  expect(window[3 * STRIDE + 1]).toBeGreaterThan(0)
  expect(take(2, 1, 0, 1)).toEqual({ bytes: [wanted[2]], taken: 2, held: -2, redundant: 1, sources: 1 })
  expect([...window.subarray(3 * STRIDE, 4 * STRIDE)]).toEqual([SEEN, SEEN, SEEN, SEEN, 0])
  // The same repair again, and the one that has not come.
  expect(take(0, 0, 0, 1)).toMatchObject({ taken: 0 })
  expect(take(0, 0, 1, 1)).toMatchObject({ bytes: [], taken: 1, redundant: 1, sources: 0 })
  expect([...window.subarray(3 * STRIDE, 4 * STRIDE)]).toEqual([SEEN, SEEN, SEEN, SEEN, SEEN])
  native.memoryClose(id)
})

test('where slots are too few for copies, a block that goes on is left as it was', () => {
  const memory = packetMemory(3, 512)
  const id = native.memoryOpen(memory)
  const [one, other] = [20, 30].map((bytes, n) => packetOf(memory, Uint8Array.of(0, bytes, ...pattern(bytes, n))))
  const headers = [SOURCE_PACKET | BEGINS_RUN, SOURCE_PACKET | 1, (K << 8) | R, 77, 0, 2, 2, 0, 32, 0]
  const window = new Int32Array(WINDOW_WORDS)
  const pass = passWords({
    run: 2,
    first: 0,
    end: 2,
    most: 1,
    newest: 0,
    places: PLACES,
    replaces: false,
    shape: (K << 8) | R,
    session: 77,
  })
  native.blocksPass(id, false, Int32Array.of(one, other), Int32Array.from(headers), window, pass, new Int32Array(2))
  expect([pass[PASS.first], pass[PASS.sent], memory.free[0]]).toEqual([0, 0, 1])
  expect(window.every((word) => word === 0)).toBe(true)
  native.memoryClose(id)
})

test('only what has been overtaken is taken for lost, where nothing is ever overtaken', () => {
  const { symbols, sums, start, pass, close } = batchOf([
    { block: 1, lost: [0] },
    { block: 2, lost: [2] },
  ])
  start[PASS.replaces] = 1
  expect(pass()).toBe(2)
  expect([symbols[STRIDE], symbols[2 * STRIDE + 2]]).toEqual([REPLACED, RECOVERED])
  expect([sums[STRIDE], sums[2 * STRIDE + 2] === 9]).toEqual([9, false])
  close()
})

test.each<[string, RegExp, (batch: ReturnType<typeof batchOf>) => void]>([
  ['more sources than its shape', /the run at 1 has/, ({ headers, run }) => headers.set([K + 1], run + 5)],
  ['more sources than packets', /the run at 1 has/, ({ headers, run }) => headers.set([1], run + 3)],
  ['no source', /the run at 1 has/, ({ headers, run }) => headers.set([0], run + 4)],
  ['more packets than there are', /the run at 1 has/, ({ headers, run }) => headers.set([90], run + 3)],
  ['symbols longer than a slot', /the run at 1 has/, ({ headers, run }) => headers.set([513], run + 7)],
  [
    'a place that is not in the lists',
    /the run at 1 has/,
    ({ headers, start, run }) => {
      start[PASS.places] = WINDOW_PLACES
      start[PASS.shape] = ((2 * WINDOW_SYMBOLS) / WINDOW_PLACES) << 8
      headers[run] = start[PASS.shape]
      headers.set([WINDOW_PLACES - 1], run + 2)
    },
  ],
  ['places that are no power of two', /power of two/, ({ start }) => start.set([3], PASS.places)],
  ['words that are not there', /headers/, ({ start, headers }) => start.set([headers.length - 1], PASS.run)],
  ['a negative index', /headers/, ({ start }) => start.set([-8], PASS.run)],
  ['a first packet that is none', /headers/, ({ start }) => start.set([-1], PASS.first)],
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
  ['an index out of order', ({ headers }) => headers.set([SOURCE_PACKET | BEGINS_RUN | 2, SOURCE_PACKET], 1)],
  ['an index above those of its block', ({ headers }) => headers.set([SOURCE_PACKET | K], 2)],
  ['a repair that its shape has no room for', ({ headers }) => headers.set([(K << 8) | R], 3)],
])('a block with %s is refused', (_what, change) => {
  const batch = batchOf([{ block: 0, lost: [1] }])
  change(batch)
  expect(() => batch.pass()).toThrow(/the run at 1 has packets that cannot be/)
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
