/** Pointers as RFC 6901, section 5, writes them, and back. */
import { expect, test } from 'vitest'
import { below, pointerOf, tokensOf } from './pointer.ts'

test.each([
  ['', []],
  ['/foo/0', ['foo', '0']],
  ['/', ['']],
  ['/a~1b', ['a/b']],
  ['/c%d', ['c%d']],
  ['/ ', [' ']],
  ['/m~0n', ['m~n']],
  ['/~01', ['~1']],
  ['/a~1b/~0~1', ['a/b', '~/']],
])('%j', (pointer, tokens) => {
  expect(pointerOf(tokens)).toBe(pointer)
  expect(tokensOf(pointer)).toEqual(tokens)
})

test('a step of a list is a number', () => {
  expect(below('/list', 3)).toBe('/list/3')
  expect(pointerOf(['a', 0])).toBe('/a/0')
})
