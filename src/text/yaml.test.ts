/** What is written as YAML, read by the rules of versions 1.2 and 1.1. */

import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { yamlOf } from './yaml.ts'

// Of the types of YAML 1.1: https://yaml.org/type.
const BOOLEANS = ['y', 'N', 'yes', 'NO', 'on', 'Off', 'true']
const NUMBERS = ['0777', '0o14', '0b11', '0x1f', '1_000', '1:30', '12:30:45.5', '+1', '.5', '1e3', '.inf', '.NaN']
const DATES = ['2026-01-01', '2026-1-1 10:00:00', '2026-01-01T10:00:00Z']
const OTHERS = ['~', 'null', '', '=', '<<', '-', '?', '@a', '%a', 'a: b', '#']

test.each([...BOOLEANS, ...NUMBERS, ...DATES, ...OTHERS])(
  'the string %j stays one, as a value and as a key',
  (text) => {
    const value = { [text]: text, list: [text] }
    const written = yamlOf(value)
    for (const version of ['1.2', '1.1'] as const) expect(parse(written, { version })).toEqual(value)
  },
)

test.each(['=', '<<'])('%s is quoted: readers of YAML 1.1 take it for part of a map', (text) => {
  expect(yamlOf([text])).toBe(`- "${text}"\n`)
})

test.each([
  '\u202eabc',
  'soft\u00adhyphen',
  'a\u2028b',
  '\ufeffx',
  'c1 \u009b31m',
  'a flag \u{1f3f4}\u{e0067}\u{e007f}',
  // Not of those that YAML takes unescaped (1.2.2, section 5.1).
  'no\ufffe characters\uffff',
])('of %j what is not seen is escaped, and read as it was', (text) => {
  const value = { [text]: `${text}\nand more` }
  const written = yamlOf(value)
  expect(written).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\ufffe\uffff]/u)
  expect(parse(written)).toEqual(value)
})

test.each([' \n', '  \n\n', ' #\n', '\n #', ' a\nb', '\t\n', 'a\tb', 'a\n\tb\n\n'])(
  'the text %j is read as it was, at any depth',
  (text) => {
    for (const value of [text, { key: text }, [{ key: [text] }]]) expect(parse(yamlOf(value))).toEqual(value)
  },
)

// PyYAML refuses the whole text for one of them.
test.each([
  ['a\tb', '"a\\tb"'],
  ['\ufffe', '"\\ufffe"'],
  ['a\uffff', '"a\\uffff"'],
])('%j is written %s', (text, quoted) => {
  expect(yamlOf({ [text]: text })).toBe(`${quoted}: ${quoted}\n`)
})

test.each([
  [1e-7, '1.0e-7'],
  [-3e-9, '-3.0e-9'],
  [1e21, '1.0e+21'],
  [1.5e-7, '1.5e-7'],
  [0.001, '0.001'],
])('the number %d is written %s, which readers of YAML 1.1 take for a number too', (number, text) => {
  expect(yamlOf([number])).toBe(`- ${text}\n`)
  for (const version of ['1.2', '1.1'] as const) expect(parse(yamlOf([number]), { version })).toEqual([number])
})

test('what needs no quotes has none', () => {
  expect(yamlOf({ name: 'edge', rack: 4, long: 'word '.repeat(40).trim() })).toBe(
    `name: edge\nrack: 4\nlong: ${'word '.repeat(40).trim()}\n`,
  )
})
