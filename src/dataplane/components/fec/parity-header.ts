/** The header of a parity_2d block's packets, as docs/wire-formats.md draws it. */

/** Before the protected symbol, which begins with the two bytes of its payload's length. */
export const PARITY_SYMBOL_AT = 14
/** With the length. */
export const PARITY_HEADER_BYTES = 16

export const GRID_SOURCE = 0xb6
export const ROW_PARITY = 0xb7
export const COLUMN_PARITY = 0xb8

/** Fewest and most columns and rows of a block. */
export const MIN_GRID = 2
export const MAX_GRID = 64

/**
 * Writes the bytes before the symbol at `at`. `line`: which row or column a parity is of, 0 in a source; `count`: a source's index, in a
 * parity how many sources its block has so far.
 */
export function writeParityHeader(
  view: DataView,
  at: number,
  kind: number,
  columns: number,
  rows: number,
  line: number,
  session: number,
  block: number,
  count: number,
): void {
  view.setInt32(at, (kind << 24) | (columns << 16) | (rows << 8) | line)
  view.setInt32(at + 4, session << 8)
  view.setInt32(at + 8, block)
  view.setUint16(at + 12, count)
}

/** What the header of a packet says. */
export class ParityHeader {
  isSource = false
  columns = 0
  rows = 0
  /** Of a parity, counted as `ParityGrid` does. */
  line = 0
  session = 0
  block = 0
  count = 0

  /** Reads the header at `at` of a packet of `bytes` bytes. False: it is none, or cannot have been sent. */
  read(view: DataView, at: number, bytes: number): boolean {
    if (bytes < PARITY_HEADER_BYTES) return false
    const shape = view.getInt32(at)
    const kind = shape >>> 24
    const columns = (shape >>> 16) & 255
    const rows = (shape >>> 8) & 255
    const line = shape & 255
    const sender = view.getInt32(at + 4)
    const count = view.getUint16(at + 12)
    if (columns < MIN_GRID || columns > MAX_GRID || rows < MIN_GRID || rows > MAX_GRID || (sender & 255) !== 0)
      return false
    this.isSource = kind === GRID_SOURCE
    this.columns = columns
    this.rows = rows
    this.session = sender >>> 8
    this.block = view.getInt32(at + 8)
    this.count = count
    if (this.isSource) {
      return (
        line === 0 && count < columns * rows && view.getUint16(at + PARITY_SYMBOL_AT) === bytes - PARITY_HEADER_BYTES
      )
    }
    if (kind === ROW_PARITY) {
      this.line = line
      return line < rows && count > line * columns && count <= (line + 1) * columns
    }
    this.line = rows + line
    return kind === COLUMN_PARITY && line < columns && count > line && count <= columns * rows
  }
}
