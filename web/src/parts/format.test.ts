import { expect, test } from 'vitest'
import { agoText, bitRateText, groupsOf, shareText } from './format.ts'

test.each([
  [0, '0 bit/s'],
  [999, '999 bit/s'],
  [1_000, '1.00 kbit/s'],
  [12_345_678, '12.3 Mbit/s'],
  [999.7, '1.00 kbit/s'],
  [999_800, '1.00 Mbit/s'],
  [999_400, '999 kbit/s'],
  [9_876_543_210, '9.88 Gbit/s'],
  [1.5e12, '1.50 Tbit/s'],
  [2.5e16, '25.0 Pbit/s'],
  [-5_000_000, '-5.00 Mbit/s'],
  [-250, '-250 bit/s'],
  [1.7e308, '1.70e+293 Pbit/s'],
])('%d bits per second', (bits, text) => {
  expect(bitRateText(bits)).toBe(text)
})

test.each([
  [0, '0 %'],
  [0.00001, '<0.01 %'],
  [0.025, '2.50 %'],
  [1, '100 %'],
  [-0.025, '-2.50 %'],
  [-0.00001, '>-0.01 %'],
  [1e308, '1.00e+310 %'],
  [-1e308, '-1.00e+310 %'],
])('a share of %d', (share, text) => {
  expect(shareText(share)).toBe(text)
})

test.each([
  [0, 'just now'],
  [1_000, '1 second ago'],
  [119_000, '1 minute ago'],
  [7_200_000, '2 hours ago'],
  [200_000_000, '2 days ago'],
])('%d ms ago', (ago, text) => {
  expect(agoText(1e12 - ago, 1e12)).toBe(text)
})

test('a fingerprint comes in groups of four', () => {
  expect(groupsOf('6oehbinatd')).toBe('6oeh bina td')
})
