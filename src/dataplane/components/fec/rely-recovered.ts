/** Packets of what a sliding window recovered. */
import type { SlidingDecoder } from '../../codes/sliding-decoder.ts'
import type { Packets } from '../../engine/packets.ts'
import { LENGTH_BYTES } from './rely-header.ts'

/** The payload of a source that was recovered just now, in a slot of its own and without annotations; -1 when no slot is free. */
export function recoveredPacket(packets: Packets, decoder: SlidingDecoder, sequence: number): number {
  const packet = packets.allocate()
  if (packet < 0) return -1
  const { slotBytes, headroom, tailroom } = packets
  const slot = packet * slotBytes
  const end = slot + slotBytes - tailroom
  let at = slot + headroom - LENGTH_BYTES
  const bytes = decoder.write(sequence, at, end - at)
  if (bytes > end - at) {
    at = end - bytes
    decoder.write(sequence, at, bytes)
  }
  packets.offset[packet] = at + LENGTH_BYTES
  packets.length[packet] = bytes - LENGTH_BYTES
  return packet
}
