/** CRC-32C (Castagnoli; RFC 3720 appendix B.4) in JavaScript, eight bytes a step (slicing-by-8, Kounavis and Berry 2005). */

/** 0x1EDC6F41, bits reversed. */
const POLYNOMIAL = 0x82f63b78
const tables = new Int32Array(8 * 256)

for (let byte = 0; byte < 256; byte++) {
  let remainder = byte
  for (let bit = 0; bit < 8; bit++) remainder = (remainder >>> 1) ^ (remainder & 1 ? POLYNOMIAL : 0)
  tables[byte] = remainder
}
for (let at = 256; at < tables.length; at++) {
  const before = tables[at - 256]
  tables[at] = (before >>> 8) ^ tables[before & 255]
}

/** CRC-32C of `data[from..to)` as an unsigned number, initial and final inversion included. */
export function crc32c(data: Uint8Array, from: number, to: number): number {
  let state = -1
  let at = from
  for (const last = to - 8; at <= last; at += 8) {
    const low = state ^ (data[at] | (data[at + 1] << 8) | (data[at + 2] << 16) | (data[at + 3] << 24))
    state =
      tables[1792 + (low & 255)] ^
      tables[1536 + ((low >>> 8) & 255)] ^
      tables[1280 + ((low >>> 16) & 255)] ^
      tables[1024 + (low >>> 24)] ^
      tables[768 + data[at + 4]] ^
      tables[512 + data[at + 5]] ^
      tables[256 + data[at + 6]] ^
      tables[data[at + 7]]
  }
  for (; at < to; at++) state = (state >>> 8) ^ tables[(state ^ data[at]) & 255]
  return ~state >>> 0
}
