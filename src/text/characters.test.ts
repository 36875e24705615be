import { expect, test } from 'vitest'
import { isLonger } from './characters.ts'

test.each([
  ['', 0, false],
  ['a', 0, true],
  ['ab', 2, false],
  ['abc', 2, true],
  ['😀😀', 2, false],
  ['😀😀a', 2, true],
  ['😀'.repeat(256), 256, false],
  ['😀'.repeat(257), 256, true],
  // Half of a pair counts as one.
  ['\ud83d\ud83d', 2, false],
])('%j, %d at most: %j', (text, most, longer) => {
  expect(isLonger(text, most)).toBe(longer)
})
