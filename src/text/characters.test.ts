import { expect, test } from 'vitest'
import { cutAt, isLonger } from './characters.ts'

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

test.each([
  ['abc', 3, 3],
  ['abcd', 3, 3],
  ['a😀', 3, 3],
  ['a😀b', 2, 1],
  ['a😀b', 3, 3],
])('%j, cut to %d places at most: %d', (text, most, at) => {
  expect(cutAt(text, most)).toBe(at)
})
