import { expect, test } from 'vitest'
import { lastOf, stacked } from './chart-data.ts'
import { numberText, quantityText } from './quantity.ts'

test('areas stand on those before them; what is unknown in all stays so', () => {
  const areas = stacked([
    [1, 2, undefined, undefined],
    [10, undefined, 30, undefined],
  ])
  expect(areas).toEqual([
    [1, 2, 0, undefined],
    [11, 2, 30, undefined],
  ])
})

test('the last value is the last that is known', () => {
  expect([lastOf([1, 2, undefined]), lastOf([undefined]), lastOf([])]).toEqual([2, undefined, undefined])
})

test.each([
  [0, '0'],
  [950, '950'],
  [12_345, '12.3 k'],
  [0.256, '0.26'],
  [0.001234, '0.0012'],
  [-2_500_000, '-2.5 M'],
])('%d', (value, text) => {
  expect(numberText(value)).toBe(text)
})

test.each([
  [1_500_000, 'ns', '1.5 ms'],
  [40, 'ms', '40 ms'],
  [0, 'ms', '0 ms'],
  [1_500, 'ms', '1.5 s'],
  [0.02, 'fraction', '2.00 %'],
  [12_345_678, 'bit/s', '12.3 Mbit/s'],
  [12_345, 'bytes', '12.3 kB'],
  [12_345, 'packets', '12.3 k packets'],
  [7, 'packets', '7 packets'],
  [7, '', '7'],
  [Number.NaN, 'ms', '–'],
])('%d %s', (value, unit, text) => {
  expect(quantityText(value, unit)).toBe(text)
})
