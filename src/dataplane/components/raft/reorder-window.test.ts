import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DELIVERED, GIVEN_UP, HERE, MISSING, ReorderWindow } from './reorder-window.ts'

const MAX_AHEAD = 8192

/** Sequences are 32-bit and go round: begins before the end of their range as well. */
const STARTS = [0, 0x7fffffff - 20, -20]

describe.each(STARTS)('begun at %i', (start) => {
  const nth = (n: number) => (start + n) | 0

  test('what is beyond its reach is told from what is behind it', () => {
    const window = new ReorderWindow()
    window.start(start)
    expect(window.reach(nth(MAX_AHEAD - 1))).toBe(0)
    expect(window.reach(nth(MAX_AHEAD))).toBe(1)
    expect(window.reach(nth(-MAX_AHEAD))).toBe(0)
    expect(window.reach(nth(-MAX_AHEAD - 1))).toBe(-1)
  })

  test('any order in is the same order out, and the first to come and the first in order are told', () => {
    const pieces = fc.uniqueArray(fc.integer({ min: 0, max: 200 }), { minLength: 1, maxLength: 80, size: 'max' })
    fc.assert(
      fc.property(pieces, (came) => {
        const window = new ReorderWindow()
        window.start(start)
        came.forEach((n, i) => {
          expect(window.stateOf(nth(n))).toBe(MISSING)
          window.add(nth(n), n, 1000 + n, i)
          expect(window.stateOf(nth(n))).toBe(HERE)
          expect(window.held).toBe(i + 1)
          expect(window.earliest).toBe(nth(came[0]!))
          expect(window.first).toBe(nth(Math.min(...came.slice(0, i + 1))))
          expect(window.end).toBe(nth(Math.max(...came.slice(0, i + 1)) + 1))
        })
        const left: number[] = []
        while (window.held > 0) {
          if (window.stateOf(window.next) === HERE) {
            const { next } = window
            expect(window.arrivalOf(next)).toBe(came.indexOf((next - start) | 0))
            expect(window.deadlineOf(next)).toBe(1000 + ((next - start) | 0))
            expect(window.earliest).toBe(nth(came.find((n) => !left.includes(n))!))
            left.push(window.take())
            expect(window.stateOf(next)).toBe(DELIVERED)
          } else window.step()
        }
        expect(left).toEqual([...came].sort((a, b) => a - b))
      }),
      { seed: 7, numRuns: 40 },
    )
  })

  test('a piece that was given up and comes late is known as that until it is out of reach', () => {
    const window = new ReorderWindow()
    window.start(start)
    window.giveUp(start)
    expect(window.stateOf(start)).toBe(GIVEN_UP)
    window.step()
    expect(window.stateOf(start)).toBe(GIVEN_UP)
    window.settle(start)
    expect(window.stateOf(start)).toBe(DELIVERED)
    for (let n = 1; n < MAX_AHEAD; n++) window.step()
    expect(window.reach(start)).toBe(0)
    expect(window.stateOf(start)).toBe(DELIVERED)
    window.step()
    window.step()
    expect(window.reach(start)).toBe(-1)
    // The one that has its place then.
    expect(window.stateOf(nth(2 * MAX_AHEAD))).toBe(MISSING)
  })

  test('a piece that is given up before others, or beyond them, keeps none from leaving', () => {
    const window = new ReorderWindow()
    window.start(start)
    for (const n of [1, 4]) window.add(nth(n), n, 0, 0)
    window.giveUp(nth(2))
    expect(window.end).toBe(nth(5))
    window.giveUp(nth(6))
    expect(window.end).toBe(nth(7))
    const left: number[] = []
    for (; window.next !== window.end; ) {
      if (window.stateOf(window.next) === HERE) left.push(window.take())
      else window.step()
    }
    expect(left).toEqual([1, 4])
  })

  test('gives every packet back once when it is cleared', () => {
    const window = new ReorderWindow()
    window.start(start)
    for (const n of [5, 3, MAX_AHEAD - 1]) window.add(nth(n), n, 0, 0)
    const given: number[] = []
    window.clear((packet) => given.push(packet))
    expect(given).toEqual([3, 5, MAX_AHEAD - 1])
    expect(window.started).toBe(false)
  })
})
