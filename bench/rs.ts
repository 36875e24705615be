/** Reed-Solomon over packets of 1,200 bytes against Intel ISA-L: the addon's product alone, and the components as a whole. */
import { spawnSync } from 'node:child_process'
import { cauchyMatrix, decodingMatrix, repairPoint } from '../src/dataplane/codes/cauchy.ts'
import { Packets } from '../src/dataplane/engine/packets.ts'
import { Random } from '../src/dataplane/engine/random.ts'
import { native } from '../src/dataplane/native/native.ts'
import { type BenchResult, type BenchRow, inTurn, nativeProgram, runAlone } from './measure.ts'
import { Stage } from './support/stage.ts'

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

/** Nanoseconds per source packet of `call`, which handles k of them. */
function perSource(k: number, call: () => void): number {
  const start = native.now()
  const end = start + MILLISECONDS * 1e6
  let calls = 0
  let stop = start
  while (stop < end) {
    for (let i = 0; i < 32; i++) call()
    calls += 32
    stop = native.now()
  }
  return (stop - start) / calls / k
}

/** One product as the components call it, on one block over and over, as ISA-L's is measured. */
function products(k: number, r: number) {
  const packets = new Packets({ slots: k + 2 * r, mtu: 1500 })
  packets.data.forEach((_, at) => {
    packets.data[at] = at * 31
  })
  const memory = native.memoryOpen(packets)
  const losses = Math.min(k, r)
  const place = (slot: number) => slot * packets.slotBytes + packets.headroom
  const range = (from: number, count: number) => Int32Array.from({ length: count }, (_, n) => place(from + n))
  const encoding = cauchyMatrix(k, r)
  const decoding = new Uint8Array(losses * k)
  const points = [...Array(k - losses).keys()].map((i) => losses + i)
  const repairs = [...Array(losses).keys()].map(repairPoint)
  const missing = Uint8Array.from({ length: losses }, (_, i) => i)
  decodingMatrix(Uint8Array.from([...points, ...repairs]), k, missing, losses, decoding)
  const encoded = range(0, k + r)
  const decoded = Int32Array.of(...range(losses, k), ...range(k + r, losses))
  return {
    encode: () => native.gfMatrixMultiply(memory, encoding, encoded, k, r, BYTES),
    decode: () => native.gfMatrixMultiply(memory, decoding, decoded, k, losses, BYTES),
    close: () => native.memoryClose(memory),
  }
}

/** The product as the encoder calls it: the repairs of several blocks, each in packets of its own, made in one call. */
function packetProducts(k: number, r: number) {
  const packets = new Packets({ slots: BLOCKS * (k + r), mtu: 1500 })
  packets.data.forEach((_, at) => {
    packets.data[at] = at * 31
  })
  const memory = native.memoryOpen(packets)
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
  return { make, close: () => native.memoryClose(memory) }
}

/** reed_solomon_encoder on full batches. */
function encoding(k: number, r: number) {
  const stage = new Stage('reed_solomon_encoder', { symbols: k, repair: r })
  const measure = () => {
    let [spent, packets] = [0, 0]
    while (spent < MILLISECONDS * 1e6) {
      while (!stage.batch.full) stage.add(BYTES - 2)
      packets += stage.batch.length
      spent += stage.send()
    }
    return spent / packets
  }
  return { measure, stop: () => stage.stop() }
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

/** reed_solomon_decoder on batches of whole blocks that lost r sources (all, where there are fewer), the most that can be. */
function decoding(k: number, r: number, atRandom: boolean) {
  const losses = Math.min(k, r)
  const wire: Uint8Array[] = []
  const encoder = new Stage('reed_solomon_encoder', { symbols: k, repair: r })
  encoder.look = ({ handles, length, packets }) => {
    for (let i = 0; i < length; i++) {
      const at = packets.offset[handles[i]]
      wire.push(packets.data.slice(at, at + packets.length[handles[i]]))
    }
  }
  for (let i = 0; i < k; i++) encoder.add(BYTES - 2)
  encoder.send()
  encoder.stop()
  const patterns = lostSources(k, losses, atRandom).map((lost) => wire.filter((_, i) => !lost.has(i)))
  const arriving = k + r - losses
  const stage = new Stage('reed_solomon_decoder', {})
  let block = 0
  const measure = () => {
    let [spent, packets] = [0, 0]
    while (spent < MILLISECONDS * 1e6) {
      for (let room = 256; room >= arriving; room -= arriving, block++, packets += k) {
        for (const bytes of patterns[block % patterns.length]) {
          new DataView(bytes.buffer).setUint32(8, block)
          stage.add(bytes)
        }
      }
      spent += stage.send()
    }
    return spent / packets
  }
  const stop = () => {
    const { recovered_packets: recovered, malformed_packets: malformed } = stage.metrics()
    if (recovered !== block * losses || malformed > 0) throw new Error(`${recovered} of ${block * losses} recovered`)
    stage.stop()
  }
  return { measure, stop }
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
    const encoder = encoding(k, r)
    const decoder = decoding(k, r, false)
    const scattered = decoding(k, r, true)
    const made = packetProducts(k, r)
    let latest = isal()
    const ns = await inTurn(ROUNDS, {
      isalEncode: () => {
        latest = isal()
        return latest.encodeNs
      },
      encode: () => perSource(k, product.encode),
      make: () => perSource(k * BLOCKS, made.make),
      encoder: encoder.measure,
      isalDecode: () => latest.decodeNs,
      decode: () => perSource(k, product.decode),
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
