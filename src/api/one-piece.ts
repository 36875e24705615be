/** What comes in pieces, gathered in one: a client may send a request byte by byte, and a buffer for each byte would take a hundred times its length. */

export const NO_BYTES: Buffer = Buffer.alloc(0)

/** The first `length` of `bytes`, with room for `room` in all. */
export function longer(bytes: Buffer, length: number, room: number): Buffer {
  const grown = Buffer.allocUnsafe(room)
  bytes.copy(grown, 0, 0, length)
  return grown
}
