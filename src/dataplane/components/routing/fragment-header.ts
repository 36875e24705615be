/** The header of a fragment: sender u16, packet u32, index u8, count u8. */

export const FRAGMENT_BYTES = 8
/** Most fragments of a packet. */
export const MAX_FRAGMENTS = 255

/** Writes a header at `at`. */
export function writeFragment(
  view: DataView,
  at: number,
  sender: number,
  packet: number,
  index: number,
  count: number,
): void {
  view.setUint16(at, sender)
  view.setUint32(at + 2, packet)
  view.setUint16(at + 6, (index << 8) | count)
}
