/** What one call has found out about packets and the next goes on with: the same comes of it as of packets that are looked up again. */
import { describe, expect, test } from 'vitest'
import { seededCombination } from '../../../test/harness/coefficients.ts'
import { cauchyMatrix } from '../codes/cauchy.ts'
import { PASS, WINDOW_WORDS } from './code-calls.ts'
import { bytesOf, packetMemory, packetOf, passWords, pattern } from './fixture.ts'
import { native, type PacketMemory } from './native.ts'

const [K, R] = [3, 2]
const STRIDE = K + R
/** Bytes in front of a source's symbol, and of those how many more a repair with a seed has. */
const [SYMBOL_AT, SEED_BYTES] = [12, 4]
const SEED = 77
const HEADER = Int32Array.of(0xb3030200 | 0, 7 * 256 + K, 0)

interface Framing {
  readonly sizes: readonly number[]
  /** Called with the packets before they are framed. */
  readonly before?: (memory: PacketMemory, handles: Int32Array) => void
  /** After how many packets the framing stops and goes on in another call. */
  readonly stop?: number
}

/** Packets framed as blocks, with room for products behind each. */
function framed({ sizes, before, stop = sizes.length }: Framing) {
  const memory = packetMemory(64, 512, 128, 64, 1)
  const id = native.memoryOpen(memory)
  const handles = Int32Array.from(sizes, (size, n) => packetOf(memory, pattern(size, n)))
  before?.(memory, handles)
  const blocks = Math.floor(sizes.length / K)
  const list = new Int32Array((blocks + 1) * STRIDE)
  const state = Int32Array.of(0xb2030200 | 0, 7 << 8, 0, 0, 18, K, 0, STRIDE, blocks + 1, 0, 0, 0, 0)
  native.blockFrame(id, handles, 0, stop, state, list)
  if (stop < sizes.length) native.blockFrame(id, handles, stop, sizes.length, state, list)
  return { memory, id, list, full: state[2] }
}

/** The packets that are made of the blocks that are full, and where in their slots they lie. */
function made(framing: Framing, code: 'cauchy' | 'random', known: boolean) {
  const { memory, id, list, full } = framed(framing)
  const count =
    code === 'random'
      ? native.gfRandomPackets(id, SEED, list, full, K, R, SYMBOL_AT, SEED_BYTES, HEADER, known)
      : native.gfMultiplyPackets(id, cauchyMatrix(K, R), list, full, K, R, SYMBOL_AT, 0, -1, HEADER, known)
  const packets = Array.from({ length: full }, (_, b) => [...list.subarray(b * STRIDE + K, (b + 1) * STRIDE)]).flat()
  const bytes = packets.map((packet) => [...bytesOf(memory, packet)])
  const places = packets.map((packet) => memory.offset[packet] - packet * memory.slotBytes)
  native.memoryClose(id)
  return { count, bytes, places }
}

const framings: Record<string, Framing> = {
  'whole blocks': { sizes: [20, 0, 7, 300, 5, 9] },
  'an unfinished block behind them': { sizes: [20, 0, 7, 300, 5] },
  'a block that an earlier call began': { sizes: [1, 2, 3, 4, 5, 6, 7, 8, 9], stop: 4 },
  'a packet without room': {
    sizes: [1, 20, 3, 4, 5, 6, 7],
    before: (memory, handles) => {
      memory.offset[handles[1]] = handles[1] * memory.slotBytes + 17
    },
  },
  'a packet in a train': {
    sizes: [1, 20, 3, 4, 5, 6],
    before: (memory, handles) => {
      const [at] = handles.subarray(1)
      const train = memory.slotBytes * 64
      memory.data.copyWithin(train, memory.offset[at], memory.offset[at] + 20)
      memory.offset[at] = train
      memory.train[at] = 1
      memory.trainReferences[0] = 1
      memory.trainFree[0] = 0
    },
  },
  'symbols that lie elsewhere in their slots': {
    sizes: [1, 20, 3],
    before: (memory, handles) => {
      for (const handle of handles) memory.offset[handle] += handle
    },
  },
}

describe.each(['cauchy', 'random'] as const)('%s products of packets that were framed', (code) => {
  test.each(Object.keys(framings))('%s', (name) => {
    const lookedUp = made(framings[name], code, false)
    expect(lookedUp.count).toBeGreaterThanOrEqual(R)
    expect(made(framings[name], code, true)).toEqual(lookedUp)
  })
})

describe('packets that were framed', () => {
  const random = (id: number, list: Int32Array, blocks: number, known: boolean, [k, m] = [K, R]) =>
    native.gfRandomPackets(id, SEED, list, blocks, k, m, SYMBOL_AT, SEED_BYTES, HEADER, known)

  test('are not looked up again where they are known, and else are', () => {
    const { memory, id, list } = framed({ sizes: [5, 6, 7] })
    const symbols = [...list.subarray(0, K)].map((packet) => bytesOf(memory, packet).subarray(SYMBOL_AT))
    list[0] = 99
    expect(() => random(id, list, 1, false)).toThrow(/handles\[0\] = 99/)
    expect(random(id, list, 1, true)).toBe(R)
    const bytes = bytesOf(memory, list[K]).subarray(SYMBOL_AT + SEED_BYTES)
    expect([...bytes]).toEqual([...seededCombination(symbols, SEED)])
    native.memoryClose(id)
  })

  test('are looked up where they are others than said: in another list, memory or shape, or none', () => {
    const { memory, id, list } = framed({ sizes: [5, 6, 7, 8] })
    list[0] = 99
    const other = list.slice()
    const elsewhere = native.memoryOpen(packetMemory(8, 512))
    expect(() => random(id, other, 1, true)).toThrow(/99/)
    expect(() => random(elsewhere, list, 1, true)).toThrow(/99/)
    expect(() => random(id, list, 1, true, [K - 1, R + 1])).toThrow(/99/)
    expect(() => random(id, list, 1, true, [K, R - 1])).toThrow(/99/)
    // The second block is not whole.
    list[STRIDE + 1] = list[1]
    list[STRIDE + 2] = 98
    expect(() => random(id, list, 2, true)).toThrow(/98/)
    native.blockFrame(id, new Int32Array(0), 0, 0, Int32Array.of(0, 0, 0, 0, 18, K, 0, STRIDE, 1, 0, 0, 0, 0), list)
    expect(() => random(id, list, 1, true)).toThrow(/99/)
    expect(memory.free[0]).toBe(60)
    native.memoryClose(elsewhere)
    native.memoryClose(id)
  })

  test('are looked up where no block stands at a multiple of their stride, or symbols are said to begin elsewhere', () => {
    const memory = packetMemory(16, 512)
    const id = native.memoryOpen(memory)
    const list = new Int32Array(3 * STRIDE)
    const handles = Int32Array.from([5, 6, 7, 8, 9, 10], (size) => packetOf(memory, pattern(size, size)))
    const state = Int32Array.of(0xb2030200 | 0, 7 << 8, 0, 0, 18, K, 2, STRIDE, 2, 0, 0, 0, 0)
    native.blockFrame(id, handles, 0, 6, state, list)
    list.fill(99)
    expect(() => random(id, list, 2, true)).toThrow(/99/)
    native.memoryClose(id)
    const others = framed({ sizes: [5, 6, 7] })
    others.list[0] = 99
    const skipping = (skip: number) => () =>
      native.gfRandomPackets(others.id, SEED, others.list, 1, K, R, skip, SEED_BYTES, HEADER, true)
    expect(skipping(SYMBOL_AT + 1)).toThrow(/99/)
    const cut = () =>
      native.gfMultiplyPackets(others.id, cauchyMatrix(K, R), others.list, 1, K, R, SYMBOL_AT, 8, -1, HEADER, true)
    expect(cut).toThrow(/99/)
    native.memoryClose(others.id)
  })

  test('are forgotten with any memory that is closed', () => {
    const { id, list } = framed({ sizes: [5, 6, 7] })
    native.memoryClose(native.memoryOpen(packetMemory(8, 512)))
    list[0] = 99
    expect(() => random(id, list, 1, true)).toThrow(/99/)
    native.memoryClose(id)
  })
})

test('packets whose headers were read are passed on, and left as they are where another one stands there since', () => {
  const { memory, id, list } = framed({ sizes: [5, 6, 7] })
  const handles = list.slice(0, K)
  const headers = new Int32Array(9 * K)
  const pass = () => {
    const out = new Int32Array(K)
    const [shape, session, newest] = headers.subarray(K)
    const words = passWords({ run: K, first: 0, end: K, most: 1, newest, places: 8, replaces: false, shape, session })
    native.blocksPass(id, true, handles, headers, new Int32Array(WINDOW_WORDS), words, out)
    return [...out.subarray(0, words[PASS.sent])].map((packet) => [...bytesOf(memory, packet)])
  }
  native.blockHeaders(id, handles, K, Int32Array.of(0xb2, 0xb3, 16, 255, 0), headers)
  const [first] = handles
  handles[0] = packetOf(memory, pattern(9, 9))
  expect(pass()).toEqual([])
  handles[0] = first
  expect(pass()).toEqual([5, 6, 7].map((bytes, n) => [...pattern(bytes, n)]))
  native.memoryClose(id)
})
