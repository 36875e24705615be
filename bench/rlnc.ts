/** Random linear blocks over packets of 1,280 bytes at 10 % loss against our own Reed-Solomon product of the same k and r. */
import { cauchyMatrix, decodingMatrix, repairPoint } from '../src/dataplane/codes/cauchy.ts'
import { invertMatrix, matrixProduct } from '../src/dataplane/codes/matrix.ts'
import { SEED_BYTES } from '../src/dataplane/components/fec/block-header.ts'
import { native } from '../src/dataplane/native/native.ts'
import { coefficients } from '../test/harness/coefficients.ts'
import { type BenchResult, type BenchRow, inTurn, runAlone } from './measure.ts'
import { blockProducts } from './support/block-products.ts'
import { decoderStage, encoderStage, filledSlab, perSource } from './support/coding.ts'

const BYTES = 1280
/** Sources, and as many repairs as 10 % loss takes. */
const SHAPES = [
  [16, 2],
  [50, 5],
  [100, 10],
] as const
/** Encoding and decoding of Kodo's RLNC over GF(2^8) on an Intel i7-4770, as its makers published them, Gbit/s. */
const KODO = [
  [88, 56],
  [64, 44],
  [40, 26],
] as const
const ROUNDS = 25
const MILLISECONDS = 8

/**
 * Of the first seeds in a row whose r repairs say enough: the first of them, and the matrix (r × k) of what the first r sources of k are, combinations of
 * the other sources and of the repairs.
 */
function solvable(k: number, r: number): { seed: number; matrix: Uint8Array } {
  for (let seed = 0; ; seed++) {
    const rows = Array.from({ length: r }, (_, j) => coefficients(seed + j, k))
    const inverse = invertMatrix(Uint8Array.from(rows.flatMap((row) => [...row.subarray(0, r)])), r)
    if (!inverse) continue
    const known = Uint8Array.from(rows.flatMap((row) => [...row.subarray(r)]))
    const ofKnown = matrixProduct(inverse, known, r, r, k - r)
    const rowOf = (matrix: Uint8Array, i: number) =>
      matrix.subarray((i * matrix.length) / r, ((i + 1) * matrix.length) / r)
    return { seed, matrix: Uint8Array.from(rows.flatMap((_, i) => [...rowOf(ofKnown, i), ...rowOf(inverse, i)])) }
  }
}

/**
 * Both codes on one block a call, over and over; the first r sources are lost. Seeds are new each time. `cauchyRecover` is what a decoder of Reed-Solomon
 * calls for a block, `decode` one of random combinations: symbols are looked up, the matrix is found, packets are taken for what is made.
 */
function products(k: number, r: number) {
  const { packets, memory, place, range, close } = filledSlab(k + 3 * r)
  const encoding = cauchyMatrix(k, r)
  const decoding = new Uint8Array(r * k)
  const points = [...Array(k - r).keys()].map((i) => r + i).concat([...Array(r).keys()].map(repairPoint))
  decodingMatrix(
    Uint8Array.from(points),
    k,
    Uint8Array.from({ length: r }, (_, i) => i),
    r,
    decoding,
  )
  const encoded = Int32Array.from(range(0, k + r))
  const decoded = Int32Array.of(...range(r, k), ...range(k + r, r))
  const { seed, matrix } = solvable(k, r)
  native.gfRandomMultiply(memory, seed, encoded, k, r, BYTES)
  native.gfMatrixMultiply(memory, matrix, decoded, k, r, BYTES)
  for (const [i, at] of range(k + r, r).entries()) {
    if (Buffer.compare(packets.data.subarray(at, at + BYTES), packets.data.subarray(place(i), place(i) + BYTES)) !== 0)
      throw new Error(`source ${i} of ${k} is not what was solved for it`)
  }
  const symbols = Int32Array.from({ length: k + r }, () => packets.allocate() + 1)
  for (const symbol of symbols) packets.append(symbol - 1, BYTES)
  symbols.fill(0, 0, r)
  const cauchySymbols = symbols.slice()
  const made = new Int32Array(3 * r)
  const free = packets.free[0]
  let next = 0
  let short = 0
  const recover = () => {
    for (let j = 0; j < r; j++) packets.view.setInt32(place(k + j) - SEED_BYTES, next++)
    if (native.gfRecoverRandom(memory, symbols, 0, k, r, k, BYTES, 0, made) < r) short++
    // The same slots again: none of those that are given out is overwritten in the stack.
    packets.free[0] = free
  }
  const cauchyRecover = () => {
    native.gfRecover(memory, cauchySymbols, 0, k, r, k, BYTES, 0, made)
    packets.free[0] = free
  }
  return {
    cauchyRecover,
    cauchyEncode: () => native.gfMatrixMultiply(memory, encoding, encoded, k, r, BYTES),
    solve: () => native.gfMatrixMultiply(memory, matrix, decoded, k, r, BYTES),
    cauchyDecode: () => native.gfMatrixMultiply(memory, decoding, decoded, k, r, BYTES),
    encode: () => {
      native.gfRandomMultiply(memory, next, encoded, k, r, BYTES)
      next += r
    },
    decode: recover,
    close() {
      close()
      if (short > next / r / 50) throw new Error(`${short} of ${next / r} blocks were not solved`)
    },
  }
}

export async function bench(): Promise<BenchResult> {
  const rows: BenchRow[] = []
  for (const [index, [k, r]] of SHAPES.entries()) {
    const product = products(k, r)
    const [cauchy, random] = (['reed_solomon', 'rlnc'] as const).map((code) =>
      blockProducts(code, k, r, BYTES, MILLISECONDS),
    )
    const fields = { symbols: k, repair: r }
    const encoder = encoderStage('rlnc_encoder', fields, BYTES - 2, MILLISECONDS)
    // One repair more than is missing: the seeds are drawn, and r of them are not enough in one of 255 cases.
    const more = { symbols: k, repair: r + 1 }
    const block = { sources: k, bytes: BYTES - 2, losses: r }
    const decoder = decoderStage('rlnc', more, block, [new Set(Array(r).keys())], MILLISECONDS)
    const ns = await inTurn(ROUNDS, {
      cauchyEncode: () => perSource(k, MILLISECONDS, product.cauchyEncode),
      encode: () => perSource(k, MILLISECONDS, product.encode),
      cauchyMake: cauchy.encode,
      make: random.encode,
      encoder: encoder.measure,
      cauchyDecode: () => perSource(k, MILLISECONDS, product.cauchyDecode),
      solve: () => perSource(k, MILLISECONDS, product.solve),
      cauchyRecover: () => perSource(k, MILLISECONDS, product.cauchyRecover),
      decode: () => perSource(k, MILLISECONDS, product.decode),
      cauchyPass: cauchy.decode,
      pass: random.decode,
      decoder: decoder.measure,
    })
    product.close()
    cauchy.close()
    random.close()
    encoder.stop()
    decoder.stop()
    const unit = 'ns per source packet'
    const [kodoEncode, kodoDecode] = KODO[index]
    const row = (what: string, value: number, reference: number, goal: string): BenchRow => ({
      label: `(${k},${r}) ${what}`,
      value,
      unit,
      ratio: reference / value,
      goal,
    })
    const rate = (what: string, value: number, published: number): BenchRow => ({
      label: `(${k},${r}) ${what}, beside ${published} that Kodo publishes on an i7-4770`,
      value: (BYTES * 8) / value,
      unit: 'Gbit/s',
    })
    rows.push({ label: `(${k},${r}) Reed-Solomon product, encoding`, value: ns.cauchyEncode, unit })
    rows.push(row('product, encoding', ns.encode, ns.cauchyEncode, '≥ 0.9'))
    rows.push(rate('product, encoding', ns.encode, kodoEncode))
    rows.push({
      label: `(${k},${r}) Reed-Solomon packets of ${random.blocks} blocks made in one call`,
      value: ns.cauchyMake,
      unit,
    })
    rows.push(row(`packets of ${random.blocks} blocks made in one call`, ns.make, ns.cauchyMake, '≥ 0.9'))
    rows.push(row('rlnc_encoder, all of it, against its product', ns.encoder, ns.encode, '≥ 0.6'))
    rows.push(row('rlnc_encoder, all of it, against the packets that it has made', ns.encoder, ns.make, '≥ 0.6'))
    rows.push({ label: `(${k},${r}) Reed-Solomon product, decoding, ${r} lost`, value: ns.cauchyDecode, unit })
    // The first by a matrix that was solved before; the second draws and solves it, looks symbols up and takes packets.
    rows.push(row('product, decoding, matrix at hand', ns.solve, ns.cauchyDecode, '≥ 0.9'))
    rows.push(row('product, decoding', ns.decode, ns.cauchyDecode, '≥ 0.9'))
    rows.push({ label: `(${k},${r}) Reed-Solomon block recovered in one call`, value: ns.cauchyRecover, unit })
    rows.push(row('block recovered in one call', ns.decode, ns.cauchyRecover, '≥ 0.9'))
    rows.push(rate('product, decoding', ns.decode, kodoDecode))
    rows.push({
      label: `(${k},${r}) ${random.blocks} Reed-Solomon blocks passed on in one call`,
      value: ns.cauchyPass,
      unit,
    })
    rows.push(row(`${random.blocks} blocks passed on in one call`, ns.pass, ns.cauchyPass, '≥ 0.9'))
    rows.push(row('rlnc_decoder, all of it, against its product', ns.decoder, ns.decode, '≥ 0.6'))
    rows.push(row('rlnc_decoder, all of it, against the blocks that it has passed on', ns.decoder, ns.pass, '≥ 0.6'))
  }
  return { name: `rlnc: ${BYTES} B symbols at 10 % loss, kernel ${native.gfKernel()}`, rows }
}

await runAlone(import.meta.url, bench)
