/** Seeds of runs at the same time. */
import { expect, test } from 'vitest'
import { seedOfRun } from './random.ts'

test('runs at the same time have seeds of their own, which neighbouring seeds do not give', () => {
  const seeds = Array.from({ length: 1_000 }, (_, seed) => Array.from({ length: 8 }, (_, i) => seedOfRun(seed, i)))
  expect(seeds.map(([first]) => first)).toEqual(seeds.map((_, seed) => seed))
  const all = seeds.flat()
  expect(new Set(all).size).toBe(all.length)
  expect(all.every((seed) => Number.isInteger(seed) && seed >= 0 && seed < 2 ** 31)).toBe(true)
  const greatest = seedOfRun(2 ** 31 - 1, 7)
  expect(greatest >= 0 && greatest < 2 ** 31).toBe(true)
})
