/** One end of raft by itself: what it does with packets of other sessions, hostile ones among them. */
import { randomInt } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Bench, drive, payload } from '../../../../test/harness/component.ts'
import { Random } from '../../engine/random.ts'

const MS = 1e6
const SEED = Number(process.env.PENSTOCK_TEST_SEED ?? randomInt(2 ** 31))
/** Packets of the short round; PENSTOCK_TEST_RAFT_PACKETS makes another. */
const PACKETS = Number(process.env.PENSTOCK_TEST_RAFT_PACKETS ?? 20_000)

/** An end with two carriers, a stream, and another that nothing is sent on; whoever drives it is the network. */
function end(seed: number, timeout = 100, { stream = 5, first = 1 } = {}): Bench {
  const carriers = [0, 1].map((i) => ({ input: `come ${i}`, output: `go ${i}`, carrier_handle: i + first }))
  const streams = [
    { input: 'in', output: 'out', stream_handle: stream, realtime_stream: { timeout } },
    { output: 'other out', stream_handle: 4, realtime_stream: { timeout } },
  ]
  return drive({ it: { raft: { streams, carriers } } }, { seed })
}

const packetsOf = (bench: Bench, name: string): Uint8Array[] => bench.take(name).map(({ bytes }) => bytes)

/** Moves what both ends have sent to the other, and time on by 1 ms; `lose` may drop what goes from the first to the second. */
function exchange(first: Bench, second: Bench, lose: (packet: Uint8Array) => boolean = () => false): void {
  for (const i of [0, 1]) {
    const there = packetsOf(first, `go ${i}`).filter((packet) => !lose(packet))
    const back = packetsOf(second, `go ${i}`)
    second.send(`come ${i}`, there)
    first.send(`come ${i}`, back)
  }
  first.advance(MS)
  second.advance(MS)
}

const counterOf = (bench: Bench, name: string): number => bench.metrics().it[name] as number

describe('ends that number their streams or carriers differently', () => {
  test.each([
    ['streams', { stream: 8 }, /^the other end sends stream 5, which has no output here/, [{ stream: 5 }]],
    [
      'carriers',
      { first: 2 },
      /^what comes on carrier \d was sent on carrier \d and is dropped/,
      [
        { carrier: 2, sent_on: 1 },
        { carrier: 3, sent_on: 2 },
      ],
    ],
  ])('%s: told once, with both numbers', (_, others, text, fields) => {
    const near = end(1)
    const far = end(2, 100, others)
    for (let n = 0; n < 20; n++) {
      near.send('in', payload(100, n))
      exchange(near, far)
    }
    expect(far.take('out')).toEqual([])
    expect(counterOf(far, 'misrouted_packets')).toBeGreaterThanOrEqual(20)
    const warned = far.log.filter(({ level }) => level === 'WARN')
    expect(warned.map((line) => line.fields)).toEqual(fields)
    for (const { message } of warned) expect(message).toMatch(text)
    near.stop()
    far.stop()
  })
})

describe('sessions', () => {
  test('a new session counts once it has answered a probe, and packets of the former one no more', () => {
    const far = end(1)
    const near = end(2)
    for (let n = 0; n < 50; n++) {
      near.send('in', payload(100, n))
      exchange(near, far)
    }
    expect(far.take('out').length).toBeGreaterThanOrEqual(49)
    // The last packets of the old session, still on their way.
    near.send('in', payload(100, 99))
    const old = packetsOf(near, 'go 0').concat(packetsOf(near, 'go 1'))
    near.stop()
    const anew = end(3)
    for (let n = 0; n < 50; n++) {
      anew.send('in', payload(100, 1000 + n))
      exchange(anew, far)
    }
    const tags = far.take('out').map(({ bytes }) => new DataView(bytes.buffer).getUint32(0))
    expect(tags).toContain(1049)
    expect(tags.filter((tag) => tag >= 1000).length).toBeGreaterThan(40)
    expect(counterOf(far, 'sessions')).toBe(2)
    const before = counterOf(far, 'other_session_packets')
    far.send('come 0', old)
    far.advance(10 * MS)
    expect(counterOf(far, 'other_session_packets')).toBe(before + old.length)
    expect(far.take('out')).toEqual([])
    expect(counterOf(far, 'sessions')).toBe(2)
    anew.stop()
    far.stop()
  })

  test('both directions go on after one end began anew', () => {
    const far = end(1)
    for (const seed of [2, 3]) {
      const near = end(seed)
      for (let n = 0; n < 100; n++) {
        far.send('in', payload(100, n))
        exchange(near, far)
      }
      expect(near.take('out').length).toBeGreaterThan(80)
      near.stop()
    }
    far.stop()
  })

  test('packets of its own, come back, are dropped', () => {
    const bench = end(1)
    bench.send('in', payload(100, 1))
    const own = packetsOf(bench, 'go 0').concat(packetsOf(bench, 'go 1'))
    bench.send('come 0', own)
    bench.advance(10 * MS)
    expect(bench.take('out')).toEqual([])
    bench.check()
    bench.stop()
  })
})

describe('an end that nobody answers', () => {
  test('leaves no carrier, until the other end is heard on another one', () => {
    const near = end(1)
    const far = end(2)
    for (let n = 0; n < 3000; n++) {
      near.send('in', payload(100, n))
      near.advance(MS)
      far.advance(MS)
    }
    expect([counterOf(near, 'carriers_0_times_left'), counterOf(near, 'carriers_1_times_left')]).toEqual([0, 0])
    expect(near.log.filter(({ level }) => level === 'WARN')).toEqual([])
    for (const i of [0, 1]) near.take(`go ${i}`)
    for (let n = 0; n < 1000; n++) {
      near.send('in', payload(100, n))
      near.take('go 0')
      exchange(near, far)
    }
    expect([counterOf(near, 'carriers_0_used'), counterOf(near, 'carriers_1_used')]).toEqual([0, 1])
    expect(counterOf(near, 'carriers_1_loss')).toBeLessThan(0.02)
    expect(far.take('out').length).toBeGreaterThan(850)
    near.stop()
    far.stop()
  })

  test('leaves none for what was not answered before there was another end', () => {
    const near = end(1)
    near.send('in', payload(100, 1))
    near.advance(3000 * MS)
    for (const i of [0, 1]) near.take(`go ${i}`)
    const far = end(2)
    for (let n = 0; n < 300; n++) {
      near.send('in', payload(100, n))
      exchange(near, far)
    }
    expect([counterOf(near, 'carriers_0_times_left'), counterOf(near, 'carriers_1_times_left')]).toEqual([0, 0])
    near.stop()
    far.stop()
  })
})

describe('a piece that says something else than its sender wrote', () => {
  /** Three packets of two pieces each that came in at the same time, as they go: first and last piece of each, in turn. */
  function pieces(): Uint8Array[] {
    const near = end(1)
    near.send(
      'in',
      [0, 1, 2].map((tag) => payload(2000, tag)),
    )
    const wire = packetsOf(near, 'go 0').concat(packetsOf(near, 'go 1'))
    near.stop()
    const sequenceOf = (packet: Uint8Array) => new DataView(packet.buffer).getUint32(20)
    return wire.filter(([kind]) => kind === 0xd0).sort((one, other) => sequenceOf(one) - sequenceOf(other))
  }

  /** What another end gives out when it hears these. */
  function heard(wire: readonly Uint8Array[]): { out: string[]; other: number; malformed: number; incomplete: number } {
    const far = end(2)
    for (const i of [0, 1])
      far.send(
        `come ${i}`,
        wire.filter((packet) => packet[11] === i + 1),
      )
    far.advance(200 * MS)
    const out = far.take('out').map(({ bytes }) => Buffer.from(bytes).toString('latin1'))
    const other = far.take('other out').length
    const [malformed, incomplete] = ['malformed_packets', 'incomplete_packets'].map((name) => counterOf(far, name))
    far.check()
    far.stop()
    return { out, other, malformed: malformed as number, incomplete: incomplete as number }
  }

  const whole = [0, 1, 2].map((tag) => Buffer.from(payload(2000, tag)).toString('latin1'))

  test('is needed by the packet it is of: as they were, all come', () => {
    expect(pieces()).toHaveLength(6)
    expect(heard(pieces())).toEqual({ out: whole, other: 0, malformed: 0, incomplete: 0 })
  })

  test('is no piece of another packet, though that lacks one', () => {
    const wire = pieces()
    const moved = wire[3] as Uint8Array
    moved[23] ^= 2
    // The last piece of the second packet says that it is that of the first, which is lost.
    const { out, malformed } = heard([wire[0], moved, wire[4], wire[5]] as Uint8Array[])
    expect(out).toEqual([whole[2]])
    expect(malformed).toBe(1)
  })

  test('is no piece of another stream', () => {
    const wire = pieces()
    for (const packet of wire) packet[19] ^= 1
    expect(heard(wire)).toMatchObject({ out: [], other: 0, malformed: 6 })
    // Nor where the same bit of its sequence is wrong too.
    for (const packet of wire) packet[23] ^= 1
    expect(heard(wire)).toMatchObject({ out: [], other: 0, malformed: 6 })
  })

  test('neither ends its packet nor begins another', () => {
    for (const bit of [0x40, 0x80]) {
      const wire = pieces()
      const changed = wire[bit === 0x40 ? 0 : 1] as Uint8Array
      changed[26] ^= bit
      const { out, malformed } = heard(wire)
      expect(out).toEqual([whole[1], whole[2]])
      expect(malformed).toBe(1)
    }
  })

  test('is no piece of a packet that came in at another time', () => {
    const wire = pieces()
    const changed = wire[1] as Uint8Array
    changed[31] ^= 1
    expect(heard(wire)).toMatchObject({ out: [whole[1], whole[2]], incomplete: 2 })
  })
})

describe(`hostile packets, seed ${SEED}`, () => {
  /** Packets of an end whose other end loses some, so that repairs and repeats are among them, and the payloads in them. */
  function captured(seed: number): { wire: Uint8Array[]; sent: Set<string> } {
    const near = end(seed)
    const far = end(seed + 1)
    const random = new Random(seed)
    const wire: Uint8Array[] = []
    const sent = new Set<string>()
    for (let n = 0; n < 400; n++) {
      const packet = payload(40 + random.below(n % 10 === 0 ? 4000 : 1000), n)
      sent.add(Buffer.from(packet).toString('latin1'))
      near.send('in', packet.length > 2000 ? packet.slice(0, 2000) : packet)
      sent.add(Buffer.from(packet.subarray(0, 2000)).toString('latin1'))
      exchange(near, far, (bytes) => {
        wire.push(bytes)
        return random.chance(0.1)
      })
    }
    near.stop()
    far.stop()
    return { wire, sent }
  }

  /** Bytes in front of what is sent: of a data packet with its symbol's, of others as many as a repair has. */
  const headerOf = (packet: Uint8Array): number => Math.min(packet[0] === 0xd0 ? 32 : 28, packet.length)

  /** A packet as it was, cut, made longer, made up, or with bits of its header changed. Who changes a payload is noticed by authentication only. */
  function mutated(wire: readonly Uint8Array[], random: Random): Uint8Array {
    const packet = wire[random.below(wire.length)].slice()
    switch (random.below(6)) {
      case 0:
        return packet
      case 1:
        return packet.slice(0, random.below(packet.length + 1))
      case 2: {
        const made = new Uint8Array(random.below(200))
        random.fill(made, 0, made.length)
        if (made.length > 0 && random.chance(0.5)) made[0] = 0xd0 + random.below(5)
        return made
      }
      case 3:
        return Uint8Array.of(...packet, ...new Uint8Array(1 + random.below(40)))
      default:
        for (let i = 0; i <= random.below(3); i++) packet[random.below(headerOf(packet))] ^= 1 << random.below(8)
        return packet
    }
  }

  test('throw nothing, leak nothing, and deliver no payload that was not sent', () => {
    const random = new Random(SEED)
    let delivered = 0
    for (let done = 0; done < PACKETS; ) {
      const { wire, sent } = captured(1 + random.below(1e6))
      const bench = end(random.bits() >>> 1)
      // The genuine session is known first: from then on others have to show that they are there.
      bench.send('come 0', wire[0])
      for (let n = 0; n < 2_000 && done < PACKETS; ) {
        const packets = Array.from({ length: 1 + random.below(50) }, () => mutated(wire, random))
        bench.send(`come ${random.below(2)}`, packets)
        bench.advance(random.below(5 * MS))
        n += packets.length
        done += packets.length
        for (const { bytes } of bench.take('out')) {
          delivered++
          const text = Buffer.from(bytes).toString('latin1')
          if (!sent.has(text))
            expect.fail(
              `${bytes.length} bytes that were not sent: ${Buffer.from(bytes.subarray(0, 60)).toString('hex')}`,
            )
        }
        for (const i of [0, 1]) bench.take(`go ${i}`)
        expect(bench.take('other out')).toEqual([])
        expect(bench.packets.held).toBeLessThan(20_000)
      }
      bench.stop()
    }
    expect(delivered).toBeGreaterThan(PACKETS / 500)
  }, 600_000)
})
