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
