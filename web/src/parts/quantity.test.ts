import { expect, test } from 'vitest'
import { exactText, quantityText } from './quantity.ts'

test.each([
  [29_651, '', '29.7 k'],
  [-5_000_000, 'bytes', '-5 MB'],
  [1.7e308, 'packets', '1.70e+299 G packets'],
  [1e308, 's', '1.00e+299 G s'],
  [-1e308, 'ns', '-1.00e+299 s'],
])('%d %s', (value, unit, text) => {
  expect(quantityText(value, unit)).toBe(text)
})

test.each([
  [123_456_789, '', '123456789'],
  ['18446744073709551615', '', '18446744073709551615'],
  [0.123456, 'probability', '0.123456'],
  [12_345, 'ms', '12345 ms'],
])('exactly %s %s', (value, unit, text) => {
  expect(exactText(value, unit)).toBe(text)
})
