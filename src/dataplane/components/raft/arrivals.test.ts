import { describe, expect, test } from 'vitest'
import { Arrivals } from './arrivals.ts'

const MOST = 1200

/** What the block says has come: the highest, and of those before it those whose bit is set. */
function told(
  arrivals: Arrivals,
  now = 0,
  most = MOST,
): { highest: number; before: number[]; age: number; bytes: number } {
  const bytes = arrivals.blockBytes(most)
  const view = new DataView(new ArrayBuffer(bytes))
  arrivals.write(view, 0, 3, now, most)
  expect(view.getInt32(0)).toBe(3)
  const highest = view.getInt32(4)
  const bits = view.getInt32(12) >>> 16
  const before: number[] = []
  for (let bit = 0; bit < bits; bit++) {
    const word = view.getInt32(16 + (bit >> 5) * 4)
    if ((word & (1 << (31 - (bit & 31)))) !== 0) before.push((highest - 1 - bit) | 0)
  }
  return { highest, before, age: view.getUint32(8), bytes }
}

describe('what has come on a carrier', () => {
  test('counts once, whatever the order', () => {
    const arrivals = new Arrivals()
    expect([5, 7, 6, 7, 5, 9].map((number) => arrivals.take(number, 0))).toEqual([true, true, true, false, false, true])
    expect(arrivals.unreported).toBe(4)
    expect(told(arrivals, 2_500_000)).toMatchObject({ highest: 9, before: [7, 6, 5], age: 2500 })
    expect(arrivals.unreported).toBe(0)
  })

  test('is so old as the highest is', () => {
    const arrivals = new Arrivals()
    arrivals.take(5, 500_000)
    expect(told(arrivals, 2_500_000)).toMatchObject({ highest: 5, age: 2000 })
    arrivals.take(6, 1_000_000)
    arrivals.take(4, 2_000_000)
    expect(told(arrivals, 2_500_000)).toMatchObject({ highest: 6, age: 1500 })
  })

  test('is told four times, so that a report that is lost costs nothing', () => {
    const arrivals = new Arrivals()
    for (const number of [1, 2, 4]) arrivals.take(number, 0)
    for (let report = 0; report < 4; report++) expect(told(arrivals)).toMatchObject({ highest: 4, before: [2, 1] })
    expect(arrivals.blockBytes(MOST)).toBe(0)
    arrivals.take(5, 0)
    expect(told(arrivals)).toMatchObject({ highest: 5, before: [] })
  })

  test('goes round the range of 32 bits', () => {
    const arrivals = new Arrivals()
    for (const number of [0x7fffffff, -0x80000000, -0x7fffffff]) expect(arrivals.take(number, 0)).toBe(true)
    expect(told(arrivals)).toMatchObject({ highest: -0x7fffffff, before: [-0x80000000, 0x7fffffff] })
  })

  test('is told as far back as the block has room', () => {
    const arrivals = new Arrivals()
    for (let number = 0; number < 200; number++) arrivals.take(number, 0)
    const { before, bytes } = told(arrivals, 0, 16 + 8)
    expect(bytes).toBe(16 + 8)
    expect(before).toEqual(Array.from({ length: 64 }, (_, i) => 198 - i))
  })

  test('is told of 2047 before the highest, where there is room', () => {
    const arrivals = new Arrivals()
    for (let number = 0; number < 5000; number++) if (number % 3 !== 0) arrivals.take(number, 0)
    const before = Array.from({ length: 2047 }, (_, i) => 4998 - i).filter((number) => number % 3 !== 0)
    expect(told(arrivals)).toMatchObject({ highest: 4999, before })
  })

  test('is counted from anew after eight strangers in turn, and one stranger changes nothing', () => {
    const arrivals = new Arrivals()
    arrivals.take(1, 0)
    // What it brought may be new, but nothing is told of it.
    expect(arrivals.take(1_000_000, 0)).toBe(true)
    expect(arrivals.take(2, 0)).toBe(true)
    expect(arrivals.unreported).toBe(2)
    expect(told(arrivals).highest).toBe(2)
    for (let i = 0; i < 8; i++) expect(arrivals.take(1_000_000 + i, 0)).toBe(true)
    expect(arrivals.unreported).toBe(1)
    expect(arrivals.take(1_000_007, 0)).toBe(false)
    for (let i = 0; i < 7; i++) arrivals.take(2_000_000 + i, 0)
    arrivals.take(1_000_008, 0)
    arrivals.take(2_000_007, 0)
    expect(told(arrivals).highest).toBe(1_000_008)
  })
})
