/** Sums by exclusive or in packet memory: against the definition, at every width of vectors, and nothing else is touched. */
import { expect, test } from 'vitest'
import { packetMemory, pattern } from './fixture.ts'
import { native } from './native.ts'

test.each([16, 32, 64])('vectors of up to %i bytes: regions of any place and length', (widest) => {
  const slab = packetMemory(8, 2048)
  const id = native.memoryOpen(slab)
  slab.data.set(pattern(slab.data.length, widest))
  const expected = slab.data.slice()
  const steps: number[] = []
  for (const bytes of [0, 1, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1279, 1500]) {
    for (const filled of [0, bytes >> 1, bytes, bytes + 9]) {
      const target = 2048 * (steps.length % 3) + (steps.length % 67)
      const source = 2048 * (4 + (steps.length % 2)) + (steps.length % 41)
      steps.push(target, filled, source, bytes)
      for (let n = 0; n < bytes; n++)
        expected[target + n] = (n < filled ? expected[target + n]! : 0) ^ expected[source + n]!
    }
  }
  native.xorAdd(id, Int32Array.from(steps), steps.length / 4, widest)
  expect(Buffer.compare(slab.data, expected)).toBe(0)
  native.memoryClose(id)
})

test.each([16, 32, 64])(
  'vectors of up to %i bytes: sources that go to a row and to columns, wherever they lie',
  (widest) => {
    const slab = packetMemory(32, 2048)
    const id = native.memoryOpen(slab)
    for (const bytes of [1, 15, 16, 63, 64, 65, 130, 255, 321, 1202, 1280]) {
      for (const [front, apart] of [
        [0, 0],
        [126, 0],
        [7, 0],
        [1, 3],
        [64, 17],
      ] as const) {
        slab.data.set(pattern(slab.data.length, bytes + front))
        const expected = slab.data.slice()
        const place = (slot: number) => 2048 * slot + front + apart * (slot % 4)
        const [columns, rows] = [5, 3]
        const steps: number[] = []
        const add = (target: number, filled: number, source: number, length: number) => {
          steps.push(target, filled, source, length)
          for (let n = 0; n < length; n++)
            expected[target + n] = (n < filled ? expected[target + n]! : 0) ^ expected[source + n]!
        }
        for (let i = 0; i < columns * rows; i++) {
          const [row, column] = [Math.floor(i / columns), i % columns]
          // The second row goes on with a sum that is there, and in the third a source is shorter than the others.
          const length = i === 12 ? bytes >> 1 : bytes
          add(place(20 + row), column > 0 || row === 1 ? bytes : 0, place(i), length)
          add(place(24 + column), row > 0 ? bytes : 0, place(i), length)
        }
        native.xorAdd(id, Int32Array.from(steps), steps.length / 4, widest)
        expect(Buffer.compare(slab.data, expected), `${bytes} bytes at ${front}, ${apart} apart`).toBe(0)
      }
    }
    native.memoryClose(id)
  },
)

test('the last bytes of the slab are reached, the ones behind refused, and then nothing is done', () => {
  const slab = packetMemory(4, 256, 16, 16)
  const id = native.memoryOpen(slab)
  slab.data.set(pattern(1024, 1))
  native.xorAdd(id, Int32Array.of(1024 - 77, 77, 0, 77), 1)
  const before = slab.data.slice()
  const call = (...steps: number[]) => native.xorAdd(id, Int32Array.of(0, 5, 100, 5, ...steps), 2)
  expect(() => call(1024 - 76, 0, 0, 77)).toThrow(RangeError)
  expect(() => call(1024 - 76, 77, 0, 1)).toThrow(RangeError)
  expect(() => call(0, 0, 1024 - 76, 77)).toThrow(/step 1/)
  expect(() => call(-1, 0, 0, 7)).toThrow(RangeError)
  expect(() => call(0, 0, 0, -1)).toThrow(RangeError)
  expect(() => native.xorAdd(id, new Int32Array(3), 1)).toThrow(RangeError)
  expect(Buffer.compare(slab.data, before)).toBe(0)
  native.memoryClose(id)
})
