/** The ring of a member of a simulated network: what is put in comes out, and what a dead thread leaves behind hinders nobody. */
import { describe, expect, it } from 'vitest'
import { Batch } from './batch.ts'
import { closeRing, createRing, NetworkRing, RING_PACKETS, unlockRing } from './network-ring.ts'
import { Packets } from './packets.ts'
import { Random } from './random.ts'

/** Word of a ring's memory that says who is putting packets in. */
const LOCK = 0

function packetsOf(slots: number): Packets {
  return new Packets({ slots, mtu: 256, headroom: 0, tailroom: 0 })
}

/** Packets of `sizes` bytes that begin anywhere in their slots. */
function fill(packets: Packets, batch: Batch, sizes: readonly number[], random: Random): Uint8Array[] {
  return sizes.map((bytes) => {
    const packet = packets.allocate()
    packets.offset[packet] = packet * packets.slotBytes + random.below(packets.slotBytes - bytes + 1)
    packets.length[packet] = bytes
    random.fill(packets.data, packets.offset[packet], bytes)
    batch.push(packet)
    return packets.data.slice(packets.offset[packet], packets.offset[packet] + bytes)
  })
}

function bytesOf(packets: Packets, batch: Batch): Uint8Array[] {
  const all = Array.from(batch.handles.subarray(0, batch.length), (packet) => {
    const at = packets.offset[packet]
    return packets.data.slice(at, at + packets.length[packet])
  })
  packets.releaseAll(batch)
  return all
}

describe('a ring', () => {
  it('gives back what was put in, in order, over many rounds', () => {
    const random = new Random(3)
    const [near, far] = [packetsOf(64), packetsOf(64)]
    const memory = createRing(255)
    const [writer, reader] = [new NetworkRing(memory), new NetworkRing(memory)]
    const [out, back] = [new Batch(near), new Batch(far)]
    for (let round = 0; round < 400; round++) {
      const sizes = Array.from({ length: 1 + random.below(63) }, () => random.below(256))
      const sent = fill(near, out, sizes, random)
      expect(writer.put(1, near, out)).toBe(0)
      near.releaseAll(out)
      expect(reader.pending).toBe(true)
      expect(reader.take(far, back, round)).toBe(0)
      const lengths = Array.from(back.handles.subarray(0, back.length), (packet) => far.length[packet])
      expect(Buffer.concat(bytesOf(far, back)).equals(Buffer.concat(sent))).toBe(true)
      expect(lengths).toEqual(sizes)
      expect(reader.pending).toBe(false)
    }
  })

  it('asks for one wake after the member has found nothing, and for none while it is at work', () => {
    const packets = packetsOf(8)
    const memory = createRing(100)
    const [writer, reader] = [new NetworkRing(memory), new NetworkRing(memory)]
    const batch = new Batch(packets)
    fill(packets, batch, [10], new Random(1))
    expect(writer.claimWake()).toBe(false)
    writer.put(1, packets, batch)
    expect([writer.claimWake(), writer.claimWake()]).toEqual([true, false])
    writer.put(1, packets, batch)
    expect(writer.claimWake()).toBe(false)
    const taken = new Batch(packets)
    reader.take(packets, taken, 0)
    writer.put(1, packets, batch)
    expect(writer.claimWake()).toBe(false)
    reader.take(packets, taken, 0)
    expect(reader.pending).toBe(false)
    writer.put(1, packets, batch)
    expect(writer.claimWake()).toBe(true)
  })

  it('takes nothing once it is closed', () => {
    const packets = packetsOf(8)
    const memory = createRing(100)
    const ring = new NetworkRing(memory)
    const batch = new Batch(packets)
    fill(packets, batch, [10], new Random(1))
    closeRing(memory)
    expect(ring.put(1, packets, batch)).toBe(0)
    expect([ring.pending, ring.claimWake()]).toEqual([false, false])
  })

  it('is free again when the thread that was putting packets in is dead', () => {
    const packets = packetsOf(8)
    const memory = createRing(100)
    const ring = new NetworkRing(memory)
    // A run that died with the lock taken, as another thread sees it.
    Atomics.store(new Int32Array(memory), LOCK, 7)
    unlockRing(memory, 8)
    expect(Atomics.load(new Int32Array(memory), LOCK)).toBe(7)
    unlockRing(memory, 7)
    const batch = new Batch(packets)
    fill(packets, batch, [10], new Random(1))
    expect(ring.put(1, packets, batch)).toBe(0)
    expect(ring.pending).toBe(true)
  })

  it('holds as many packets as it says, and counts go on past 32 bits', () => {
    const packets = packetsOf(300)
    const memory = createRing(4)
    const [writer, reader] = [new NetworkRing(memory), new NetworkRing(memory)]
    // Head and tail are the second and third word; they wrap.
    new Int32Array(memory).fill(0x7fffffff - 500, 1, 3)
    const [batch, taken] = [new Batch(packets), new Batch(packets)]
    fill(packets, batch, Array<number>(256).fill(4), new Random(1))
    for (let i = 0; i < RING_PACKETS / 256; i++) expect(writer.put(1, packets, batch)).toBe(0)
    expect(writer.put(1, packets, batch)).toBe(256)
    expect([reader.takeFull(), reader.takeFull()]).toEqual([256, 0])
    packets.releaseAll(batch)
    let total = 0
    while (reader.pending) {
      reader.take(packets, taken, 0)
      total += taken.length
      packets.releaseAll(taken)
    }
    expect(total).toBe(RING_PACKETS)
  })
})
