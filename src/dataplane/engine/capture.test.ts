/** The ring that copies of packets travel in. */
import { expect, test } from 'vitest'
import { Batch } from './batch.ts'
import { CaptureReader, CaptureWriter, createCapture } from './capture.ts'
import { Packets } from './packets.ts'
import { Random } from './random.ts'

function rig(most = 65_535) {
  const packets = new Packets({ slots: 512, mtu: 1500 })
  const ring = createCapture()
  const writer = new CaptureWriter(ring, most, packets)
  const batch = new Batch(packets)
  /** Sends packets of these lengths, each filled with its number. */
  const send = (lengths: number[], first: number, link = 0) => {
    lengths.forEach((length, i) => {
      const packet = packets.allocate()
      const at = packets.append(packet, length)
      packets.data.fill((first + i) & 0xff, at, at + length)
      batch.push(packet)
    })
    writer.take(batch, link, first)
    packets.releaseAll(batch)
    batch.length = 0
  }
  return { send, reader: new CaptureReader(ring), writer, ring, packets }
}

test('packets of any length come out whole and in order over many turns of the ring', () => {
  const { send, reader } = rig()
  const random = new Random(7)
  let first = 0
  const expected: number[] = []
  const seen: number[] = []
  for (let round = 0; round < 400; round++) {
    const lengths = Array.from({ length: 100 }, () => random.below(1500))
    send(lengths, first, round)
    expected.push(...lengths)
    for (let read = reader.read(40_000); read.length > 0; read = reader.read(40_000)) {
      for (const { data, length, link, time } of read) {
        expect([data.length, link, time]).toEqual([length, round, first])
        expect(data.every((byte) => byte === (seen.length & 0xff))).toBe(true)
        seen.push(length)
      }
    }
    first += 100
  }
  expect(seen).toEqual(expected)
  expect(expected.reduce((sum, length) => sum + length, 0)).toBeGreaterThan(6 * (4 << 20))
  expect(reader.dropped).toBe(0)
})

test('what finds no room is dropped and counted; what was there comes out', () => {
  const { send, reader } = rig()
  for (let round = 0; round < 40; round++) send(Array(100).fill(1400), round * 100)
  const { dropped } = reader
  expect(dropped).toBeGreaterThan(500)
  const seen = reader.read(Number.POSITIVE_INFINITY)
  expect(seen.length + dropped).toBe(4_000)
  expect(seen.map(({ data }) => data[0])).toEqual(seen.map((_, i) => i & 0xff))
  send([5], 1)
  expect(reader.read(10)).toMatchObject([{ length: 5 }])
})

test('of long packets the first bytes are kept', () => {
  const { send, reader } = rig(64)
  send([1500, 64, 10, 0], 3)
  expect(reader.read(10_000).map(({ data, length }) => [data.length, length])).toEqual([
    [64, 1500],
    [64, 64],
    [10, 10],
    [0, 0],
  ])
})

test('the next writer of a ring begins anew: its reader sees nothing of the one before, whose last packets are still to come', () => {
  const { send, ring, packets } = rig()
  send([100, 200], 1)
  const next = new CaptureReader(ring, 2)
  expect(next.read(10_000)).toEqual([])
  // Full, and not closed yet in the thread of the run.
  for (let round = 0; round < 40; round++) send(Array(100).fill(1400), round * 100)
  expect([next.read(10_000), next.dropped]).toEqual([[], 0])
  const writer = new CaptureWriter(ring, 65_535, packets)
  expect([next.read(10_000), next.dropped]).toEqual([[], 0])
  const batch = new Batch(packets)
  const packet = packets.allocate()
  packets.append(packet, 77)
  batch.push(packet)
  writer.take(batch, 5, 9)
  packets.releaseAll(batch)
  expect(next.read(10_000)).toMatchObject([{ length: 77, link: 5, time: 9 }])
})
