/** The header of a Reed-Solomon block's packets, as docs/wire-formats.md draws it. */

/** Before the protected symbol, which begins with the two bytes of its payload's length. */
export const SYMBOL_AT = 12
/** With the length, which is part of the symbol. */
export const BLOCK_HEADER_BYTES = 14
export const LENGTH_BYTES = 2

export const KIND_SOURCE = 0xb0
export const KIND_REPAIR = 0xb1

/**
 * Writes the bytes before the symbol at `at`: kind, k, r, index, and the session (24 bits) with, in a repair packet, the number of
 * sources that its block has (0 in a source packet), then the block.
 */
export function writeBlockHeader(
  view: DataView,
  at: number,
  kind: number,
  k: number,
  r: number,
  index: number,
  session: number,
  closing: number,
  block: number,
): void {
  view.setInt32(at, (kind << 24) | (k << 16) | (r << 8) | index)
  view.setInt32(at + 4, (session << 8) | closing)
  view.setInt32(at + 8, block)
}
