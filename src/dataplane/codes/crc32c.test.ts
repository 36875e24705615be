/** CRC-32C against the vectors of RFC 3720 and bit by bit. */
import { expect, test } from 'vitest'
import { Random } from '../engine/random.ts'
import { crc32c } from './crc32c.ts'

const bytes = (make: (i: number) => number, length = 32) => Uint8Array.from({ length }, (_, i) => make(i))

test.each([
  ['32 zeros', bytes(() => 0), 0x8a9136aa],
  ['32 ones', bytes(() => 255), 0x62a8ab43],
  ['32 rising', bytes((i) => i), 0x46dd794e],
  ['32 falling', bytes((i) => 31 - i), 0x113fdb5c],
  ['the check string', new TextEncoder().encode('123456789'), 0xe3069283],
  ['nothing', new Uint8Array(0), 0],
])('%s (RFC 3720 B.4)', (_name, data, expected) => {
  expect(crc32c(data, 0, data.length)).toBe(expected)
})

test('every length and alignment agrees with the division bit by bit', () => {
  const random = new Random(1)
  const data = new Uint8Array(80)
  random.fill(data, 0, data.length)
  for (let from = 0; from < 9; from++) {
    for (let to = from; to <= data.length; to++) {
      let state = 0xffffffff
      for (let at = from; at < to; at++) {
        state ^= data[at]
        for (let bit = 0; bit < 8; bit++) state = (state >>> 1) ^ (state & 1 ? 0x82f63b78 : 0)
      }
      expect(crc32c(data, from, to)).toBe(~state >>> 0)
    }
  }
})
