import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { native } from '../native/native.ts'
import { remoteRecord } from './address.ts'
import { Batch } from './batch.ts'
import { collectGarbage } from './garbage.ts'
import { Packets } from './packets.ts'

/** Memory of the process that no file stands for, bytes. */
function anonymousMemory(): number {
  const [, kilobytes] = /RssAnon:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8')) as RegExpExecArray
  return Number(kilobytes) * 1024
}

describe('packets', () => {
  it('take as much memory where a slab before has been given back as where none has: what no packet has needed is not touched', async () => {
    const options = { slots: 131_072, mtu: 1500 }
    const stacks = 2 * 4 * options.slots // the free slots, and which train each packet is in
    const make = () => Array.from({ length: 5 }, () => new Packets(options))
    make()
    collectGarbage()
    const growths: number[] = []
    const made = Array.from({ length: 5 }, () => {
      const before = anonymousMemory()
      const packets = new Packets(options)
      growths.push(anonymousMemory() - before)
      return packets
    })
    expect(made.map((packets) => packets.allocate())).toEqual([0, 0, 0, 0, 0])
    // Their median: other threads of the process take and give back memory too.
    expect(growths.sort((a, b) => a - b)[2]).toBeLessThan(2 * stacks)
  })

  it('hands out every slot once, takes them back, reuses the last first', () => {
    const packets = new Packets({ slots: 4, mtu: 100 })
    const taken = [0, 1, 2, 3].map(() => packets.allocate())
    expect(new Set(taken).size).toBe(4)
    expect(packets.allocate()).toBe(-1)
    packets.release(taken[2])
    expect(packets.allocate()).toBe(taken[2])
    const batch = new Batch(packets)
    for (const packet of taken) batch.push(packet)
    packets.releaseAll(batch)
    expect(packets.held).toBe(0)
    expect(batch.length).toBe(0)
  })

  it('slots and trains begin with a cache line, however large the slab is', () => {
    for (const slots of [1, 3, 1000, 20_000]) {
      const packets = new Packets({ slots, mtu: 1500, trains: 1 })
      const { data, slotBytes } = packets
      expect(slotBytes % 64).toBe(0)
      const places = [0, slotBytes, slots * slotBytes]
      expect(places.map((at) => native.bytesToCacheLine(data.subarray(at)))).toEqual([0, 0, 0])
      packets.data[slotBytes] = 7
      expect(packets.view.getUint8(slotBytes)).toBe(7)
    }
  })

  it('grows and shrinks at both ends within the slot and says no beyond', () => {
    const packets = new Packets({ slots: 1, mtu: 100, headroom: 16, tailroom: 8 })
    const packet = packets.allocate()
    expect(packets.append(packet, 100)).toBe(16)
    expect(packets.prepend(packet, 16)).toBe(0)
    expect(packets.prepend(packet, 1)).toBe(-1)
    const rest = packets.tailroomOf(packet)
    expect(packets.append(packet, rest)).toBe(116)
    expect(packets.append(packet, 1)).toBe(-1)
    expect(packets.trimFront(packet, 16)).toBe(0)
    expect(packets.length[packet]).toBe(100 + rest)
  })

  it('a clone has bytes and annotations of its own', () => {
    const packets = new Packets({ slots: 2, mtu: 100 })
    const record = remoteRecord({ address: '2001:db8::1', port: 7, family: 6 })
    const packet = packets.allocate()
    const at = packets.append(packet, 3)
    packets.data.set([1, 2, 3], at)
    packets.arrival[packet] = 5
    packets.client[packet] = 9
    packets.setRemote(packet, record)
    const copy = packets.clone(packet)
    packets.data.fill(0, at, at + 3)
    expect([...packets.data.subarray(packets.offset[copy], packets.offset[copy] + 3)]).toEqual([1, 2, 3])
    expect([packets.arrival[copy], packets.client[copy], packets.remoteIs(copy, record)]).toEqual([5, 9, true])
    expect(packets.clone(packet)).toBe(-1)
  })

  it('a packet in a train moves to its slot to grow, and the last to leave frees the train', () => {
    const packets = new Packets({ slots: 2, mtu: 100, trains: 1 })
    const base = packets.slots * packets.slotBytes
    const both = [packets.allocate(), packets.allocate()]
    packets.trainFree[0] = 0
    packets.data.set([1, 2, 3, 4, 5], base)
    both.forEach((packet, i) => {
      packets.train[packet] = 1
      packets.trainReferences[0]++
      packets.offset[packet] = base + i * 3
      packets.length[packet] = 3 - i
    })
    expect(packets.headroomOf(both[0])).toBe(128)
    const copy = packets.prepend(both[0], 1)
    expect([...packets.data.subarray(copy + 1, copy + 4)]).toEqual([1, 2, 3])
    expect(packets.trainFree[0]).toBe(0)
    packets.release(both[1])
    expect(packets.trainFree[0]).toBe(1)
    expect(packets.train[both[1]]).toBe(0)
    packets.release(both[0])
    expect(packets.held).toBe(0)
  })

  it('are those of another run once it has ended, all of them, where that one is to have the same', () => {
    const options = { slots: 3, mtu: 100, headroom: 128, tailroom: 64, trains: 2 }
    const packets = new Packets(options)
    const left = [packets.allocate(), packets.allocate()]
    packets.train[left[0]] = 2
    packets.trainReferences[1] = 1
    packets.trainFree[0] = 1
    packets.reset()
    expect([packets.held, packets.trainFree[0], packets.trainReferences[1]]).toEqual([0, 2, 0])
    const again = Array.from({ length: 3 }, () => packets.allocate())
    expect(again.map((packet) => packets.train[packet])).toEqual([0, 0, 0])
    expect(new Set([...again, packets.allocate()])).toEqual(new Set([0, 1, 2, -1]))
    expect(packets.fits(options)).toBe(true)
    const others = { slots: 4, mtu: 1000, headroom: 129, tailroom: 65, trains: 0 }
    for (const [name, value] of Object.entries(others))
      expect(packets.fits({ ...options, [name]: value }), name).toBe(false)
  })

  it.each([1, 3, 4, 5, 8, 11])(
    'a batch of %i packets is added up and given back whole, whichever of them is in a train',
    (count) => {
      for (let inTrain = -1; inTrain < count; inTrain++) {
        const packets = new Packets({ slots: count, mtu: 100, trains: 1 })
        const batch = new Batch(packets)
        for (let n = 0; n < count; n++) {
          const packet = packets.allocate()
          packets.append(packet, 10 + n)
          batch.push(packet)
        }
        if (inTrain >= 0) {
          packets.trainFree[0] = 0
          packets.train[batch.handles[inTrain]] = 1
          packets.trainReferences[0] = 1
        }
        expect(packets.bytesOf(batch)).toBe(10 * count + (count * (count - 1)) / 2)
        packets.releaseAll(batch)
        expect([packets.held, packets.trainFree[0], batch.length], `packet ${inTrain} of ${count}`).toEqual([0, 1, 0])
        const again = Array.from({ length: count }, () => packets.allocate())
        expect(new Set(again).size).toBe(count)
        expect(again.every((packet) => packets.train[packet] === 0)).toBe(true)
      }
    },
  )
})
