/** What is kept of the pieces that were sent: until they are reported or too old, and how often each was lost. */
import { expect, test } from 'vitest'
import { Counter } from '../../engine/metrics.ts'
import { Packets } from '../../engine/packets.ts'
import { SentPieces } from './sent-pieces.ts'

const MS = 1e6

/** `count` pieces that came in one every ms, a copy kept of each. */
function sent(count: number): { packets: Packets; ended: Counter; pieces: SentPieces } {
  const packets = new Packets({ slots: 16, mtu: 100 })
  const ended = new Counter(new Float64Array(1), 0)
  const pieces = new SentPieces(packets, ended)
  for (let n = 0; n < count; n++) pieces.add(packets.allocate(), n * MS)
  return { packets, ended, pieces }
}

test('keeps what is not reported, from the oldest of these on', () => {
  const { packets, ended, pieces } = sent(5)
  pieces.drop(1)
  pieces.drop(2)
  expect([pieces.base, pieces.held, pieces.oldest]).toEqual([0, 3, 0])
  pieces.drop(0)
  expect([pieces.base, pieces.held, pieces.oldest]).toEqual([3, 2, 3 * MS])
  expect([1, 4, 5].map((sequence) => pieces.copyOf(sequence) >= 0)).toEqual([false, true, false])
  pieces.drop(1)
  expect([ended.value, packets.held]).toEqual([3, 2])
  pieces.clear()
  expect([packets.held, pieces.held]).toEqual([0, 0])
  expect(new Set(Array.from({ length: 16 }, () => packets.allocate())).size).toBe(16)
})

test('drops what is too old', () => {
  const { packets, pieces } = sent(5)
  pieces.expire(10 * MS, 12 * MS)
  expect([pieces.base, packets.held]).toEqual([3, 2])
  pieces.clear()
})

test('a piece that could not be copied is not kept', () => {
  const { pieces } = sent(0)
  expect(pieces.add(-1, 0)).toBe(0)
  expect([pieces.base, pieces.next, pieces.held]).toEqual([1, 1, 0])
})

test('counts the copies of a piece that may still come', () => {
  const { pieces } = sent(2)
  for (const sequence of [1, 1, 0, 2]) pieces.send(sequence)
  expect([0, 1, 2].map((sequence) => pieces.flyingOf(sequence))).toEqual([1, 2, 0])
  for (let n = 0; n < 3; n++) pieces.lose(0)
  pieces.lose(1)
  expect([0, 1].map((sequence) => pieces.flyingOf(sequence))).toEqual([0, 1])
  pieces.clear()
})

test('counts how often a piece was lost, anew for the next one in its place', () => {
  const { pieces } = sent(2)
  for (let n = 0; n < 300; n++) pieces.lose(1)
  expect([pieces.lossesOf(0), pieces.lossesOf(1)]).toEqual([0, 255])
  pieces.clear()
  while (pieces.next !== 16_385) pieces.add(-1, 0)
  pieces.add(-1, 0)
  expect(pieces.lossesOf(16_385)).toBe(0)
})
