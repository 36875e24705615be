/** The sum of the Internet's checksums: the example of RFC 1071, and every width of vectors against a plain loop. */
import { expect, it } from 'vitest'
import { pattern } from './fixture.ts'
import { native } from './native.ts'

const WIDTHS = [1, 32, 64]

/** Word by word, in memory order of a little-endian machine. */
function plainSum(bytes: Uint8Array): number {
  let total = 0
  for (let at = 0; at < bytes.length; at += 2) total += bytes[at] | ((bytes[at + 1] ?? 0) << 8)
  while (total > 0xffff) total = (total & 0xffff) + (total >>> 16)
  return total
}

it.each(WIDTHS)('vectors of %i bytes give the sum of RFC 1071, section 3', (widest) => {
  const sum = native.onesSumOf(Uint8Array.of(0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7), widest)
  expect(((sum & 0xff) << 8) | (sum >> 8)).toBe(0xddf2)
})

it.each(WIDTHS)('vectors of %i bytes sum up any length at any place', (widest) => {
  const bytes = pattern(70_000, 7)
  const ones = new Uint8Array(66_000).fill(255)
  const lengths = [...Array.from({ length: 300 }, (_, length) => length), 1368, 1500, 9000, 65_535]
  for (const length of lengths) {
    for (const at of [0, 1, 7, 32]) {
      const part = bytes.subarray(at, at + length)
      expect(native.onesSumOf(part, widest), `${length} bytes at ${at}`).toBe(plainSum(part))
    }
    expect(native.onesSumOf(ones.subarray(0, length), widest), `${length} ones`).toBe(
      plainSum(ones.subarray(0, length)),
    )
  }
})
