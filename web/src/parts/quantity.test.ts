import { expect, test } from 'vitest'
import { exactText, perSecondText, quantityText } from './quantity.ts'

test.each([
  [29_651, '', '29.7 k'],
  [-5_000_000, 'bytes', '-5 MB'],
  [999_800, 'bytes', '1 MB'],
  [1.5e12, 'bytes', '1.5 TB'],
  [1e15, 'packets', '1 P packets'],
  [9_999, 'packets', '9999 packets'],
  [999.7, '', '1 k'],
  [999_800, 'ns', '1 ms'],
  [1.7e308, 'packets', '1.70e+293 P packets'],
  [1e308, 's', '1.00e+293 P s'],
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

test.each([
  [0, '0'],
  [0.3, '0.3'],
  [0.002, '0.0020'],
  [1.4, '1'],
  [999.7, '1000'],
  [12_345.6, '12.3 k'],
])('%d per second', (rate, text) => {
  expect(perSecondText(rate)).toBe(text)
})
