/** Many packets looked up at once: each is found where it lies, and whichever is none is named. */
import { expect, test } from 'vitest'
import { bytesOf, packetMemory, packetOf, pattern } from './fixture.ts'
import { native, TRAIN_BYTES } from './native.ts'

const SLOT_BYTES = 256
const HEADROOM = 64

const TRAINS = 3

/** `count` packets of different lengths and places, in an order that is not that of their slots; those that `riding` names a train of in that one. */
function packetsOf(count: number, riding: (n: number) => number | undefined = () => undefined) {
  const memory = packetMemory(2 * count + 3, SLOT_BYTES, HEADROOM, 32, TRAINS)
  const handles = Int32Array.from({ length: count }, (_, n) => packetOf(memory, pattern(n % 100, n)))
  for (let n = count - 1; n > 0; n--) {
    const other = (n * 7 + 3) % (n + 1)
    const handle = handles[n]
    handles[n] = handles[other]
    handles[other] = handle
  }
  handles.forEach((handle, n) => {
    const train = riding(n)
    if (train !== undefined) {
      memory.train[handle] = train + 1
      memory.trainReferences[train]++
      memory.offset[handle] = (2 * count + 3) * SLOT_BYTES + TRAIN_BYTES * train + 300 * n
    } else memory.offset[handle] = handle * SLOT_BYTES + (n % (SLOT_BYTES - 100))
    memory.data.set(pattern(memory.length[handle], n), memory.offset[handle])
  })
  return { memory, handles, id: native.memoryOpen(memory) }
}

const COUNTS = [1, 2, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 50]

test.each([
  ['all in their slots', () => undefined],
  ['some in a train', (n: number) => (n % 5 === 3 ? 0 : undefined)],
  ['one in a train', (n: number) => (n === 16 ? 1 : undefined)],
  ['all in one train', () => 2],
  ['all in trains by turns', (n: number) => n % TRAINS],
  ['by turns in trains and slots', (n: number) => (n % 4 < TRAINS ? n % 4 : undefined)],
])('%s', (_, riding) => {
  for (const count of COUNTS) {
    const { memory, handles, id } = packetsOf(count, riding)
    const copies = new Int32Array(count)
    expect(native.packetsCopy(id, handles, 0, count, copies)).toBe(count)
    handles.forEach((handle, n) => {
      expect(bytesOf(memory, copies[n]), `${n} of ${count}`).toEqual(bytesOf(memory, handle))
    })
    native.memoryClose(id)
  }
})

/** What is wrong with a packet: its handle, or words of its slot. */
interface Fault {
  handle?: number
  train?: number
  offset?: number
  length?: number
}

const slotAt = (handle: number) => handle * SLOT_BYTES

test.each<[string, (handle: number, slots: number) => Fault]>([
  ['a handle below those there are', () => ({ handle: -1 })],
  ['a handle above those there are', (_, slots) => ({ handle: slots })],
  ['a handle far below', () => ({ handle: -(2 ** 31) })],
  ['a place in front of its slot', (handle) => ({ train: 0, offset: slotAt(handle) - 1 })],
  ['a place behind its slot', (handle) => ({ train: 0, offset: slotAt(handle + 1) + 1 })],
  ['a place far in front of the slab', () => ({ offset: -(2 ** 31) })],
  ['a place far behind the slab', () => ({ offset: 2 ** 31 - 1 })],
  ['an end behind its slot', (handle) => ({ train: 0, offset: slotAt(handle + 1) - 10, length: 11 })],
  ['a negative length', () => ({ length: -1 })],
  ['the least length', () => ({ length: -(2 ** 31) })],
  ['a train that there is not', () => ({ train: TRAINS + 1 })],
  ['a train far above those there are', () => ({ train: 2 ** 31 - 1 })],
  ['the least number of a train', () => ({ train: -(2 ** 31) })],
  ['a place outside of its train', (handle) => ({ train: 1, offset: slotAt(handle) })],
  ['a place in front of its train', (_, slots) => ({ train: 2, offset: slotAt(slots) + TRAIN_BYTES - 1, length: 0 })],
  ['a place behind its train', (_, slots) => ({ train: 2, offset: slotAt(slots) + 2 * TRAIN_BYTES + 1, length: 0 })],
  ['an end behind its train', (_, slots) => ({ train: 2, offset: slotAt(slots) + 2 * TRAIN_BYTES - 10, length: 11 })],
])('%s is no packet, wherever it stands', (_, faultOf) => {
  for (let at = 0; at < 40; at++) {
    const { memory, handles, id } = packetsOf(40, (n) => (n === 5 || n === 35 ? 0 : undefined))
    const { handle, ...words } = faultOf(handles[at], memory.offset.length)
    for (const [name, value] of Object.entries(words)) memory[name as keyof typeof words].set([value], handles[at])
    if (handle !== undefined) handles[at] = handle
    const copies = new Int32Array(40)
    expect(() => native.packetsCopy(id, handles, 0, 40, copies)).toThrow(`handles[${at}] = ${handles[at]} is no packet`)
    expect(native.packetsCopy(id, handles, 0, at, copies)).toBe(at)
    native.memoryClose(id)
  }
})

test('a packet of a train that ends with it is one, and one whose word names none is in its slot', () => {
  const { memory, handles, id } = packetsOf(40, (n) => (n === 5 ? 1 : undefined))
  const slots = memory.offset.length
  memory.offset[handles[5]] = slotAt(slots) + 2 * TRAIN_BYTES - memory.length[handles[5]]
  memory.train[handles[7]] = -1
  const copies = new Int32Array(40)
  expect(native.packetsCopy(id, handles, 0, 40, copies)).toBe(40)
  for (const n of [5, 7]) expect(bytesOf(memory, copies[n])).toEqual(bytesOf(memory, handles[n]))
  native.memoryClose(id)
})
