/** The Reed-Solomon erasure code as mathematics: lists of symbols in, lists of symbols out, one byte at a time. */
import { cauchyMatrix, decodingMatrix, MAX_SYMBOLS, repairPoint } from './cauchy.ts'
import { multiplyAdd } from './gf256.ts'

/** The `repair` repair symbols of a block; they are as long as its longest source, shorter ones count as padded with zeros. */
export function encode(sources: readonly Uint8Array[], repair: number): Uint8Array<ArrayBuffer>[] {
  const k = sources.length
  if (k + repair > MAX_SYMBOLS)
    throw new RangeError(`${k} + ${repair} = ${k + repair} symbols are more than ${MAX_SYMBOLS}`)
  const matrix = cauchyMatrix(k, repair)
  const bytes = Math.max(0, ...sources.map((source) => source.length))
  return Array.from({ length: repair }, (_, j) => {
    const symbol = new Uint8Array(bytes)
    sources.forEach((source, i) => {
      multiplyAdd(symbol, 0, source, 0, source.length, matrix[j * k + i])
    })
    return symbol
  })
}

/**
 * All k sources of a block from what has arrived of it: `sources` (k of them) and `repairs`, null where one is missing.
 * Recovered sources are as long as the repair symbols. Null when fewer than k symbols are there.
 */
export function decode(
  sources: readonly (Uint8Array | null)[],
  repairs: readonly (Uint8Array | null)[],
): Uint8Array[] | null {
  const k = sources.length
  const missing: number[] = []
  const symbols: Uint8Array[] = []
  const points: number[] = []
  sources.forEach((source, i) => {
    if (source) {
      symbols.push(source)
      points.push(i)
    } else missing.push(i)
  })
  repairs.forEach((symbol, j) => {
    if (!symbol || symbols.length === k) return
    symbols.push(symbol)
    points.push(repairPoint(j))
  })
  if (symbols.length < k) return null
  const matrix = new Uint8Array(missing.length * k)
  decodingMatrix(Uint8Array.from(points), k, Uint8Array.from(missing), missing.length, matrix)
  const whole = [...sources]
  missing.forEach((i, m) => {
    const recovered = new Uint8Array(symbols[k - 1].length)
    symbols.forEach((symbol, c) => {
      multiplyAdd(recovered, 0, symbol, 0, symbol.length, matrix[m * k + c])
    })
    whole[i] = recovered
  })
  return whole as Uint8Array[]
}
