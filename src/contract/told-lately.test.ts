/** How often the log tells of what strangers bring about. */
import { expect, test } from 'vitest'
import { ToldLately } from './told-lately.ts'

test('of each once a minute, with how often it happened since', () => {
  let now = 5
  const told = new ToldLately(() => now)
  expect([told.happened('a'), told.happened('a'), told.happened('b'), told.happened('a')]).toEqual([
    1,
    undefined,
    1,
    undefined,
  ])
  now += 59_999
  expect(told.happened('a')).toBeUndefined()
  now += 1
  expect([told.happened('a'), told.happened('b'), told.happened('b')]).toEqual([4, 1, undefined])
})

test('of a hundred in a minute; who has been quiet makes room', () => {
  let now = 0
  const told = new ToldLately(() => now)
  const all = (from: number, count: number) => Array.from({ length: count }, (_, i) => told.happened(`${from + i}`))
  expect(all(0, 101)).toEqual([...Array(100).fill(1), undefined])
  expect(told.happened('0')).toBeUndefined()
  now = 60_001
  // Of the first there is something left to tell.
  expect(all(200, 100)).toEqual([...Array(99).fill(1), undefined])
  expect(told.happened('0')).toBe(2)
  now = 120_003
  expect(all(400, 100)).toEqual(Array(100).fill(1))
})
