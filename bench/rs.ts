/** Reed-Solomon over packets of 1,200 bytes against Intel ISA-L: the addon's product alone, and the components as a whole. */
import { spawnSync } from 'node:child_process'
import { cauchyMatrix, decodingMatrix, repairPoint } from '../src/dataplane/codes/cauchy.ts'
import { Random } from '../src/dataplane/engine/random.ts'
import { native } from '../src/dataplane/native/native.ts'
import { type BenchResult, type BenchRow, inTurn, nativeProgram, runAlone } from './measure.ts'
import { decoderStage, encoderStage, filledSlab, perSource } from './support/coding.ts'

const BYTES = 1200
const SHAPES = [
  [8, 2],
  [10, 4],
  [20, 5],
  [50, 10],
] as const
const ROUNDS = 25
const MILLISECONDS = 8
const GOAL = '≥ 1.0'
/** Goals of the components as a whole, for one shape. */
const WHOLE = { k: 10, r: 4, encoder: '≥ 0.85', decoder: '≥ 0.7' }
/** Blocks whose packets are made in one call, and patterns of losses that take turns. */
const BLOCKS = 16
const PATTERNS = 64

/** One product as the components call it, on one block over and over, as ISA-L's is measured. */
function products(k: number, r: number) {
  const { memory, range, close } = filledSlab(k + 2 * r)
  const losses = Math.min(k, r)
  const encoding = cauchyMatrix(k, r)
  const decoding = new Uint8Array(losses * k)
  const points = [...Array(k - losses).keys()].map((i) => losses + i)
  const repairs = [...Array(losses).keys()].map(repairPoint)
  const missing = Uint8Array.from({ length: losses }, (_, i) => i)
  decodingMatrix(Uint8Array.from([...points, ...repairs]), k, missing, losses, decoding)
  const encoded = Int32Array.from(range(0, k + r))
  const decoded = Int32Array.of(...range(losses, k), ...range(k + r, losses))
  return {
    encode: () => native.gfMatrixMultiply(memory, encoding, encoded, k, r, BYTES),
    decode: () => native.gfMatrixMultiply(memory, decoding, decoded, k, losses, BYTES),
    close,
  }
}

/** The product as the encoder calls it: the repairs of several blocks, each in packets of its own, made in one call. */
function packetProducts(k: number, r: number) {
  const { packets, memory, close } = filledSlab(BLOCKS * (k + r))
  const matrix = cauchyMatrix(k, r)
  const list = new Int32Array(BLOCKS * (k + r))
  for (let block = 0; block < BLOCKS; block++) {
    for (let i = 0; i < k; i++) {
      const packet = packets.allocate()
      packets.append(packet, BYTES)
      list[block * (k + r) + i] = packet
    }
  }
  const free = packets.free[0]
  const make = () => {
    native.gfMultiplyPackets(memory, matrix, list, BLOCKS, k, r, 0)
    // The same slots again: none of those that are given out is overwritten in the stack.
    packets.free[0] = free
  }
  return { make, close }
}

/** The sources that a block loses, of `losses` each: the first, or others for every pattern. */
function lostSources(k: number, losses: number, atRandom: boolean): Set<number>[] {
  if (!atRandom) return [new Set(Array(losses).keys())]
  const random = new Random(1)
  return Array.from({ length: PATTERNS }, () => {
    const lost = new Set<number>()
    while (lost.size < losses) lost.add(random.below(k))
    return lost
  })
}

export async function bench(): Promise<BenchResult> {
  const program = nativeProgram('isal')
  const rows: BenchRow[] = []
  for (const [k, r] of SHAPES) {
    const isal = (): { encodeNs: number; decodeNs: number } => {
      const { stdout } = spawnSync(program, [BYTES, MILLISECONDS, k, r].map(String), { encoding: 'utf8' })
      return JSON.parse(stdout).shapes[0]
    }
    const product = products(k, r)
    const fields = { symbols: k, repair: r }
    const encoder = encoderStage('reed_solomon_encoder', fields, BYTES - 2, MILLISECONDS)
    const block = { sources: k, bytes: BYTES - 2, losses: Math.min(k, r) }
    const decoderOf = (atRandom: boolean) =>
      decoderStage('reed_solomon', fields, block, lostSources(k, block.losses, atRandom), MILLISECONDS)
    const decoder = decoderOf(false)
    const scattered = decoderOf(true)
    const made = packetProducts(k, r)
    let latest = isal()
    const ns = await inTurn(ROUNDS, {
      isalEncode: () => {
        latest = isal()
        return latest.encodeNs
      },
      encode: () => perSource(k, MILLISECONDS, product.encode),
      make: () => perSource(k * BLOCKS, MILLISECONDS, made.make),
      encoder: encoder.measure,
      isalDecode: () => latest.decodeNs,
      decode: () => perSource(k, MILLISECONDS, product.decode),
      decoder: decoder.measure,
      scattered: scattered.measure,
    })
    product.close()
    encoder.stop()
    decoder.stop()
    scattered.stop()
    made.close()
    const isGoal = k === WHOLE.k && r === WHOLE.r
    const unit = 'ns per source packet'
    const row = (what: string, value: number, reference: number, goal?: string): BenchRow => ({
      label: `(${k},${r}) ${what}`,
      value,
      unit,
      ratio: reference / value,
      ...(goal !== undefined && { goal }),
    })
    rows.push({ label: `(${k},${r}) ISA-L encode`, value: ns.isalEncode, unit })
    rows.push(row('product, encoding', ns.encode, ns.isalEncode, GOAL))
    rows.push(row(`packets of ${BLOCKS} blocks made in one call`, ns.make, ns.isalEncode))
    rows.push(row('reed_solomon_encoder, all of it', ns.encoder, ns.isalEncode, isGoal ? WHOLE.encoder : undefined))
    rows.push({ label: `(${k},${r}) ISA-L decode, ${Math.min(k, r)} lost`, value: ns.isalDecode, unit })
    rows.push(row('product, decoding', ns.decode, ns.isalDecode, GOAL))
    rows.push(row('reed_solomon_decoder, all of it', ns.decoder, ns.isalDecode, isGoal ? WHOLE.decoder : undefined))
    rows.push(row('reed_solomon_decoder, others lost each time', ns.scattered, ns.isalDecode))
  }
  return { name: `rs: ${BYTES} B symbols against ISA-L, kernel ${native.gfKernel()}`, rows }
}

await runAlone(import.meta.url, bench)
