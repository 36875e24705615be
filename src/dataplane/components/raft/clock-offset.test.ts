/** The offset between the clocks of two ends: the least that was seen in the last minute, and no wrong one. */
import { describe, expect, test } from 'vitest'
import { ClockOffset } from './clock-offset.ts'

const S = 1e9
/** Microseconds by which the other clock is ahead or behind; anything, since they have nothing in common. */
const APART = -123_456_789

/** Takes what took `us` microseconds and came at `at`, ns. */
const take = (offset: ClockOffset, us: number, at: number, most = 0.03 * S): boolean =>
  offset.sample(Math.floor(at / 1000) | 0, (Math.floor(at / 1000) - us - APART) | 0, at, most)

test('is the least that was seen, for a minute', () => {
  const offset = new ClockOffset()
  for (const us of [40_000, 15_000, 60_000]) take(offset, us, 1 * S)
  expect(offset.least - APART).toBe(15_000)
  for (let at = 2; at <= 55; at++) take(offset, 50_000, at * S)
  expect(offset.least - APART).toBe(15_000)
  for (let at = 56; at <= 75; at++) take(offset, 50_000, at * S)
  expect(offset.least - APART).toBe(50_000)
})

test('a lesser one counts for a minute from when it was seen', () => {
  const offset = new ClockOffset()
  take(offset, 40_000, 1 * S)
  take(offset, 15_000, 25 * S)
  for (let at = 26; at <= 80; at++) take(offset, 50_000, at * S)
  expect(offset.least - APART).toBe(15_000)
  for (let at = 81; at <= 100; at++) take(offset, 50_000, at * S)
  expect(offset.least - APART).toBe(50_000)
})

test('is not what was seen before a pause of more than a minute', () => {
  const offset = new ClockOffset()
  for (let at = 1; at <= 60; at++) take(offset, 15_000, at * S)
  take(offset, 900_000, 131 * S)
  expect(offset.least - APART).toBe(900_000)
  take(offset, 800_000, 132 * S)
  expect(offset.least - APART).toBe(800_000)
})

test('the first packet after a pause of more than a minute may have been long under way, or tell a wrong time', () => {
  const offset = new ClockOffset()
  for (let at = 1; at <= 60; at++) take(offset, 15_000, at * S)
  expect(take(offset, 2_000_000, 140 * S, 4 * S)).toBe(true)
  expect(take(offset, 1_900_000, 140 * S, 4 * S)).toBe(true)
  expect(take(offset, 15_000, 141 * S)).toBe(true)
  expect(take(offset, -30_000_000, 230 * S)).toBe(false)
  expect(take(offset, 15_000, 231 * S)).toBe(true)
  expect(offset.least - APART).toBe(15_000)
})

describe('rises at once', () => {
  /** The least after packets of `seconds`, ten in each, that take `us`, every 25th of them `other`. */
  const leastAfter = (seconds: number, us: number, { most = 0.03 * S, other = us } = {}): number => {
    const offset = new ClockOffset()
    take(offset, 15_000, 1 * S)
    for (let n = 1; n <= 10 * seconds; n++) take(offset, n % 25 === 0 ? other : us, (1 + n / 10) * S, most)
    return offset.least - APART
  }

  test('where all say for five seconds that the clocks are further apart', () => {
    expect(leastAfter(5, 20_000_000)).toBe(15_000)
    expect(leastAfter(6, 20_000_000)).toBe(20_000_000)
  })

  test('not where they may have taken as long, nor where some are in time', () => {
    expect(leastAfter(30, 3_000_000, { most: 3 * S })).toBe(15_000)
    expect(leastAfter(30, 3_000_000, { other: 900_000 })).toBe(15_000)
  })

  test('also where packets that may take longer come between', () => {
    const offset = new ClockOffset()
    take(offset, 15_000, 1 * S)
    for (let n = 1; n <= 60; n++) take(offset, 3_000_000, (1 + n / 10) * S, n % 2 === 0 ? 4 * S : 0.03 * S)
    expect(offset.least - APART).toBe(3_000_000)
  })
})

test('does not fall by more than a second for one packet, but for eight in a row', () => {
  const offset = new ClockOffset()
  take(offset, 2_000_000, 1 * S)
  for (let n = 0; n < 7; n++) expect(take(offset, 1000, 1 * S)).toBe(false)
  // One that fits begins the count anew.
  expect(take(offset, 2_000_000, 1 * S)).toBe(true)
  for (let n = 0; n < 7; n++) expect(take(offset, 1000, 1 * S)).toBe(false)
  expect(offset.least - APART).toBe(2_000_000)
  expect(take(offset, 1000, 1 * S)).toBe(true)
  expect(offset.least - APART).toBe(1000)
})

test('of another end is another one', () => {
  const offset = new ClockOffset()
  take(offset, 1000, 1 * S)
  offset.reset()
  take(offset, 900_000, 1 * S)
  expect(offset.least - APART).toBe(900_000)
})
