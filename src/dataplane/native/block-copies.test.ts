/** Copies of packets, many in one call. */
import { expect, test } from 'vitest'
import { bytesOf, packetMemory, packetOf, pattern, remoteOf, setRemote } from './fixture.ts'
import { native, type PacketMemory } from './native.ts'

/** Memory of 8 slots and a train, with packets of these sizes at `moved` bytes in front of where fresh ones begin. */
function packetsOf(sizes: readonly number[], moved = 0) {
  const memory = packetMemory(8, 512, 128, 64, 1)
  const handles = Int32Array.from(sizes, (size, n) => {
    const packet = packetOf(memory, pattern(size, n))
    memory.offset[packet] -= moved
    memory.data.set(pattern(size, n), memory.offset[packet])
    memory.arrival[packet] = n + 0.5
    memory.client[packet] = 100 + n
    setRemote(memory, packet, 4, [198, 51, 100, n], 4000 + n)
    return packet
  })
  return { memory, id: native.memoryOpen(memory), handles }
}

/** Puts a packet of `size` bytes into the train. */
function ride(memory: PacketMemory, packet: number, size: number): void {
  memory.train[packet] = 1
  memory.trainReferences[0] = 1
  memory.offset[packet] = 8 * memory.slotBytes + 100
  memory.length[packet] = size
  memory.data.set(pattern(size, 9), memory.offset[packet])
}

test('a copy has the bytes and annotations of its packet, and as much room in front', () => {
  const { memory, id, handles } = packetsOf([20, 0, 300], 30)
  const copies = new Int32Array(4).fill(-9)
  expect(native.packetsCopy(id, handles, 1, 3, copies)).toBe(2)
  expect(memory.free[0]).toBe(3)
  expect([...copies.subarray(2)]).toEqual([-9, -9])
  for (const [n, size] of [0, 300].entries()) {
    const copy = copies[n]
    expect(handles).not.toContain(copy)
    expect([...bytesOf(memory, copy)]).toEqual([...pattern(size, n + 1)])
    expect(memory.offset[copy] - copy * 512).toBe(98)
    expect([memory.arrival[copy], memory.client[copy], memory.train[copy]]).toEqual([n + 1.5, 101 + n, 0])
    expect(remoteOf(memory, copy)).toEqual({ family: 4, port: 4001 + n, address: [198, 51, 100, n + 1] })
  }
  native.memoryClose(id)
})

test('a packet of a train is copied behind headroom and stays where it is, one too long for a slot is not', () => {
  const { memory, id, handles } = packetsOf([20, 30])
  ride(memory, handles[1], 384)
  const copies = new Int32Array(2)
  expect(native.packetsCopy(id, handles, 0, 2, copies)).toBe(2)
  expect(memory.offset[copies[1]]).toBe(copies[1] * 512 + 128)
  expect([...bytesOf(memory, copies[1])]).toEqual([...pattern(384, 9)])
  expect([memory.train[handles[1]], memory.trainReferences[0]]).toEqual([1, 1])
  ride(memory, handles[1], 385)
  expect(native.packetsCopy(id, handles, 0, 2, copies)).toBe(1)
  native.memoryClose(id)
})

test('as many are copied as there are slots', () => {
  const { memory, id, handles } = packetsOf([5, 6, 7, 8, 9])
  const copies = new Int32Array(5)
  expect(native.packetsCopy(id, handles, 0, 5, copies)).toBe(3)
  expect([...copies.subarray(0, 3)].map((copy) => memory.length[copy])).toEqual([5, 6, 7])
  expect(native.packetsCopy(id, handles, 3, 5, copies)).toBe(0)
  expect(memory.free[0]).toBe(0)
  native.memoryClose(id)
})

test('where one is no packet none is copied', () => {
  const { memory, id, handles } = packetsOf([5, 6])
  memory.length[handles[1]] = 512
  expect(() => native.packetsCopy(id, handles, 0, 2, new Int32Array(2))).toThrow(RangeError)
  expect(() => native.packetsCopy(id, handles, 0, 1, new Int32Array(0))).toThrow(/copies has 0 elements/)
  expect(() => native.packetsCopy(id, handles, 0, 3, new Int32Array(3))).toThrow(/packets has 2 elements/)
  expect(memory.free[0]).toBe(6)
  native.memoryClose(id)
})
