import { expect, test } from 'vitest'
import { EngineClock } from './engine-clock.ts'

const HOUR = 3_600_000

test('nothing is known before the first stamp; then what it said is carried on', () => {
  const clock = new EngineClock()
  expect(clock.at(5)).toBe(0)
  clock.take(HOUR + 1_000, 990, 1_010)
  expect(clock.at(1_010)).toBe(HOUR + 1_000)
  expect(clock.at(2_010)).toBe(HOUR + 2_000)
})

test('a stamp that comes late does not put it back, one that comes sooner than those before puts it forward', () => {
  const clock = new EngineClock()
  clock.take(HOUR + 1_000, 990, 1_010)
  clock.take(HOUR + 2_000, 1_990, 5_000)
  expect(clock.at(5_000)).toBe(HOUR + 4_990)
  clock.take(HOUR + 6_000, 5_990, 6_003)
  expect(clock.at(6_003)).toBe(HOUR + 6_000)
})

test('an engine whose clock was set is followed, in both directions', () => {
  const clock = new EngineClock()
  clock.take(HOUR + 1_000, 990, 1_010)
  clock.take(2_000, 1_995, 2_005)
  expect(clock.at(2_005)).toBe(2_011)
  clock.take(HOUR + 3_000, 2_995, 3_005)
  expect(clock.at(3_005)).toBe(HOUR + 3_000)
})
