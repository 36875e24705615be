/** The products of a block code as its encoder and its decoder call them: all blocks of a batch in one call, on packets of their own. */
import { cauchyMatrix } from '../../src/dataplane/codes/cauchy.ts'
import {
  BlockHeaders,
  REED_SOLOMON,
  RLNC,
  RUN_BLOCK,
  RUN_LONGEST,
  RUN_SESSION,
  RUN_WANTED,
  RUN_WORDS,
} from '../../src/dataplane/components/fec/block-header.ts'
import { BlockWindow, UNKNOWN } from '../../src/dataplane/components/fec/block-window.ts'
import { BATCH_CAPACITY, Batch } from '../../src/dataplane/engine/batch.ts'
import type { Packets } from '../../src/dataplane/engine/packets.ts'
import { PASS, PASS_WORDS } from '../../src/dataplane/native/code-calls.ts'
import { native } from '../../src/dataplane/native/native.ts'
import { blocksOf, filledSlab } from './coding.ts'

interface BlockProducts {
  /** Blocks of one call. */
  readonly blocks: number
  /** Nanoseconds per source packet that making the repairs of all blocks takes. */
  encode(): number
  /** The same of making what all blocks have lost, their first r sources, and passing them on. */
  decode(): number
  close(): void
}

/** Nanoseconds per packet that `call` takes, which handles `count` of them, over `milliseconds`; it finds the same memory each time. */
function timed(packets: Packets, count: number, milliseconds: number, call: () => void): () => number {
  const { data, offset, length, free } = packets
  const arrays = [data, offset, length, free]
  const were = arrays.map((array) => array.slice())
  return () => {
    let [spent, calls] = [0, 0]
    for (; spent < milliseconds * 1e6; calls++) {
      arrays.forEach((array, n) => {
        array.set(were[n])
      })
      const start = native.now()
      call()
      spent += native.now() - start
    }
    return spent / calls / count
  }
}

function encoding(
  code: 'reed_solomon' | 'rlnc',
  k: number,
  r: number,
  bytes: number,
  blocks: number,
  milliseconds: number,
) {
  const { packets, memory, close } = filledSlab(blocks * (k + r))
  const list = new Int32Array(blocks * (k + r))
  for (let n = 0; n < list.length; n++) {
    if (n % (k + r) >= k) continue
    list[n] = packets.allocate()
    packets.append(list[n], bytes)
  }
  const matrix = cauchyMatrix(k, r)
  let next = 0
  const encode = timed(packets, k * blocks, milliseconds, () => {
    if (code === 'reed_solomon') native.gfMultiplyPackets(memory, matrix, list, blocks, k, r, 0)
    else {
      native.gfRandomPackets(memory, next, list, blocks, k, r, 0, 0)
      next += blocks * r
    }
  })
  return { encode, close }
}

function decoding(
  code: 'reed_solomon' | 'rlnc',
  k: number,
  r: number,
  bytes: number,
  blocks: number,
  milliseconds: number,
) {
  // One repair more than is missing, for those of random combinations that follow from others.
  const repairs = r + 1
  const fields = { symbols: k, repair: repairs }
  const wire = blocksOf(`${code}_encoder`, fields, k * blocks, bytes - 2)
  const { packets, memory, close } = filledSlab(blocks * (k + repairs))
  const batch = new Batch(packets)
  wire.forEach((packet, n) => {
    if (n % (k + repairs) < r) return
    const handle = packets.allocate()
    packets.data.set(packet, packets.append(handle, packet.length))
    batch.push(handle)
  })
  const headers = new BlockHeaders(memory, code === 'rlnc' ? RLNC : REED_SOLOMON)
  headers.read(batch)
  const { words } = headers
  for (let n = 0; n < blocks; n++) {
    const run = batch.length + n * RUN_WORDS
    if (words[run + RUN_WANTED] !== k || words[run + RUN_LONGEST] !== bytes)
      throw new Error('a block is not what was sent')
  }
  const window = new BlockWindow()
  window.open(words[batch.length + RUN_SESSION], k, repairs, words[batch.length + RUN_BLOCK])
  // Where to go on, how many runs, the newest block and the places of the window, and that what was overtaken is replaced.
  const begin = Int32Array.of(batch.length, 0, batch.length, blocks, window.newest, window.places, 1)
  const pass = new Int32Array(PASS_WORDS)
  const out = new Int32Array(BATCH_CAPACITY + blocks)
  const random = code === 'rlnc'
  const { handles } = batch
  const decode = timed(packets, k * blocks, milliseconds, () => {
    window.state.fill(UNKNOWN)
    pass.set(begin)
    pass[PASS.shape] = (window.k << 8) | window.r
    pass[PASS.session] = window.session
    native.blocksPass(memory, random, handles, words, window.words, pass, out)
    if (pass[PASS.first] !== batch.length)
      throw new Error(`${pass[PASS.first]} of ${batch.length} packets were passed on`)
  })
  return { decode, close }
}

/** Of blocks of k sources and r repairs whose symbols have `bytes` bytes, as many as a batch has. */
export function blockProducts(
  code: 'reed_solomon' | 'rlnc',
  k: number,
  r: number,
  bytes: number,
  milliseconds: number,
): BlockProducts {
  const blocks = Math.floor(BATCH_CAPACITY / (k + 1))
  const encoder = encoding(code, k, r, bytes, blocks, milliseconds)
  const decoder = decoding(code, k, r, bytes, blocks, milliseconds)
  const close = () => {
    encoder.close()
    decoder.close()
  }
  return { blocks, encode: encoder.encode, decode: decoder.decode, close }
}
