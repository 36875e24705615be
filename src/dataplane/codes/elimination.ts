/** Decoding a linear code over GF(2^8) on the fly: each arriving combination is reduced at once, by the addon. */
import { native } from '../native/native.ts'

/** Where a source stands that is not known, and where one that was computed: it counts as unknown, but is not told again. */
const UNKNOWN = -1
const TOLD = -2

/** Words of the table before its lists, as `native.gfSolve` has them: its size, the system's, what has come of it, what is asked. */
const MOST_COLUMNS = 0
const MOST_ROWS = 1
const COLUMNS = 2
const TAKEN = 3
const ROWS = 4
const DONE = 5
const ROOM = 6
const BYTES = 7
const HEAD = 8

/**
 * One system of equations: `columns` sources, and up to `capacity` combinations of them that arrived (repair symbols). It knows no
 * packets: symbols lie anywhere in a slab that was registered with `native.memoryOpen`, and are named by the place of their first byte
 * there. They stay the caller's, who leaves them where they are until `begin` is called again. Nothing is copied: a row holds, of
 * what it is the sum, coefficients of known sources and of combinations, and only a source that has become known costs work on symbols,
 * one product over all that have. A combination may be any: what is made of combinations is one too.
 *
 * Shorter symbols count as padded with zeros. With sources numbered on and on a column is the number modulo `columns`; whoever drops the
 * oldest begins anew, from the combinations that still hold.
 */
export class Elimination {
  /** Sources that `solve` found, in the order of its targets. */
  readonly found: Int32Array
  private readonly table: Int32Array
  private readonly mostColumns: number
  private readonly mostRows: number
  private taken = 0
  // Where the lists of the table begin.
  private readonly lengths: number
  private readonly targets: number
  private readonly combined: number
  private readonly combinedLengths: number
  private readonly seeds: number
  private readonly covered: number

  /** Room for systems of up to that many sources and combinations, at most 255 each. */
  constructor(columns: number, capacity: number) {
    this.mostColumns = columns
    this.mostRows = capacity
    this.lengths = HEAD + columns
    const found = this.lengths + columns
    this.targets = found + columns
    this.combined = this.targets + columns
    this.combinedLengths = this.combined + capacity
    this.seeds = this.combinedLengths + capacity
    this.covered = this.seeds + capacity
    const rows = this.covered + 2 * capacity
    const stride = (columns + capacity + 63) & ~63
    this.table = new Int32Array(rows + (capacity * stride) / 4)
    this.table[MOST_COLUMNS] = columns
    this.table[MOST_ROWS] = capacity
    this.found = this.table.subarray(found, this.targets)
    this.begin(columns, capacity)
  }

  /** Forgets everything. The system has now `columns` sources and room for `capacity` combinations. Throws when that is too many. */
  begin(columns: number, capacity: number): void {
    if (columns > this.mostColumns || capacity > this.mostRows) {
      throw new RangeError(
        `${columns} × ${capacity} is more than the ${this.mostColumns} × ${this.mostRows} there is room for`,
      )
    }
    const { table } = this
    table[COLUMNS] = columns
    table[ROWS] = 0
    table[DONE] = 0
    this.taken = 0
    for (let i = HEAD; i < HEAD + columns; i++) table[i] = UNKNOWN
  }

  /** The source of a column is known: its symbol of `bytes` bytes lies at `place`, from now on. */
  know(column: number, place: number, bytes: number): void {
    this.table[HEAD + column] = place
    this.table[this.lengths + column] = bytes
  }

  /** The caller has had the source of a column, but its symbol is not at hand: it counts as unknown, and is not told. */
  pass(column: number): void {
    this.table[HEAD + column] = TOLD
  }

  /**
   * A combination has arrived: its symbol of `bytes` bytes lies at `place`, and it is the sum of the sources in columns 0 to covered - 1,
   * each times a byte of the stream of `seed`, as `native.gfRandomMultiply` has it. There is room for it.
   */
  take(seed: number, covered: number, place: number, bytes: number): void {
    const n = this.taken++
    this.table[this.seeds + n] = seed
    this.table[this.covered + n] = covered
    this.table[this.combined + n] = place
    this.table[this.combinedLengths + n] = bytes
  }

  /**
   * Reduces what was taken since the last call. Returns how many sources follow from what there is that were not known or told before;
   * `found` names the first `room` of them. When there are no more than `room`, their symbols of `bytes` bytes are written to
   * `targets[0..)`, places in the slab of `memory`, and they count as told. Call it with `room` 0 to know how many there are.
   */
  solve(memory: number, targets: Int32Array, room: number, bytes: number): number {
    const { table } = this
    table[TAKEN] = this.taken
    table[ROOM] = room
    table[BYTES] = bytes
    for (let n = 0; n < room; n++) table[this.targets + n] = targets[n]
    return native.gfSolve(memory, table)
  }
}
