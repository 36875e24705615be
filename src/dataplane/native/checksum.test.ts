/** The sum of the Internet's checksums: the example of RFC 1071, and every width of vectors against a plain loop. */
import { expect, it } from 'vitest'
import { pattern } from './fixture.ts'
import { native } from './native.ts'

const WIDTHS = [1, 32, 64]
const NONE = new Uint8Array(0)

/** Word by word, in memory order of a little-endian machine. */
function plainSum(bytes: Uint8Array): number {
  let total = 0
  for (let at = 0; at < bytes.length; at += 2) total += bytes[at] | ((bytes[at + 1] ?? 0) << 8)
  while (total > 0xffff) total = (total & 0xffff) + (total >>> 16)
  return total
}

it.each(WIDTHS)('vectors of %i bytes give the sum of RFC 1071, section 3', (widest) => {
  const sum = native.onesSumOf(Uint8Array.of(0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7), widest, NONE)
  expect(((sum & 0xff) << 8) | (sum >> 8)).toBe(0xddf2)
})

it.each(WIDTHS)('vectors of %i bytes sum up any length at any place', (widest) => {
  const bytes = pattern(70_000, 7)
  const ones = new Uint8Array(66_000).fill(255)
  const lengths = [...Array.from({ length: 300 }, (_, length) => length), 1368, 1500, 9000, 65_535]
  for (const length of lengths) {
    for (const at of [0, 1, 7, 32]) {
      const part = bytes.subarray(at, at + length)
      expect(native.onesSumOf(part, widest, NONE), `${length} bytes at ${at}`).toBe(plainSum(part))
    }
    expect(native.onesSumOf(ones.subarray(0, length), widest, NONE), `${length} ones`).toBe(
      plainSum(ones.subarray(0, length)),
    )
  }
})

it.each(WIDTHS)('vectors of %i bytes copy what they sum up, and nothing beside it', (widest) => {
  const bytes = pattern(9100, 7)
  for (const length of [1, 2, 3, 7, 8, 9, 31, 32, 63, 64, 65, 100, 1367, 1368, 9000]) {
    for (const at of [0, 1, 7, 32]) {
      const part = bytes.subarray(at, at + length)
      const around = new Uint8Array(length + 128).fill(0xaa)
      const to = around.subarray(64 - at, 64 - at + length)
      expect(native.onesSumOf(part, widest, to), `${length} bytes at ${at}`).toBe(plainSum(part))
      expect(Buffer.compare(to, part), `${length} bytes at ${at}`).toBe(0)
      to.fill(0xaa)
      expect(
        around.every((byte) => byte === 0xaa),
        `${length} bytes at ${at}`,
      ).toBe(true)
    }
  }
})

it('a copy takes as many bytes as there are', () => {
  expect(() => native.onesSumOf(new Uint8Array(8), 64, new Uint8Array(7))).toThrow(/to and bytes differ in length/)
})
