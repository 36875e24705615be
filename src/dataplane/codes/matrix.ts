/** Matrices over GF(2^8), row by row in a Uint8Array. */
import { inverse, multiply } from './gf256.ts'

/** The product of `a` (rows × inner) and `b` (inner × columns). */
export function matrixProduct(
  a: Uint8Array,
  b: Uint8Array,
  rows: number,
  inner: number,
  columns: number,
): Uint8Array<ArrayBuffer> {
  const product = new Uint8Array(rows * columns)
  for (let i = 0; i < rows; i++) {
    for (let n = 0; n < inner; n++) {
      const factor = a[i * inner + n]
      if (factor === 0) continue
      for (let j = 0; j < columns; j++) product[i * columns + j] ^= multiply(factor, b[n * columns + j])
    }
  }
  return product
}

/** The inverse of a matrix of `size` rows and columns by Gauss–Jordan elimination, or null when it is singular. */
export function invertMatrix(matrix: Uint8Array, size: number): Uint8Array<ArrayBuffer> | null {
  const left = Uint8Array.from(matrix.subarray(0, size * size))
  const right = new Uint8Array(size * size)
  for (let i = 0; i < size; i++) right[i * size + i] = 1
  for (let column = 0; column < size; column++) {
    let pivot = column
    while (pivot < size && left[pivot * size + column] === 0) pivot++
    if (pivot === size) return null
    if (pivot !== column) {
      swapRows(left, size, pivot, column)
      swapRows(right, size, pivot, column)
    }
    const scale = inverse(left[column * size + column])
    scaleRow(left, size, column, scale)
    scaleRow(right, size, column, scale)
    for (let row = 0; row < size; row++) {
      const factor = left[row * size + column]
      if (row === column || factor === 0) continue
      addRow(left, size, row, column, factor)
      addRow(right, size, row, column, factor)
    }
  }
  return right
}

function swapRows(matrix: Uint8Array, size: number, a: number, b: number): void {
  const kept = matrix.slice(a * size, (a + 1) * size)
  matrix.copyWithin(a * size, b * size, (b + 1) * size)
  matrix.set(kept, b * size)
}

function scaleRow(matrix: Uint8Array, size: number, row: number, factor: number): void {
  for (let n = row * size; n < (row + 1) * size; n++) matrix[n] = multiply(matrix[n], factor)
}

/** row += factor · from */
function addRow(matrix: Uint8Array, size: number, row: number, from: number, factor: number): void {
  for (let n = 0; n < size; n++) matrix[row * size + n] ^= multiply(factor, matrix[from * size + n])
}
