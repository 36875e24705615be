/** Linear combinations over GF(2^8) as mathematics: one symbol at a time, and what follows from which. */
import { inverse, multiply, multiplyAdd } from './gf256.ts'

/** The sum of `sources`, each times its coefficient; as long as the longest of them, shorter ones count as padded with zeros. */
export function combine(sources: readonly Uint8Array[], row: Uint8Array): Uint8Array<ArrayBuffer> {
  const symbol = new Uint8Array(Math.max(0, ...sources.map(({ length }) => length)))
  sources.forEach((source, i) => {
    multiplyAdd(symbol, 0, source, 0, source.length, row[i])
  })
  return symbol
}

/**
 * Which of the sources `unknowns` follow from combinations of them and of known ones: `rows` has the coefficients of each combination, of
 * all sources. In ascending order.
 */
export function determined(rows: readonly Uint8Array[], unknowns: readonly number[]): number[] {
  const matrix = rows.map((row) => unknowns.map((i) => row[i] ?? 0))
  let rank = 0
  for (let column = 0; column < unknowns.length; column++) {
    const pivot = matrix.findIndex((row, n) => n >= rank && row[column] !== 0)
    if (pivot < 0) continue
    const row = matrix[pivot].map((value) => multiply(value, inverse(matrix[pivot][column])))
    matrix[pivot] = matrix[rank]
    matrix[rank] = row
    for (let n = 0; n < matrix.length; n++) {
      const factor = matrix[n][column]
      if (n !== rank && factor !== 0) matrix[n] = matrix[n].map((value, c) => value ^ multiply(factor, row[c]))
    }
    rank++
  }
  const clean = matrix.filter((row) => row.filter((value) => value !== 0).length === 1)
  return clean.map((row) => unknowns[row.findIndex((value) => value !== 0)]).sort((a, b) => a - b)
}
