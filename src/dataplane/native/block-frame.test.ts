/** Headers of block codes' sources, written by the addon, against what docs/wire-formats.md draws. */
import { expect, test } from 'vitest'
import { bytesOf, packetMemory, packetOf, pattern } from './fixture.ts'
import { native } from './native.ts'

const [K, R, SESSION] = [3, 2, 0xabcdef]
const STRIDE = K + R
const FRONT = 18

/** Where the next source stands: block and index; how many blocks may become full; what a block's closing byte is behind a full one. */
const stateOf = ({ block = 5, index = 0, sources = K, blocks = 4, closing = 0, previous = 0, last = K } = {}) =>
  Int32Array.of(
    0xb2000000 | (K << 16) | (R << 8),
    (SESSION << 8) | closing,
    block,
    index,
    FRONT,
    sources,
    0,
    STRIDE,
    blocks,
    previous,
    0,
    last,
    -9,
  )

function framed(sizes: readonly number[], state: Int32Array) {
  const memory = packetMemory(32, 512)
  const id = native.memoryOpen(memory)
  const handles = Int32Array.from(sizes, (size, n) => packetOf(memory, pattern(size, n)))
  const symbols = new Int32Array(4 * STRIDE).fill(-9)
  const next = native.blockFrame(id, handles, 0, handles.length, state, symbols)
  // A memory that is closed gives its pages back.
  const packets = [...handles].map((handle) => bytesOf(memory, handle))
  native.memoryClose(id)
  return { packets, handles, symbols, next }
}

test('each source gets the header of its place, block after block, and stands there', () => {
  const sizes = [20, 0, 7, 30, 5]
  const { packets, handles, symbols, next } = framed(sizes, stateOf({ block: -1, index: 1 }))
  expect(next).toBe(5)
  const places = [
    [-1, 1],
    [-1, 2],
    [0, 0],
    [0, 1],
    [0, 2],
  ]
  packets.forEach((bytes, n) => {
    const view = new DataView(bytes.slice().buffer)
    const [block, index] = places[n]
    expect([...bytes.subarray(0, 4)]).toEqual([0xb2, K, R, index])
    expect([view.getUint32(4), view.getInt32(8), view.getUint16(12)]).toEqual([SESSION * 256, block, sizes[n]])
    expect([...bytes.subarray(14)]).toEqual([...pattern(sizes[n], n)])
  })
  expect([...symbols.subarray(0, 8)]).toEqual([-9, handles[0], handles[1], -9, -9, handles[2], handles[3], handles[4]])
})

test.each<[string, number[], object, number[]]>([
  ['that begins in the call, behind a full one', [20, 0, 7, 30, 5], {}, [3, 4]],
  ['that began before', [20], { index: 1 }, [0]],
  ['whose point is reached while it goes on', [20, 0], { sources: 2, last: 3, blocks: 1 }, [0, 1]],
  ['that is full', [20, 0, 7], { blocks: 1 }, []],
  ['that nothing came of', [], { index: 1 }, []],
  ['whose repairs nobody makes', [20, 0], { last: 0 }, []],
])('sources of a block %s are copied where it outlives the call', (_what, sizes, where, wanted) => {
  const memory = packetMemory(32, 512)
  const id = native.memoryOpen(memory)
  const handles = Int32Array.from(sizes, (size, n) => packetOf(memory, pattern(size, n)))
  const free = memory.free[0]
  const state = stateOf(where)
  const copies = new Int32Array(255)
  native.blockFrame(id, handles, 0, handles.length, state, new Int32Array(4 * STRIDE), copies)
  expect([state[12], free - memory.free[0]]).toEqual([wanted.length, wanted.length])
  const bytes = [...copies.subarray(0, state[12])].map((copy) => [...bytesOf(memory, copy)])
  expect(bytes).toEqual(wanted.map((n) => [...bytesOf(memory, handles[n])]))
  for (const copy of copies.subarray(0, state[12])) expect(handles).not.toContain(copy)
  native.memoryClose(id)
})

test('fewer sources are copied where slots run out', () => {
  const memory = packetMemory(3, 512)
  const id = native.memoryOpen(memory)
  const handles = Int32Array.from([20, 30], (size, n) => packetOf(memory, pattern(size, n)))
  const state = stateOf()
  native.blockFrame(id, handles, 0, 2, state, new Int32Array(4 * STRIDE), new Int32Array(255))
  expect([state[3], state[12], memory.free[0]]).toEqual([2, 1, 0])
  native.memoryClose(id)
})

test('a full block is the last where no other may become full, and its sources stay counted', () => {
  const state = stateOf({ blocks: 1 })
  const { next } = framed([1, 2, 3, 4], state)
  expect([next, state[2], state[3], state[8]]).toEqual([3, 5, 3, 0])
})

test('behind a full block sources say how many it had', () => {
  const { packets } = framed([1, 2, 3, 4], stateOf({ closing: 2, previous: 3 }))
  expect(packets.map((bytes) => bytes[7])).toEqual([2, 2, 2, 3])
})

test('a packet without room in front is released and counted, and takes no place', () => {
  const memory = packetMemory(8, 512)
  const id = native.memoryOpen(memory)
  const handles = Int32Array.from([4, 5, 6], (size) => packetOf(memory, pattern(size, size)))
  memory.offset[handles[1]] = handles[1] * memory.slotBytes + FRONT - 1
  const state = stateOf()
  const symbols = new Int32Array(4 * STRIDE)
  const free = memory.free[0]
  expect(native.blockFrame(id, handles, 0, 3, state, symbols)).toBe(3)
  expect([state[3], state[10], memory.free[0] - free]).toEqual([2, 1, 1])
  expect([...symbols.subarray(0, 2)]).toEqual([handles[0], handles[2]])
  native.memoryClose(id)
})

test('what cannot be is refused before any packet is changed', () => {
  const memory = packetMemory(4, 512)
  const id = native.memoryOpen(memory)
  const handles = Int32Array.of(packetOf(memory, pattern(4, 1)), 99)
  const before = memory.offset.slice()
  const frame =
    (state: Int32Array, end: number, places = 20) =>
    () =>
      native.blockFrame(id, handles, 0, end, state, new Int32Array(places))
  expect(frame(stateOf(), 2)).toThrow(/handles\[1\] = 99/)
  expect(frame(stateOf({ index: 3 }), 1)).toThrow(/state/)
  expect(frame(stateOf({ blocks: 0 }), 1)).toThrow(/state/)
  expect(frame(stateOf(), 1, 17)).toThrow(/room/)
  expect(frame(stateOf().subarray(1), 1)).toThrow(/state/)
  const few = () => native.blockFrame(id, handles, 0, 1, stateOf(), new Int32Array(20), new Int32Array(254))
  expect(few).toThrow(/copies has 254 elements/)
  expect(memory.offset).toEqual(before)
  native.memoryClose(id)
})
