/** Tables with names of every width: what stands in a column begins in the same place of the terminal in every row. */
import { expect, test } from 'vitest'
import { fitted, harmless, number, scaled, table } from './terminal.ts'

const COLUMNS = [{ title: 'NAME' }, { title: 'STATE' }, { title: 'NOTE', wrap: true }]

test('names of wide characters, emoji and combining marks leave the columns in line', () => {
  const names = ['north', '北京', '👩‍💻 lab', '🇨🇭', 'cafe\u0301', 'ｶﾞ']
  expect(
    table(
      COLUMNS.slice(0, 2),
      names.map((name) => [name, 'up']),
    ).split('\n'),
  ).toEqual([
    'NAME    STATE',
    'north   up',
    '北京    up',
    '👩‍💻 lab  up',
    '🇨🇭      up',
    'cafe\u0301    up',
    'ｶﾞ      up',
  ])
})

test('letters, signs and a space of Latin-1 take a column each', () => {
  const names = ['10\u00a0µs', 'é×½ÿ¡', '…']
  const rows = table(
    COLUMNS.slice(0, 2),
    names.map((name) => [name, 'up']),
  )
  expect(rows.split('\n')).toEqual(['NAME   STATE', '10 µs  up', 'é×½ÿ¡  up', '…      up'])
})

test('a cell is cut between characters, and by the columns they take', () => {
  const cell = (name: string, width: number) => table([{ title: '' }], [[name]], width)
  expect(cell('北京上海广州', 8)).toBe('北京上…')
  expect(cell('👩‍💻👩‍💻👩‍💻👩‍💻👩‍💻', 9)).toBe('👩‍💻👩‍💻👩‍💻👩‍💻…')
  expect(cell('e\u0301'.repeat(12), 10)).toBe(`${'e\u0301'.repeat(9)}…`)
  expect(cell('北京上海', 8)).toBe('北京上海')
})

test('a long word wraps between characters, and by the columns they take', () => {
  const note = '北京'.repeat(13)
  const wide = table([{ title: '', wrap: true }], [[note]], 25)
  expect(wide.split('\n')).toEqual(['北京'.repeat(6), '北京'.repeat(6), '北京'])
  expect(table([{ title: '', wrap: true }], [['👩‍💻'.repeat(13)]], 24).split('\n')).toEqual(['👩‍💻'.repeat(12), '👩‍💻'])
})

test('a table keeps to the width: wraps what may wrap, cuts what may not', () => {
  const columns = [{ title: 'KEY' }, { title: 'TEXT', wrap: true }]
  const rows = [['a', 'one two three four five six seven eight nine ten']]
  for (const width of [40, 30, 20]) {
    const lines = table(columns, rows, width).split('\n')
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width)
  }
  expect(table([{ title: 'N', align: 'right' }], [['1'], ['22']])).toBe(' N\n 1\n22')
  expect(table([{ title: 'KEY' }], [['abcdefghijkl']], 9)).toBe('KEY\nabcdefgh…')
})

test('spare columns are left out from the last on, as long as the rest would not be readable', () => {
  const spare = { spare: true } as const
  const columns = [
    { title: 'ID', whole: true },
    { title: 'NAME' },
    { title: 'RUN', whole: true, ...spare },
    { title: 'CPU', ...spare },
  ]
  const rows = [['i'.repeat(20), 'a name', 'r'.repeat(20), '1']]
  const titles = (width: number) => table(columns, rows, width).split('\n')[0]?.trim().split(/ +/)
  expect(titles(100)).toEqual(['ID', 'NAME', 'RUN', 'CPU'])
  expect(titles(55)).toEqual(['ID', 'NAME', 'RUN', 'CPU'])
  expect(titles(54)).toEqual(['ID', 'NAME', 'RUN'])
  expect(titles(49)).toEqual(['ID', 'NAME'])
  expect(table(columns, rows, 49)).not.toContain('r'.repeat(20))
})

test('text for people is broken between words, and only where there is a width', () => {
  const text = 'one two three four\nfive'
  expect(fitted(text, 9)).toBe('one two\nthree\nfour\nfive')
  expect(fitted(text, Number.POSITIVE_INFINITY)).toBe(text)
})

test('a text from elsewhere has colours at most: nothing that hides, steers or turns the direction of writing', () => {
  expect(harmless('\x1b[31mred\x1b[39m \x1b[1mbold\x1b[22m')).toBe('\x1b[31mred\x1b[39m \x1b[1mbold\x1b[22m')
  expect(harmless('a\x1b[8mhidden\x1b[0m\x1b[7m\x07')).toBe('a\\u001b[8mhidden\\u001b[0m\\u001b[7m\\u0007')
  expect(harmless('exe\u202egnp.\u2066\u200f')).toBe('exe\\u202egnp.\\u2066\\u200f')
})

test.each([
  [1234567.8, '1,234,568'],
  [123.4567, '123.457'],
  [1.0004, '1'],
  [0.99996, '1'],
  [0.5, '0.5'],
  [0.1 + 0.2, '0.3'],
  [0.00034999, '0.00035'],
  [0.00012345, '0.000123'],
  [-0.0000015, '-0.0000015'],
  [1e-7, '1e-7'],
  [0, '0'],
  [-0, '0'],
])('%d is written %s', (value, text) => {
  expect(number(value)).toBe(text)
})

test.each([
  [0, '0'],
  [12.345, '12.3'],
  [99.97, '100'],
  [9999, '9999'],
  [999_499, '999 k'],
  [999_800, '1.00 M'],
  [-999_800, '-1.00 M'],
  [1_250_000, '1.25 M'],
  [999_600_000, '1.00 G'],
  [999_700_000_000, '1.00 T'],
  [1.5e12, '1.50 T'],
  [2.5e15, '2.50 P'],
])('%d is %s with a prefix', (value, text) => {
  expect(scaled(value)).toBe(text)
})
