/** What raft writes on carriers, as docs/wire-formats.md draws it: one header for all packets, then what each kind has. */

export const KIND_DATA = 0xd0
export const KIND_REPAIR = 0xd1
export const KIND_REPORT = 0xd2
export const KIND_PROBE = 0xd3
export const KIND_ANSWER = 0xd4

/** Before the symbol of a data packet: the header, stream and sequence. */
export const SYMBOL_AT = 24
/** What a symbol has before the payload: how long it is without these two bytes, pieces and their check, when the packet came in. */
export const SYMBOL_HEADER_BYTES = 8
export const DATA_HEADER_BYTES = SYMBOL_AT + SYMBOL_HEADER_BYTES
/** Before the combined symbols of a repair packet: the header, stream, first sequence, key, check. */
export const REPAIR_HEADER_BYTES = 28
/** Before the blocks of a report: the header and the session reported on. */
export const REPORT_HEADER_BYTES = 20
/** Of each block of a report before its bitmap. */
export const BLOCK_HEADER_BYTES = 16
/** Of a probe and of its answer. */
export const PROBE_BYTES = 20

/** The sequence may be in the window of a repair packet: whoever receives it keeps a copy. */
export const FLAG_PROTECTED = 1
/** The sequence has been sent before. */
export const FLAG_AGAIN = 2
/** The first piece of a packet; the last one. A packet in one piece has both. */
export const PIECE_FIRST = 1
export const PIECE_LAST = 2

/** Writes the 16 bytes that every packet begins with. `number` is a carrier sequence or a token. */
export function writeHeader(
  view: DataView,
  at: number,
  kind: number,
  flags: number,
  count: number,
  session: number,
  carrier: number,
  number: number,
): void {
  view.setInt32(at, (kind << 24) | (flags << 16) | count)
  view.setInt32(at + 4, session)
  view.setInt32(at + 8, carrier)
  view.setInt32(at + 12, number)
}

/** Spread both bits of `pieces`, and each of the stream's handle, over the fourteen of the check: one wrong bit in two fields is not none. */
const PIECES_FACTOR = 0x1555
const STREAM_FACTOR = 0x9e3779b1
const CHECK_MASK = 0x3fff

/** What a symbol repeats of the header in front of it, so that none is taken for another piece, or one of another stream. */
const symbolCheck = (pieces: number, stream: number, sequence: number): number =>
  ((Math.imul(stream, STREAM_FACTOR) >>> 18) ^ sequence ^ (pieces * PIECES_FACTOR)) & CHECK_MASK

/** Writes what a symbol has before its payload of `bytes` bytes; `time` in microseconds, modulo 2^32. */
export function writeSymbolHeader(
  view: DataView,
  at: number,
  bytes: number,
  pieces: number,
  stream: number,
  sequence: number,
  time: number,
): void {
  view.setUint16(at, bytes + SYMBOL_HEADER_BYTES - 2)
  view.setUint16(at + 2, (pieces << 14) | symbolCheck(pieces, stream, sequence))
  view.setInt32(at + 4, time)
}

/** Which pieces of its packet the symbol at `at` is: PIECE_FIRST, PIECE_LAST, both or 0. */
export const piecesOf = (view: DataView, at: number): number => view.getUint8(at + 2) >>> 6

/** When the packet of the symbol at `at` came in, microseconds modulo 2^32. */
export const timeOf = (view: DataView, at: number): number => view.getInt32(at + 4)

/** Writes what a repair packet at `at` has behind its header, which has been written. */
export function writeRepair(view: DataView, at: number, stream: number, first: number, key: number): void {
  view.setInt32(at + 16, stream)
  view.setInt32(at + 20, first)
  view.setUint16(at + 24, key)
  view.setUint16(at + 26, repairCheck(view, at))
}

/** What a repair says of itself, once more: a wrong one among its numbers would make symbols that nobody sent. */
const repairCheck = (view: DataView, at: number): number =>
  (view.getInt32(at + 16) ^ view.getInt32(at + 20) ^ view.getUint16(at + 2) ^ view.getUint16(at + 24)) & 0xffff

/** Whether the symbol at `at` with `bytes` bytes says its own length, and that it is the piece `sequence` of the stream. */
export function isSymbol(view: DataView, at: number, bytes: number, stream: number, sequence: number): boolean {
  if (bytes < SYMBOL_HEADER_BYTES || view.getUint16(at) !== bytes - 2) return false
  return (view.getUint16(at + 2) & CHECK_MASK) === symbolCheck(piecesOf(view, at), stream, sequence)
}

/** Whether a packet of a carrier is one that raft may have made: its kind is known, its lengths fit. */
export function isWellFormed(view: DataView, at: number, bytes: number): boolean {
  if (bytes < PROBE_BYTES) return false
  const flags = view.getUint8(at + 1)
  switch (view.getUint8(at)) {
    case KIND_DATA:
      return (
        flags <= (FLAG_PROTECTED | FLAG_AGAIN) &&
        bytes >= DATA_HEADER_BYTES &&
        isSymbol(view, at + SYMBOL_AT, bytes - SYMBOL_AT, view.getInt32(at + 16), view.getInt32(at + 20))
      )
    case KIND_REPAIR:
      return (
        flags === 0 &&
        bytes >= REPAIR_HEADER_BYTES + SYMBOL_HEADER_BYTES &&
        view.getUint16(at + 2) > 0 &&
        view.getUint16(at + 26) === repairCheck(view, at)
      )
    case KIND_REPORT:
      return flags === 0 && blocksEnd(view, at, bytes) === bytes
    case KIND_PROBE:
    case KIND_ANSWER:
      return flags === 0 && bytes === PROBE_BYTES
    default:
      return false
  }
}

/** Bytes up to the end of the last block that a report announces; more than `bytes` when it is cut. */
function blocksEnd(view: DataView, at: number, bytes: number): number {
  let end = REPORT_HEADER_BYTES
  for (let left = view.getUint16(at + 2); left > 0; left--) {
    if (end + BLOCK_HEADER_BYTES > bytes) return bytes + 1
    end += blockBytes(view.getUint16(at + end + 12))
  }
  return end
}

/** Bytes of a block whose bitmap has `bits` bits. */
export const blockBytes = (bits: number): number => BLOCK_HEADER_BYTES + ((bits + 31) >>> 5) * 4
