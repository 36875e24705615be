/** Sizes as text. */
import { expect, test } from 'vitest'
import { readSize, writeSize } from './sizes.ts'

test.each([
  ['0', 0],
  ['65536', 65_536],
  ['512KiB', 524_288],
  ['1.5MiB', 1_572_864],
  ['1GiB', 2 ** 30],
  ['', undefined],
  ['4mb', undefined],
  ['4 MiB', undefined],
  ['-1', undefined],
  ['1e3', undefined],
])('%j is %s bytes', (text, bytes) => {
  expect(readSize(text)).toBe(bytes)
})

test.each([
  [0, '0'],
  [1000, '1000'],
  [2 ** 20, '1MiB'],
  [1536 * 1024, '1536KiB'],
])('%s bytes are %s', (bytes, text) => {
  expect(writeSize(bytes)).toBe(text)
  expect(readSize(text)).toBe(bytes)
})
