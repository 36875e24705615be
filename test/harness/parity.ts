/** Blocks of two-dimensional parity as the documentation has them, and what rows and columns give back. */
import { payload } from './component.ts'

export const sizes = (count: number, bytes = 40) =>
  Array.from({ length: count }, (_, i) => payload(bytes + ((i * 7) % 31), i))
export const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
export const sorted = (list: readonly Uint8Array[]) => list.map(hex).sort()

export function packet(kind: number, line: number, count: number, symbol: number[], shape: Shape): Uint8Array {
  const bytes = new Uint8Array(14 + symbol.length)
  const view = new DataView(bytes.buffer)
  bytes.set([kind, shape.columns, shape.rows, line])
  view.setUint32(4, (shape.session ?? 0xabcdef) * 256)
  view.setUint32(8, (shape.block ?? 0) >>> 0)
  view.setUint16(12, count)
  bytes.set(symbol, 14)
  return bytes
}

export interface Shape {
  columns: number
  rows: number
  session?: number
  block?: number
}

export const symbolOf = (bytes: Uint8Array) => [bytes.length >> 8, bytes.length & 255, ...bytes]

/** The exclusive or of symbols, padded with zeros. */
function parityOf(sources: readonly Uint8Array[]): number[] {
  const symbols = sources.map(symbolOf)
  const bytes = Math.max(...symbols.map(({ length }) => length))
  return Array.from({ length: bytes }, (_, n) => symbols.reduce((sum, symbol) => sum ^ (symbol[n] ?? 0), 0))
}

/** The packets of a block as the documentation has them; fewer sources than there is room for: it was closed early. */
export function blockOf(sources: readonly Uint8Array[], shape: Shape) {
  const { columns } = shape
  const rows = Math.ceil(sources.length / columns)
  return {
    sources: sources.map((bytes, i) => packet(0xb6, 0, i, symbolOf(bytes), shape)),
    rows: Array.from({ length: rows }, (_, r) => {
      const own = sources.slice(r * columns, (r + 1) * columns)
      return packet(0xb7, r, r * columns + own.length, parityOf(own), shape)
    }),
    columns: Array.from({ length: Math.min(columns, sources.length) }, (_, c) =>
      packet(0xb8, c, sources.length, parityOf(sources.filter((_source, i) => i % columns === c)), shape),
    ),
  }
}

/** In the order in which they leave. */
export function wireOf(sources: readonly Uint8Array[], shape: Shape): Uint8Array[] {
  const made = blockOf(sources, shape)
  const inRows = made.rows.flatMap((parity, r) => [
    ...made.sources.slice(r * shape.columns, (r + 1) * shape.columns),
    parity,
  ])
  return [...inRows, ...made.columns]
}

/** Which of the missing sources rows and columns give back, again and again; `lines` are those whose parity is there, rows first. */
export function repaired(
  missing: ReadonlySet<number>,
  lines: ReadonlySet<number>,
  { columns, rows }: Shape,
): Set<number> {
  const left = new Set(missing)
  const found = new Set<number>()
  for (let before = -1; before !== found.size; ) {
    before = found.size
    for (const line of lines) {
      const own = [...left].filter((i) =>
        line < rows ? Math.floor(i / columns) === line : i % columns === line - rows,
      )
      if (own.length !== 1) continue
      left.delete(own[0])
      found.add(own[0])
    }
  }
  return found
}
