/**
 * The systematic Cauchy code: repair j of a block is the sum of its sources i, each times 1 / (x_j + y_i).
 *
 * The points are y_i = i and x_j = 255 - j, so they are distinct while k + r ≤ 255 and a coefficient depends on neither k nor r:
 * a block may end early, sources that it does not have count as zero. Every square submatrix of a Cauchy matrix has
 * an inverse, so any k symbols of k + r give the others (Blömer et al., An XOR-Based Erasure-Resilient Coding Scheme, 1995).
 */
import { EXP, inverse, LOG } from './gf256.ts'

/** Most symbols of a block, sources and repairs together. */
export const MAX_SYMBOLS = 255

/** The point of repair symbol `j`; that of source symbol i is i itself. */
export function repairPoint(j: number): number {
  return 255 - j
}

/** r rows of k coefficients. */
export function cauchyMatrix(k: number, r: number): Uint8Array<ArrayBuffer> {
  const matrix = new Uint8Array(k * r)
  for (let j = 0; j < r; j++) {
    for (let i = 0; i < k; i++) matrix[j * k + i] = inverse(repairPoint(j) ^ i)
  }
  return matrix
}

/**
 * Writes the matrix that turns the k symbols at hand into the `erasures` missing sources: `erasures` rows of k coefficients.
 *
 * `points[0..k)` are the points of the symbols at hand, the k - erasures sources first, then as many repairs as there are
 * erasures; `missing[0..erasures)` are the indices of the missing sources.
 *
 * Where the sources are the values g(y) of a rational function with its poles at the missing points, residues give each
 * coefficient in closed form, so no elimination is needed: with Y the missing points and X those of the repairs,
 * D[m][z] = a(z) b(m) / (m + z), a(z) = Π_{y∈Y} (z + y) / Π_{x∈X, x≠z} (z + x), b(m) = Π_{x∈X} (m + x) / Π_{y∈Y, y≠m} (m + y).
 */
export function decodingMatrix(
  points: Uint8Array,
  k: number,
  missing: Uint8Array,
  erasures: number,
  out: Uint8Array,
): void {
  const firstRepair = k - erasures
  for (let m = 0; m < erasures; m++) {
    const y = missing[m]
    let b = 0
    for (let j = firstRepair; j < k; j++) b += LOG[y ^ points[j]]
    for (let n = 0; n < erasures; n++) if (n !== m) b += 255 - LOG[y ^ missing[n]]
    const row = m * k
    b %= 255
    for (let c = 0; c < k; c++) out[row + c] = EXP[b + 255 - LOG[y ^ points[c]]]
  }
  for (let c = 0; c < k; c++) {
    const z = points[c]
    let a = 0
    for (let m = 0; m < erasures; m++) a += LOG[z ^ missing[m]]
    for (let j = firstRepair; j < k; j++) if (j !== c) a += 255 - LOG[z ^ points[j]]
    a %= 255
    for (let m = 0; m < erasures; m++) out[m * k + c] = EXP[a + LOG[out[m * k + c]]]
  }
}

/** The most sources that a block can miss, each replaced by a repair. */
const MAX_ERASURES = MAX_SYMBOLS >> 1
/** A key: k, the erasures, and of each the missing source and the point of the repair that replaces it. */
const KEY_BYTES = 2 + 2 * MAX_ERASURES

/** Patterns of one hash value that are kept side by side, where there are as many entries. */
const WAYS = 4

/** Decoding matrices by erasure pattern: as many as `entries` (a power of two), the newest of those of one hash value. */
export class DecodingMatrices {
  private readonly ways: number
  private readonly keys: Uint8Array
  private readonly matrices: Uint8Array[]
  /** Of each hash value, how many it has had. */
  private readonly had: Uint8Array

  constructor(entries = 256) {
    this.ways = Math.min(WAYS, entries)
    this.had = new Uint8Array(entries / this.ways)
    this.keys = new Uint8Array(entries * KEY_BYTES)
    this.matrices = Array.from({ length: entries }, () => new Uint8Array(0))
  }

  /** As `decodingMatrix`; both lists in ascending order of the symbols' indices. Valid until the next call. */
  get(points: Uint8Array, k: number, missing: Uint8Array, erasures: number): Uint8Array {
    const firstRepair = k - erasures
    let hash = (k << 8) | erasures
    for (let n = 0; n < erasures; n++) {
      hash = Math.imul(hash ^ (missing[n] << 8) ^ points[firstRepair + n], 0x9e3779b1)
      hash ^= hash >>> 15
    }
    const value = hash & (this.had.length - 1)
    const first = value * this.ways
    for (let entry = first; entry < first + this.ways; entry++) {
      if (this.is(entry, points, k, missing, erasures)) return this.matrices[entry]
    }
    return this.make(first + (this.had[value]++ & (this.ways - 1)), points, k, missing, erasures)
  }

  private make(entry: number, points: Uint8Array, k: number, missing: Uint8Array, erasures: number): Uint8Array {
    if (this.matrices[entry].length < k * erasures) this.matrices[entry] = new Uint8Array(k * erasures)
    decodingMatrix(points, k, missing, erasures, this.matrices[entry])
    const { keys } = this
    let at = entry * KEY_BYTES
    keys[at++] = k
    keys[at++] = erasures
    for (let n = 0; n < erasures; n++) {
      keys[at++] = missing[n]
      keys[at++] = points[k - erasures + n]
    }
    return this.matrices[entry]
  }

  /** Whether an entry is that of this pattern: the sources at hand are those that are not missing. */
  private is(entry: number, points: Uint8Array, k: number, missing: Uint8Array, erasures: number): boolean {
    const { keys } = this
    let at = entry * KEY_BYTES
    if (keys[at++] !== k || keys[at++] !== erasures) return false
    for (let n = 0; n < erasures; n++) {
      if (keys[at++] !== missing[n] || keys[at++] !== points[k - erasures + n]) return false
    }
    return true
  }
}
