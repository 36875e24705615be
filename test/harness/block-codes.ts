/** The block codes side by side: their packets as docs/wire-formats.md has them, and their encoders and decoders to drive. */
import { encode } from '../../src/dataplane/codes/reed-solomon.ts'
import { seededCombination } from './coefficients.ts'
import { type Bench, drive, payload } from './component.ts'

export interface BlockCode {
  readonly key: 'reed_solomon' | 'rlnc' | 'kodok'
  /** First bytes of source and repair packets. */
  readonly source: number
  readonly repair: number
  /** Of a repair packet before its symbol. */
  readonly symbolAt: number
  /** Whether repairs are made in the middle of a block too, and sources say how long the block before is. */
  readonly progressive: boolean
}

export const REED_SOLOMON: BlockCode = {
  key: 'reed_solomon',
  source: 0xb0,
  repair: 0xb1,
  symbolAt: 12,
  progressive: false,
}
export const RLNC: BlockCode = { key: 'rlnc', source: 0xb2, repair: 0xb3, symbolAt: 16, progressive: false }
export const KODOK: BlockCode = { key: 'kodok', source: 0xb4, repair: 0xb5, symbolAt: 16, progressive: true }

/** Each by its name, as `describe.each` has them. */
export const BLOCK_CODES = [REED_SOLOMON, RLNC, KODOK].map((code): [string, BlockCode] => [code.key, code])

export interface Shape {
  k: number
  r: number
  session?: number
  block?: number
  /** Sources of the block before, where a source says that. */
  previous?: number
}

export const sizes = (count: number, bytes = 40) =>
  Array.from({ length: count }, (_, i) => payload(bytes + ((i * 7) % 31), i))
export const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
export const sorted = (list: readonly Uint8Array[]) => list.map(hex).sort()
export const bytesOut = (bench: Bench) => bench.take('out').map(({ bytes }) => bytes)

/** The encoder of full blocks of k sources and r repairs, all at their end. */
export function encoderOf({ key }: BlockCode, k: number, r: number, more: object = {}): Bench {
  const shape =
    key === 'kodok' ? { repair_configs: [{ source_packets: k, repair_packets: r }] } : { symbols: k, repair: r }
  return drive({ enc: { [`${key}_encoder`]: { input: 'in', output: 'out', ...shape, ...more } } })
}

export const decoderOf = ({ key }: BlockCode, more: object = {}) =>
  drive({ dec: { [`${key}_decoder`]: { input: 'in', output: 'out', ...more } } })

/** Length, then payload. */
const symbolOf = (bytes: Uint8Array) => Uint8Array.from([bytes.length >> 8, bytes.length & 255, ...bytes])

function header(
  kind: number,
  index: number,
  closing: number,
  { k, r, session = 0xabcdef, block = 0 }: Shape,
): Uint8Array {
  const bytes = new Uint8Array(12)
  const view = new DataView(bytes.buffer)
  bytes.set([kind, k, r, index])
  view.setUint32(4, session * 256 + closing)
  view.setUint32(8, block >>> 0)
  return bytes
}

export const sourcePacket = ({ source }: BlockCode, bytes: Uint8Array, index: number, shape: Shape) =>
  Uint8Array.from([...header(source, index, shape.previous ?? 0, shape), ...symbolOf(bytes)])

/** The repair over `sources`; `seed` gives its coefficients where those are random. */
export function repairPacket(
  { key, repair }: BlockCode,
  sources: readonly Uint8Array[],
  index: number,
  seed: number,
  shape: Shape,
): Uint8Array {
  const start = header(repair, index, sources.length, shape)
  const symbols = sources.map(symbolOf)
  if (key === 'reed_solomon') return Uint8Array.from([...start, ...encode(symbols, index + 1)[index]])
  const word = [24, 16, 8, 0].map((shift) => (seed >>> shift) & 255)
  return Uint8Array.from([...start, ...word, ...seededCombination(symbols, seed)])
}

/** The packets of a block whose repairs are all at its end, with seeds from `seed` on; of k sources where not the shape says more. */
export function blockOf(
  code: BlockCode,
  sources: readonly Uint8Array[],
  r: number,
  shape: Partial<Shape> = {},
  seed = 100,
): { sources: Uint8Array[]; repairs: Uint8Array[] } {
  const whole = { k: sources.length, r, ...shape }
  return {
    sources: sources.map((bytes, i) => sourcePacket(code, bytes, i, whole)),
    repairs: Array.from({ length: r }, (_, j) => repairPacket(code, sources, j, seed + j, whole)),
  }
}

const viewOf = (packet: Uint8Array) => new DataView(packet.buffer, packet.byteOffset)
export const isRepair = (packet: Uint8Array) => (packet[0] & 1) === 1
export const sessionOf = (packet: Uint8Array) => viewOf(packet).getUint32(4) >>> 8
export const blockIdOf = (packet: Uint8Array) => viewOf(packet).getUint32(8)
/** 0 where coefficients are not random. */
export const seedOf = (repair: Uint8Array) => (repair[0] === REED_SOLOMON.repair ? 0 : viewOf(repair).getInt32(12))

/** A copy with `value` in place of the byte at `at`. */
export function changed(packet: Uint8Array, at: number, value: number): Uint8Array {
  const copy = Uint8Array.from(packet)
  copy[at] = value
  return copy
}
