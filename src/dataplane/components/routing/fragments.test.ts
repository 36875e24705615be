/** fragmentizer and defragmentizer: packets cut and joined over any order of their fragments, bounded against what never comes. */
import { describe, expect, test } from 'vitest'
import { drive, payload, type Refused } from '../../../../test/harness/component.ts'
import { Random } from '../../engine/random.ts'

const cutter = (fragment_size?: number) => ({
  cut: { fragmentizer: { input: 'in', output: 'wire', ...(fragment_size !== undefined && { fragment_size }) } },
})
const joiner = { join: { defragmentizer: { input: 'in', output: 'out' } } }
const SECOND = 1e9

/** A fragment as it is on the wire. */
function fragment(packet: number, index: number, count: number, body: ArrayLike<number>, sender = 1): Uint8Array {
  const header = Uint8Array.of(sender >> 8, sender, packet >>> 24, packet >>> 16, packet >>> 8, packet, index, count)
  return Uint8Array.of(...header, ...Array.from(body))
}

function shuffled<T>(list: readonly T[], random: Random): T[] {
  const left = [...list]
  return list.map(() => left.splice(random.below(left.length), 1)[0])
}

describe('fragmentizer', () => {
  test.each([
    [undefined, 1192],
    [0, 1192],
    [64, 56],
    [1000, 992],
  ])('fragment_size %s gives pieces of %i bytes, in order', (size, piece) => {
    const bench = drive(cutter(size), { mtu: 9000 })
    const lengths = [0, 1, piece - 1, piece, piece + 1, piece * 2, piece * 3 + 5]
    lengths.forEach((length, n) => {
      const packet = payload(length, n)
      bench.send('in', packet, { remote: '192.0.2.1:7', client: 9 })
      const wire = bench.take('wire')
      const count = Math.max(1, Math.ceil(length / piece))
      expect(wire.map(({ bytes }) => [bytes[6], bytes[7]])).toEqual(Array.from({ length: count }, (_, i) => [i, count]))
      for (const { bytes, remote, client } of wire) {
        expect([remote, client, new DataView(bytes.buffer).getUint32(2)]).toEqual(['192.0.2.1:7', 9, n])
        expect(bytes.length).toBeLessThanOrEqual(piece + 8)
      }
      expect(wire.slice(0, -1).every(({ bytes }) => bytes.length === piece + 8)).toBe(true)
      expect(Uint8Array.from(wire.flatMap(({ bytes }) => [...bytes.subarray(8)]))).toEqual(packet)
    })
    bench.stop()
  })

  test('255 fragments are the most', () => {
    const bench = drive(cutter(64), { mtu: 20_000 })
    bench.send('in', payload(255 * 56))
    expect(bench.received('wire')).toHaveLength(255)
    bench.send('in', payload(255 * 56 + 1))
    expect(bench.received('wire')).toHaveLength(255)
    expect(bench.metrics().cut).toMatchObject({ oversize_packets: 1, added_fragments: 254 })
    bench.stop()
  })

  test('all fragments or none, when slots run out', () => {
    const bench = drive(cutter(64))
    const taken: number[] = []
    while (bench.packets.available > 3) taken.push(bench.packets.allocate())
    bench.send('in', payload(56 * 4))
    expect(bench.metrics().cut.no_slot_packets).toBe(1)
    bench.send('in', payload(56 * 3))
    expect(bench.received('wire')).toHaveLength(3)
    for (const packet of taken) bench.packets.release(packet)
    bench.stop()
  })

  test('a batch of packets that make more than a batch of fragments loses none of their bytes', () => {
    const bench = drive({ ...cutter(64), join: { defragmentizer: { input: 'wire', output: 'out' } } })
    const packets = Array.from({ length: 256 }, (_, i) => payload(200 + i * 3, i))
    bench.send('in', packets)
    expect(bench.received('out').map(({ bytes }) => bytes)).toEqual(packets)
    bench.stop()
  })

  test('below 64 bytes there is no fragment', () => {
    try {
      drive(cutter(63))
      expect.fail('it was taken')
    } catch (error) {
      expect((error as Refused).problems).toEqual([
        {
          pointer: '/engine_config/pipeline/cut/fragmentizer/fragment_size',
          message: '63 is below the minimum of 64 bytes; 0 or nothing is 1200',
        },
      ])
    }
  })
})

describe('defragmentizer', () => {
  test.each([1, 2, 3])(
    'any order of fragments gives the packets back, the annotations of the last to come (seed %i)',
    (seed) => {
      const random = new Random(seed)
      const sender = drive(cutter(100), { seed, mtu: 20_000 })
      const packets = Array.from({ length: 40 }, (_, i) => payload(random.below(9000), i))
      const wire = packets.map((packet) => {
        sender.send('in', packet)
        return sender.take('wire').map(({ bytes }) => bytes)
      })
      sender.stop()
      const bench = drive(joiner, { mtu: 20_000 })
      wire.forEach((fragments, i) => {
        const order = shuffled(fragments, random)
        order.forEach((bytes, n) => {
          bench.send('in', bytes, { client: n, remote: `192.0.2.${i + 1}:${n + 1}` })
        })
        const [out] = bench.take('out')
        expect(out.bytes).toEqual(packets[i])
        expect(out).toMatchObject({ client: order.length - 1, remote: `192.0.2.${i + 1}:${order.length}` })
      })
      expect(bench.metrics().join).toMatchObject({ held_packets: 0, incomplete_packets: 0, malformed_packets: 0 })
      bench.stop()
    },
  )

  test('many packets at once, of two senders with the same numbers, all fragments mixed', () => {
    // Whose packets are looked up in the same places as those of sender 1.
    const OTHER = 1 + 39 * 1024
    const random = new Random(5)
    const pieces: Uint8Array[] = []
    for (let packet = 0; packet < 500; packet++) {
      for (const sender of [1, OTHER]) {
        const body = payload(300, packet + sender)
        for (let i = 0; i < 3; i++) pieces.push(fragment(packet, i, 3, body.subarray(i * 100, i * 100 + 100), sender))
      }
    }
    const bench = drive(joiner)
    bench.send('in', shuffled(pieces, random))
    const expected = Array.from({ length: 500 }, (_, i) => [payload(300, i + 1), payload(300, i + OTHER)]).flat()
    const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
    expect(new Set(bench.received('out').map(({ bytes }) => text(bytes)))).toEqual(new Set(expected.map(text)))
    expect(bench.received('out')).toHaveLength(1000)
    bench.stop()
  })

  test('a packet is given up a second after its first fragment, whatever came since', () => {
    const bench = drive(joiner)
    bench.send('in', fragment(1, 0, 3, [1]))
    bench.advance(0.9 * SECOND)
    bench.send('in', [fragment(1, 1, 3, [2]), fragment(2, 0, 2, [9])])
    bench.advance(0.1 * SECOND - 1)
    expect(bench.metrics().join).toMatchObject({ held_packets: 2, incomplete_packets: 0 })
    bench.advance(1)
    expect(bench.metrics().join).toMatchObject({ held_packets: 1, incomplete_packets: 1 })
    bench.send('in', [fragment(1, 2, 3, [3]), fragment(2, 1, 2, [8])])
    expect(bench.received('out').map(({ bytes }) => [...bytes])).toEqual([[9, 8]])
    expect(bench.metrics().join).toMatchObject({ held_packets: 0, duplicate_packets: 1 })
    bench.stop()
  })

  test.each<[string, Uint8Array[]]>([
    ['another number of fragments', [fragment(1, 0, 3, [1, 2]), fragment(1, 1, 2, [3, 4])]],
    ['another length of piece', [fragment(1, 0, 3, [1, 2]), fragment(1, 1, 3, [3])]],
    ['a last one longer than the others', [fragment(1, 0, 2, [1, 2]), fragment(1, 1, 2, [3, 4, 5])]],
    ['the others shorter than the last', [fragment(1, 1, 2, [3, 4, 5]), fragment(1, 0, 2, [1, 2])]],
    ['the same one with other bytes', [fragment(1, 0, 3, [1, 2]), fragment(1, 0, 3, [1, 3])]],
    ['the same last one with other bytes', [fragment(1, 2, 3, [1, 2]), fragment(1, 2, 3, [1, 3])]],
    ['the same one with another length', [fragment(1, 2, 3, [1, 2]), fragment(1, 2, 3, [1])]],
  ])('fragments that contradict each other cost the packet: %s', (_, contradiction) => {
    const bench = drive(joiner)
    bench.send('in', contradiction)
    expect(bench.metrics().join).toMatchObject({ contradictory_packets: 2, held_packets: 0 })
    // What comes of it later makes nothing.
    bench.send(
      'in',
      [0, 1, 2].map((index) => fragment(1, index, 3, [1, 2])),
    )
    expect(bench.received('out')).toEqual([])
    expect(bench.metrics().join).toMatchObject({ duplicate_packets: 3 })
    bench.stop()
  })

  test('duplicates are dropped: of a fragment, and of all fragments of a packet that is whole', () => {
    const bench = drive(joiner)
    const pieces = [fragment(1, 2, 3, [5]), fragment(1, 0, 3, [1, 2]), fragment(1, 1, 3, [3, 4])]
    bench.send('in', [pieces[0], pieces[0], pieces[1], pieces[1], pieces[0], pieces[2], ...pieces])
    expect(bench.received('out').map(({ bytes }) => [...bytes])).toEqual([[1, 2, 3, 4, 5]])
    expect(bench.metrics().join).toMatchObject({ duplicate_packets: 6, contradictory_packets: 0, held_packets: 0 })
    bench.stop()
  })

  test('more than 1,024 packets: the oldest gives way', () => {
    const bench = drive(joiner)
    for (let i = 0; i < 1030; i++) bench.send('in', fragment(i, 0, 2, [i & 255]))
    expect(bench.metrics().join).toMatchObject({ held_packets: 1024, incomplete_packets: 6 })
    bench.send('in', [fragment(5, 1, 2, [0]), fragment(6, 1, 2, [0])])
    expect(bench.received('out').map(({ bytes }) => [...bytes])).toEqual([[6, 0]])
    bench.stop()
  })

  test('more than 4 MiB: the oldest gives way', () => {
    const bench = drive(joiner, { mtu: 60_000 })
    const body = new Uint8Array(32_768)
    // What has become whole counts no more.
    for (let i = 200; i < 204; i++) bench.send('in', [fragment(i, 0, 2, body), fragment(i, 1, 2, body.subarray(1))])
    for (let i = 0; i < 129; i++) bench.send('in', fragment(i, 0, 2, body))
    expect(bench.metrics().join).toMatchObject({ held_packets: 128, incomplete_packets: 1 })
    bench.stop()
  })

  test('65,535 bytes are the most that is put together', () => {
    const bench = drive(joiner, { mtu: 40_000 })
    const [most, more] = [payload(65_535, 3), payload(65_536, 4)]
    const halves = (packet: number, whole: Uint8Array) =>
      [0, 1].map((i) => fragment(packet, i, 2, whole.subarray(i * 32_768, (i + 1) * 32_768)))
    bench.send('in', halves(1, most).reverse())
    bench.send('in', halves(2, more))
    bench.send('in', halves(3, more).reverse())
    expect(bench.received('out').map(({ bytes }) => bytes.length)).toEqual([65_535])
    expect(bench.received('out')[0].bytes).toEqual(most)
    expect(bench.metrics().join).toMatchObject({ oversize_packets: 3, duplicate_packets: 1, held_packets: 0 })
    bench.send('in', fragment(4, 0, 255, new Uint8Array(300)))
    expect(bench.metrics().join).toMatchObject({ oversize_packets: 4, held_packets: 0 })
    bench.stop()
  })

  test.each<[string, Uint8Array]>([
    ['too short', new Uint8Array(7)],
    ['empty', new Uint8Array(0)],
    ['no fragments', fragment(1, 0, 0, [1])],
    ['an index that is none', fragment(1, 2, 2, [1])],
    ['a fragment of nothing', fragment(1, 0, 2, [])],
  ])('what is no fragment is malformed: %s', (_, packet) => {
    const bench = drive(joiner)
    bench.send('in', packet)
    expect(bench.received('out')).toEqual([])
    expect(bench.metrics().join.malformed_packets).toBe(1)
    bench.stop()
  })

  test('64 senders are followed; a newcomer needs 8 fragments and one that was silent meanwhile', () => {
    const bench = drive(joiner)
    let serial = 0
    const whole = (sender: number) => {
      serial++
      bench.send('in', [fragment(serial, 0, 2, [1], sender), fragment(serial, 1, 2, [2], sender)])
      return bench.take('out').length
    }
    for (let sender = 0; sender < 64; sender++) expect(whole(sender)).toBe(1)
    const rounds = Array.from({ length: 6 }, () => {
      for (let sender = 1; sender < 64; sender++) expect(whole(sender)).toBe(1)
      return whole(1000)
    })
    // Two fragments a round: with the eighth it takes the place of sender 0, whose fragments find none any more.
    expect(rounds).toEqual([0, 0, 0, 0, 1, 1])
    expect(bench.metrics().join.unfollowed_packets).toBe(7)
    expect(whole(0)).toBe(0)
    bench.send('in', fragment(1, 0, 1, [7], 2000))
    expect(bench.take('out')).toHaveLength(1)
    bench.stop()
  })

  test.each([
    ['fragments', 2],
    ['packets in one piece, once each has a place', 1],
  ])('a newcomer gets no place while %s of all are heard', (_, count) => {
    const bench = drive(joiner)
    for (let serial = 1; serial < 60; serial++) {
      const pieces = serial === 1 ? 2 : count
      for (let sender = 0; sender < 64; sender++) bench.send('in', fragment(serial, 0, pieces, [1], sender))
      bench.send('in', fragment(serial, 0, 2, [1], 1000))
      bench.advance(20e6)
    }
    expect(bench.metrics().join.unfollowed_packets).toBe(59)
    bench.stop()
  })

  test('a RESET makes it forget what is not whole, and what was', () => {
    const bench = drive(joiner)
    bench.send('in', [fragment(1, 0, 2, [1]), fragment(2, 0, 2, [3]), fragment(2, 1, 2, [4])])
    bench.notify('in', 'FLUSH')
    expect(bench.metrics().join.held_packets).toBe(1)
    bench.notify('in', 'RESET')
    bench.send('in', [fragment(1, 1, 2, [2]), fragment(2, 0, 2, [3]), fragment(2, 1, 2, [4])])
    expect(bench.received('out').map(({ bytes }) => [...bytes])).toEqual([
      [3, 4],
      [3, 4],
    ])
    expect(bench.notifications('out')).toEqual(['FLUSH', 'RESET'])
    expect(bench.metrics().join).toMatchObject({ incomplete_packets: 1, held_packets: 1 })
    bench.stop()
    expect(bench.metrics().join).toMatchObject({ held_at_end_packets: 1, held_packets: 0 })
  })
})
