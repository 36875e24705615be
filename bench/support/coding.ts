/** An encoder, and a decoder of what it makes with losses, each as a whole component. */
import { Stage } from './stage.ts'

export interface Measured {
  /** Nanoseconds per source packet, over `milliseconds`. */
  measure(): number
  stop(): void
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

/** What an encoder makes of one block of `sources` packets of `bytes` bytes. */
function blockOf(key: string, fields: Record<string, unknown>, sources: number, bytes: number): Uint8Array[] {
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
 * The decoder of `${code}_encoder` on batches of whole blocks, again and again the one of `sources` packets that lost those for which
 * `isLost` is true. The block's number stands at byte 8 of every packet. `stop` throws when fewer than `losses` of a block came back.
 */
export function decoderStage(
  code: string,
  fields: Record<string, unknown>,
  { sources, bytes, losses }: { sources: number; bytes: number; losses: number },
  isLost: (index: number) => boolean,
  milliseconds: number,
): Measured {
  const arriving = blockOf(`${code}_encoder`, fields, sources, bytes).filter((_, n) => !isLost(n))
  const stage = new Stage(`${code}_decoder`, {})
  let block = 0
  const measure = () => {
    let [spent, packets] = [0, 0]
    while (spent < milliseconds * 1e6) {
      for (let room = 256; room >= arriving.length; room -= arriving.length, block++, packets += sources) {
        for (const packet of arriving) {
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
