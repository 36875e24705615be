import { expect, test } from 'vitest'
import { asBefore, asShown, hasBreaks } from './line-breaks.ts'

test.each([
  ['one', false, 'one'],
  ['one\ntwo\n', true, 'one\ntwo\n'],
  ['one\r\ntwo\r\n', true, 'one\ntwo\n'],
  ['one\rtwo', true, 'one\ntwo'],
])('%j is shown, and comes back as it was', (text, isLong, shown) => {
  expect(hasBreaks(text)).toBe(isLong)
  expect(asShown(text)).toBe(shown)
  expect(asBefore(shown, text)).toBe(text)
})

test('what is typed has the line breaks of the text before', () => {
  expect(asBefore('a\nb\nc', 'a\r\nb')).toBe('a\r\nb\r\nc')
  expect(asBefore('a\nb', 'a')).toBe('a\nb')
})
