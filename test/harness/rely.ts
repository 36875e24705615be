/** Packets of rely as the documentation has them, and what stands in them. */
import { multiplyAdd } from '../../src/dataplane/codes/gf256.ts'
import { codingCoefficients } from '../../src/dataplane/codes/tinymt32.ts'
import { payload } from './component.ts'

export const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset)
export const isRepair = (bytes: Uint8Array) => bytes[0] === 0xb9

const SESSION = 0xabcdef

export function sourcePacket(bytes: Uint8Array, sequence: number, session = SESSION): Uint8Array {
  const packet = new Uint8Array(10 + bytes.length)
  const view = viewOf(packet)
  view.setUint32(0, 0xb8 * 2 ** 24 + session)
  view.setUint32(4, sequence >>> 0)
  view.setUint16(8, bytes.length)
  packet.set(bytes, 10)
  return packet
}

/** The repair of payloads whose first has number `first`, built from the documentation. */
export function repairPacket(
  sources: readonly Uint8Array[],
  first: number,
  key: number,
  session = SESSION,
): Uint8Array {
  const symbols = sources.map((bytes) => Uint8Array.of(bytes.length >> 8, bytes.length & 255, ...bytes))
  const packet = new Uint8Array(12 + Math.max(...symbols.map(({ length }) => length)))
  const view = viewOf(packet)
  view.setUint32(0, 0xb9 * 2 ** 24 + session)
  view.setUint32(4, first >>> 0)
  view.setUint16(8, sources.length)
  view.setUint16(10, key)
  const coefficients = codingCoefficients(key, sources.length)
  symbols.forEach((symbol, i) => {
    multiplyAdd(packet, 12, symbol, 0, symbol.length, coefficients[i])
  })
  return packet
}

/** First source, how many, and key of a repair. */
export const windowOf = (bytes: Uint8Array) => [
  viewOf(bytes).getUint32(4),
  viewOf(bytes).getUint16(8),
  viewOf(bytes).getUint16(10),
]
export const sized = (count: number) => Array.from({ length: count }, (_, i) => payload(40 + ((i * 7) % 31), i))
