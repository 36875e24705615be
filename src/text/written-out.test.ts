/** What is written out of a text that somebody else wrote, and what is not. */
import { expect, test } from 'vitest'
import { writtenOut } from './written-out.ts'

test('controls, line ends, turns of direction, fillers and marks without a width are written out', () => {
  for (const hidden of '\0\t\n\r\x1b\x7f\x85\x9b\u00ad\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202e\u2060\u2066\ufeff\ufffe\uffff\u034f\u115f\u3164\uffa0') {
    const code = hidden.charCodeAt(0).toString(16).padStart(4, '0')
    expect(writtenOut(`a${hidden}b`)).toBe(`a\\u${code}b`)
  }
  expect(writtenOut('a\u{e0041}')).toBe('a\\udb40\\udc41')
  expect(JSON.parse(`"${writtenOut('\x1b\u{e0041}')}"`)).toBe('\x1b\u{e0041}')
})

test('what is seen stays, and what is to be kept', () => {
  const seen = 'näme 北京 👩\u200d💻 می\u200cخواهم ❤\ufe0f 葛\u{e0100} "\\ \u00a0'
  expect(writtenOut(seen)).toBe(seen)
  expect(writtenOut('a\n\tb\r', '\n\t')).toBe('a\n\tb\\u000d')
})
