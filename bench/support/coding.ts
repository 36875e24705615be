/** What benches of block codes measure: a product on its own, an encoder, and a decoder of what it makes with losses, each as a whole component. */
import { Packets } from '../../src/dataplane/engine/packets.ts'
import { native } from '../../src/dataplane/native/native.ts'
import { Stage } from './stage.ts'

export interface Measured {
  /** Nanoseconds per source packet, over `milliseconds`. */
  measure(): number
  stop(): void
}

/** Calls between two looks at the clock. */
const CALLS = 16

/** Nanoseconds per source packet of `call`, which handles k of them, over `milliseconds`. */
export function perSource(k: number, milliseconds: number, call: () => void): number {
  const start = native.now()
  const end = start + milliseconds * 1e6
  let calls = 0
  let stop = start
  while (stop < end) {
    for (let i = 0; i < CALLS; i++) call()
    calls += CALLS
    stop = native.now()
  }
  return (stop - start) / calls / k
}

/** A slab of `slots` slots that the addon knows, every page of it written, and the places in it. */
export function filledSlab(slots: number) {
  const packets = new Packets({ slots, mtu: 1500 })
  packets.data.forEach((_, at) => {
    packets.data[at] = at * 31
  })
  const memory = native.memoryOpen(packets)
  const place = (slot: number) => slot * packets.slotBytes + packets.headroom
  const range = (from: number, count: number) => Array.from({ length: count }, (_, n) => place(from + n))
  return { packets, memory, place, range, close: () => native.memoryClose(memory) }
}

/** An encoder on full batches of packets of `bytes` bytes. */
export function encoderStage(
  key: string,
  fields: Record<string, unknown>,
  bytes: number,
  milliseconds: number,
): Measured {
  const stage = new Stage(key, fields)
  const measure = () => {
    let [spent, packets] = [0, 0]
    while (spent < milliseconds * 1e6) {
      while (!stage.batch.full) stage.add(bytes)
      packets += stage.batch.length
      spent += stage.send()
    }
    return spent / packets
  }
  return { measure, stop: () => stage.stop() }
}

/** What an encoder makes of the blocks that `sources` packets of `bytes` bytes are, no more than a batch. */
export function blocksOf(key: string, fields: Record<string, unknown>, sources: number, bytes: number): Uint8Array[] {
  const wire: Uint8Array[] = []
  const encoder = new Stage(key, fields)
  encoder.look = ({ handles, length, packets }) => {
    for (let i = 0; i < length; i++) {
      const at = packets.offset[handles[i]]
      wire.push(packets.data.slice(at, at + packets.length[handles[i]]))
    }
  }
  for (let i = 0; i < sources; i++) encoder.add(bytes)
  encoder.send()
  encoder.stop()
  return wire
}

/**
 * The decoder of `${code}_encoder` on batches of whole blocks, again and again the one of `sources` packets that lost those of each of
 * `patterns` in turn. The block's number stands at byte 8 of every packet. `stop` throws when fewer than `losses` of a block came back.
 */
export function decoderStage(
  code: string,
  fields: Record<string, unknown>,
  { sources, bytes, losses }: { sources: number; bytes: number; losses: number },
  patterns: readonly ReadonlySet<number>[],
  milliseconds: number,
): Measured {
  const wire = blocksOf(`${code}_encoder`, fields, sources, bytes)
  const arriving = patterns.map((lost) => wire.filter((_, n) => !lost.has(n)))
  const size = arriving[0].length
  const stage = new Stage(`${code}_decoder`, {})
  let block = 0
  const measure = () => {
    let [spent, packets] = [0, 0]
    while (spent < milliseconds * 1e6) {
      for (let room = 256; room >= size; room -= size, block++, packets += sources) {
        for (const packet of arriving[block % arriving.length]) {
          new DataView(packet.buffer).setUint32(8, block)
          stage.add(packet)
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
