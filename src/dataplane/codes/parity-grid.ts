/**
 * The two-dimensional parity code as bookkeeping: sources stand in rows and columns, and the parity of a row or column gives back the
 * one source of it that is missing, which may leave one missing in a line that it crosses (iterative decoding of a product code, Elias 1954).
 */

/** What `lastOf` says of a line in which not exactly one source is missing. */
export const NOT_ONE = -1

/**
 * Source i is in row ⌊i / columns⌋ and column i mod columns. Lines are numbered: the rows first, then the columns. It knows which
 * sources are missing, not what they are.
 */
export class ParityGrid {
  readonly columns: number
  readonly rows: number
  /** Sources missing of each line, and of all. */
  readonly missing: Uint8Array
  total = 0
  /** Of each line, the positions in it of what is missing, by exclusive or: with one missing, its own. */
  private readonly positions: Uint8Array

  /** 2 to 64 of both. Everything is missing. */
  constructor(columns: number, rows: number) {
    this.columns = columns
    this.rows = rows
    this.missing = new Uint8Array(rows + columns)
    this.positions = new Uint8Array(rows + columns)
    this.begin()
  }

  /** Everything is missing again. */
  begin(): void {
    const { columns, rows, missing, positions } = this
    let [all, down] = [0, 0]
    for (let c = 0; c < columns; c++) all ^= c
    for (let r = 0; r < rows; r++) down ^= r
    missing.fill(columns, 0, rows)
    missing.fill(rows, rows)
    positions.fill(all, 0, rows)
    positions.fill(down, rows)
    this.total = rows * columns
  }

  rowOf(source: number): number {
    return Math.floor(source / this.columns)
  }

  columnOf(source: number): number {
    return this.rows + (source % this.columns)
  }

  /** The line that crosses `line` in `source`. */
  crossing(line: number, source: number): number {
    return line < this.rows ? this.columnOf(source) : this.rowOf(source)
  }

  /** A source is there, or there is none at its place: it is missing no longer. It was until now. */
  fill(source: number): void {
    const { missing, positions, rows } = this
    const row = this.rowOf(source)
    const column = this.columnOf(source)
    missing[row]--
    missing[column]--
    positions[row] ^= column - rows
    positions[column] ^= row
    this.total--
  }

  /** The source that is missing in a line when it is the only one, else NOT_ONE. */
  lastOf(line: number): number {
    if (this.missing[line] !== 1) return NOT_ONE
    const { rows, columns, positions } = this
    return line < rows ? line * columns + positions[line] : positions[line] * columns + line - rows
  }
}
