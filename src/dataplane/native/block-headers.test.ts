/** Headers of block codes' packets, read by the addon, against what docs/wire-formats.md draws. */
import { expect, test } from 'vitest'
import { Random } from '../engine/random.ts'
import { BEGINS_RUN, SOURCE_PACKET } from './code-calls.ts'
import { bytesOf, packetMemory, packetOf } from './fixture.ts'
import { native } from './native.ts'

const [SOURCE, REPAIR] = [0xb4, 0xb5]

interface Header {
  kind: number
  k: number
  r: number
  index: number
  session: number
  closing: number
  block: number
}

/** A packet with that header, and `bytes` bytes behind its 12; a source's say how many follow them, and `more`. */
function packet({ kind, k, r, index, session, closing, block }: Header, bytes: number, more = 0): Uint8Array {
  const view = new DataView(new ArrayBuffer(12 + bytes))
  view.setUint32(0, ((kind << 24) | (k << 16) | (r << 8) | index) >>> 0)
  view.setUint32(4, ((session << 8) | closing) >>> 0)
  view.setUint32(8, block)
  if (kind === SOURCE && bytes >= 2) view.setUint16(12, bytes - 2 + more)
  return new Uint8Array(view.buffer)
}

function isRight(
  { kind, k, r, index, closing }: Header,
  bytes: number,
  symbolAt: number,
  most: number,
  progressive: boolean,
) {
  if (k + r > most || bytes < 2) return false
  if (kind === SOURCE) return index < k && closing <= (progressive ? k : 0)
  return kind === REPAIR && index < r && closing >= 1 && closing <= k && 12 + bytes >= symbolAt + 2
}

test.each([1, 2, 3, 4])('of a batch are read, and cut off those that are right, seed %i', (seed) => {
  const random = new Random(seed)
  const pick = <T>(from: readonly T[]): T => from[random.below(from.length)] as T
  const seen = { right: 0, wrong: 0, runs: 0 }
  for (let round = 0; round < 400; round++) {
    const memory = packetMemory(32, 256)
    const id = native.memoryOpen(memory)
    const [symbolAt, most, progressive] = [pick([12, 16]), pick([255, 40]), random.chance(0.5)]
    const count = random.below(20)
    let header: Header = { kind: SOURCE, k: 8, r: 4, index: 0, session: 0xfffffe, closing: 0, block: 0xffffffff }
    const arriving = Array.from({ length: count }, () => {
      header = {
        ...header,
        kind: pick([SOURCE, SOURCE, REPAIR, 0x45]),
        index: random.chance(0.6) ? (header.index + 1) & 255 : random.below(9),
      }
      header.closing = header.kind === SOURCE ? pick([0, 0, 0, 8, 9]) : pick([8, 8, 1, 0, 9])
      if (random.chance(0.2)) header.block = random.below(2 ** 32)
      if (random.chance(0.1)) header.session = random.below(2 ** 24)
      if (random.chance(0.1)) header.r = 4 + random.below(40)
      if (random.chance(0.1)) header = { ...header, k: pick([8, 9, 200]) }
      return { ...header, bytes: pick([0, 1, 2, 3, 5, 60, 60, 60]), more: random.chance(0.1) ? 1 : 0 }
    })
    const handles = Int32Array.from(arriving, (one) => packetOf(memory, packet(one, one.bytes, one.more)))
    const words = new Int32Array(9 * count)
    native.blockHeaders(id, handles, count, Int32Array.of(SOURCE, REPAIR, symbolAt, most, progressive ? 1 : 0), words)
    let run = -1
    let before = ''
    arriving.forEach((one, n) => {
      const bytes = packet(one, one.bytes, one.more)
      const isWhole = one.kind !== SOURCE || one.more === 0
      if (!isWhole || !isRight(one, one.bytes, symbolAt, most, progressive)) {
        seen.wrong++
        expect(words[n]).toBe(-1)
        expect(bytesOf(memory, handles[n])).toEqual(bytes)
        return
      }
      seen.right++
      const { k, r, session, block } = one
      const begins = [k, r, session, block].join() !== before
      before = [k, r, session, block].join()
      if (begins) {
        run++
        seen.runs++
        expect([...words.subarray(count + 8 * run, count + 8 * run + 3)]).toEqual([k * 256 + r, session, block | 0])
      }
      const isSource = one.kind === SOURCE
      const wanted = one.index + 256 * one.closing + (isSource ? SOURCE_PACKET : 0) + (begins ? BEGINS_RUN : 0)
      expect(words[n]).toBe(wanted)
      expect(bytesOf(memory, handles[n])).toEqual(bytes.subarray(isSource ? 12 : symbolAt))
    })
    native.memoryClose(id)
  }
  expect(Math.min(seen.right, seen.wrong, seen.runs)).toBeGreaterThan(400)
})

/** What a run of these packets says: how many of them, how many sources, how many the block has, and the bytes of the longest source and of the last repair. */
function runOf(arriving: readonly { kind: number; index: number; closing?: number; bytes: number }[], progressive = 0) {
  const memory = packetMemory(16, 256)
  const id = native.memoryOpen(memory)
  const header = { k: 4, r: 3, session: 7, block: 1, closing: 0 }
  const handles = Int32Array.from(arriving, (one) => packetOf(memory, packet({ ...header, ...one }, one.bytes)))
  const { length } = handles
  const words = new Int32Array(9 * length)
  native.blockHeaders(id, handles, length, Int32Array.of(SOURCE, REPAIR, 12, 255, progressive), words)
  native.memoryClose(id)
  return [...words.subarray(length + 3, length + 8)]
}
const source = (index: number, bytes = 9) => ({ kind: SOURCE, index, bytes })
const repair = (index: number, closing = 4, bytes = 9) => ({ kind: REPAIR, index, closing, bytes })

test.each([
  ['all sources', [source(0), source(1), source(2), source(3, 20)], [4, 4, 4, 20, 0]],
  ['all sources and a repair', [source(0), source(1), source(2), source(3), repair(0)], [5, 4, 4, 9, 9]],
  ['repairs for those that are missing', [source(0), source(3), repair(0), repair(2)], [4, 2, 4, 9, 9]],
  ['a block that ended early', [source(1), repair(1, 2)], [2, 1, 2, 9, 9]],
  ['too few sources', [source(0), source(1), source(2)], [3, 3, 0, 9, 0]],
  ['too few repairs', [source(0), source(1), repair(0)], [3, 2, 0, 9, 9]],
  ['repairs only', [repair(0), repair(1), repair(2)], [3, 0, 0, 0, 9]],
  ['a source again', [source(0), source(1), source(1), source(3)], [4, 4, 0, 9, 0]],
  ['a source overtaken', [source(1), source(0), source(2), source(3)], [4, 4, 0, 9, 0]],
  ['a source behind a repair', [source(0), source(1), repair(0), source(3)], [4, 3, 0, 9, 9]],
  ['a repair again', [source(0), source(1), repair(0), repair(0)], [4, 2, 0, 9, 9]],
  ['repairs over fewer sources than came', [source(0), source(3), repair(0, 3)], [3, 2, 0, 9, 9]],
  ['repairs that differ in what they are over', [source(0), source(1), repair(0, 3), repair(1)], [4, 2, 0, 9, 9]],
  ['repairs that differ in length', [source(0), source(1), repair(0, 4, 12), repair(1)], [4, 2, 0, 9, 9]],
  ['a repair shorter than a source', [source(0), source(1), source(2, 20), repair(0)], [4, 3, 0, 20, 9]],
  [
    'no header in between',
    [source(0), source(1), { kind: 0x45, index: 0, bytes: 9 }, source(2), source(3)],
    [4, 4, 0, 9, 0],
  ],
])('a run of %s says what its block has', (_what, arriving, said) => {
  expect(runOf(arriving)).toEqual(said)
})

test('a run of a code whose repairs are over parts of a block says nothing of it', () => {
  expect(runOf([source(0), source(1), source(2), source(3)], 1)).toEqual([4, 4, 0, 9, 0])
})

test('a handle that is no packet is refused before any other is changed', () => {
  const memory = packetMemory(4)
  const id = native.memoryOpen(memory)
  const header = { kind: SOURCE, k: 2, r: 1, index: 0, session: 1, closing: 0, block: 0 }
  const handles = Int32Array.of(packetOf(memory, packet(header, 10)), 9)
  const before = memory.offset.slice()
  const read = (format: number[], words = 18) =>
    native.blockHeaders(id, handles, 2, Int32Array.from(format), new Int32Array(words))
  expect(() => read([SOURCE, REPAIR, 12, 255, 0])).toThrow(/handles\[1\] = 9/)
  handles[1] = handles[0]
  expect(() => read([SOURCE, REPAIR, 11, 255, 0])).toThrow(/format\[2\] = 11/)
  expect(() => read([SOURCE, REPAIR, 12, 255])).toThrow(/format/)
  expect(() => read([SOURCE, REPAIR, 12, 255, 0], 17)).toThrow(/headers/)
  expect(memory.offset).toEqual(before)
  native.memoryClose(id)
})
