/** Decoding a linear code over GF(2^8) on the fly: each arriving combination is reduced at once, by the addon. */
import { native } from '../native/native.ts'

/** Where a source stands that is not known, and where one that was computed: it counts as unknown, but is not told again. */
const UNKNOWN = -1
const TOLD = -2

/** Words of the table before its lists: rows, and how many combinations went into them. */
const HEAD = 2

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
  private readonly rows: Uint8Array
  private readonly table: Int32Array
  private readonly mostColumns: number
  private readonly mostRows: number
  private columns = 0
  private capacity = 0
  private taken = 0
  // Where the lists of the table begin.
  private lengths = 0
  private combined = 0
  private combinedLengths = 0
  private seeds = 0
  private covered = 0

  /** Room for systems of up to that many sources and combinations, at most 255 each. */
  constructor(columns: number, capacity: number) {
    this.mostColumns = columns
    this.mostRows = capacity
    this.rows = new Uint8Array(capacity * (columns + capacity))
    this.table = new Int32Array(HEAD + 2 * columns + 5 * capacity)
    this.found = new Int32Array(columns)
    this.begin(columns, capacity)
  }

  /** Forgets everything. The system has now `columns` sources and room for `capacity` combinations. Throws when that is too many. */
  begin(columns: number, capacity: number): void {
    if (columns > this.mostColumns || capacity > this.mostRows) {
      throw new RangeError(
        `${columns} × ${capacity} is more than the ${this.mostColumns} × ${this.mostRows} there is room for`,
      )
    }
    this.columns = columns
    this.capacity = capacity
    this.lengths = HEAD + columns
    this.combined = this.lengths + columns
    this.combinedLengths = this.combined + capacity
    this.seeds = this.combinedLengths + capacity
    this.covered = this.seeds + capacity
    this.taken = 0
    this.table[0] = 0
    this.table[1] = 0
    this.table.fill(UNKNOWN, HEAD, HEAD + columns)
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
    const { columns, capacity, found } = this
    return native.gfSolve(memory, this.rows, this.table, columns, capacity, this.taken, targets, room, bytes, found)
  }
}
