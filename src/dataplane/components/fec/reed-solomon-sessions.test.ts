/** reed_solomon_decoder among many encoders and hostile repairs: every source that comes leaves once, and nothing is invented. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Bench, drive, payload, tagOf } from '../../../../test/harness/component.ts'
import { Random } from '../../engine/random.ts'

const decoder = (config: object = {}) =>
  drive({ dec: { reed_solomon_decoder: { input: 'in', output: 'out', ...config } } })
const bytesOut = (bench: Bench) => bench.take('out').map(({ bytes }) => bytes)

/** What one encoder makes of `count` packets, whose tags say whose they are and which. */
function wireOf(encoder: number, count: number, [k, r]: readonly [number, number]): Uint8Array[] {
  const bench = drive(
    { enc: { reed_solomon_encoder: { input: 'in', output: 'out', symbols: k, repair: r } } },
    { seed: encoder + 1 },
  )
  bench.send(
    'in',
    Array.from({ length: count }, (_, n) => payload(20 + ((n * 7 + encoder) % 40), encoder * 1000 + n)),
  )
  const wire = bytesOut(bench)
  bench.stop()
  return wire
}

const isSource = (packet: Uint8Array) => packet[0] === 0xb0
/** The payload of a source packet. */
const contentOf = (packet: Uint8Array) => Buffer.from(packet.subarray(14)).toString('hex')
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

/** Takes a packet from each list in turn. */
function inTurn(lists: Uint8Array[][], burst = 1): Uint8Array[] {
  const left = lists.map((list) => [...list])
  const all: Uint8Array[] = []
  while (left.some((list) => list.length > 0)) for (const list of left) all.push(...list.splice(0, burst))
  return all
}

/** Packets stray up to `span` places from where they were. */
function reorder<T>(list: T[], random: Random, span: number): T[] {
  return list
    .map((item, n) => ({ item, at: n + random.below(span + 1) }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)
}

describe.each([
  [8, 2],
  [4, 4],
] as const)('(%i,%i)', (...code) => {
  it.each([
    [5, 1],
    [64, 1],
    [65, 1],
    [100, 1],
    [100, 7],
  ])(
    '%i encoders interleaved, %i packets at a time, with loss and reordering: every source once',
    (encoders, burst) => {
      const count = 80
      const random = new Random(encoders)
      const wires = Array.from({ length: encoders }, (_, n) => wireOf(n, count, code))
      const arriving = reorder(
        inTurn(wires, burst).filter(() => !random.chance(0.1)),
        random,
        encoders * 3,
      )
      const bench = decoder()
      for (let at = 0; at < arriving.length; at += 50) bench.send('in', arriving.slice(at, at + 50))
      const tags = bytesOut(bench).map(tagOf)
      const unique = new Set(tags)
      expect(tags.length).toBe(unique.size)
      for (const packet of arriving.filter(isSource)) expect(unique.has(tagOf(packet.subarray(14)))).toBe(true)
      // What is there beyond the arrived was recovered, and was sent.
      const sources = arriving.filter(isSource).length
      const { dec } = bench.metrics()
      expect(dec.recovered_packets - dec.late_packets).toBe(tags.length - sources)
      for (const tag of tags) expect(tag % 1000).toBeLessThan(count)
      expect(dec).toMatchObject({ wrong_recoveries: 0, malformed_packets: 0, duplicate_packets: 0 })
      expect(dec.followed_sessions).toBe(Math.min(encoders, 64))
      if (encoders <= 64) {
        expect(dec.unfollowed_packets).toBe(0)
        // A block of (8,2) survives 2 losses of 10; of what was lost nearly all comes back.
        expect(tags.length).toBeGreaterThan(encoders * count * 0.97)
      } else if (burst === 1) {
        // Those that keep their place go on as if the others were not there.
        const perEncoder = new Map<number, number>()
        for (const tag of tags)
          perEncoder.set(Math.floor(tag / 1000), (perEncoder.get(Math.floor(tag / 1000)) ?? 0) + 1)
        const best = [...perEncoder.values()].sort((a, b) => b - a).slice(0, 64)
        expect(best.reduce((sum, got) => sum + got)).toBeGreaterThan(64 * count * 0.96)
        expect(dec.unfollowed_packets).toBeGreaterThan(0)
      }
      bench.stop()
    },
  )
})

describe('sessions', () => {
  it('are as many as max_sessions says, the one silent longest giving way to a newcomer with 8 packets', () => {
    const bench = decoder({ max_sessions: 3 })
    const wires = Array.from({ length: 5 }, (_, n) => wireOf(n, 40, [4, 2]))
    // Blocks of 6 packets: the first of each.
    for (const n of [0, 1, 2]) bench.send('in', wires[n].slice(0, 6))
    bench.send('in', wires[0].slice(6, 12))
    bytesOut(bench)
    const lossy = (n: number, block: number) => {
      const packets = wires[n].slice(block * 6, block * 6 + 6)
      bench.send('in', [...packets.slice(0, 1), ...packets.slice(3)])
      return bytesOut(bench).length
    }
    // 7 packets of the fourth: passed on, nothing recovered. With the eighth it takes the place of the second.
    expect(lossy(3, 0)).toBe(2)
    expect(bench.metrics().dec).toMatchObject({ unfollowed_packets: 2, unfollowed_repair_packets: 2 })
    bench.send('in', wires[3].slice(6, 12))
    expect(bytesOut(bench)).toHaveLength(4)
    expect(lossy(3, 2)).toBe(4)
    expect(lossy(0, 2)).toBe(4)
    expect(lossy(2, 1)).toBe(4)
    expect(lossy(1, 1)).toBe(2)
    expect(bench.metrics().dec.followed_sessions).toBe(3)
    bench.stop()
  })

  it('do not recover again what passed before they were followed', () => {
    const bench = decoder({ max_sessions: 1 })
    const [old, newcomer] = [wireOf(0, 8, [8, 8]), wireOf(1, 16, [8, 8])]
    bench.send('in', old)
    // 8 sources pass; the 8 repairs of their block would give all of them once more.
    bench.send('in', newcomer.slice(0, 16))
    expect(bytesOut(bench)).toHaveLength(16)
    // The next block is followed from its beginning.
    bench.send('in', newcomer.slice(24))
    expect(bytesOut(bench).map(tagOf)).toEqual(Array.from({ length: 8 }, (_, n) => 1008 + n))
    expect(bench.metrics().dec.recovered_packets).toBe(8)
    bench.stop()
  })

  it('keep no more than a quarter of the slots of the run, however many leave blocks unfinished', () => {
    const bench = decoder()
    const quarter = bench.packets.slots / 4
    const wires = Array.from({ length: 64 }, (_, n) => wireOf(n, 1000, [4, 1]))
    // Of each block two sources are lost, which one repair does not give back.
    const kept = wires.map((wire) => wire.filter((_, n) => n % 5 > 1))
    let sources = 0
    for (let at = 0; at < 750; at += 250) {
      for (const wire of kept) {
        const part = wire.slice(at, at + 250)
        sources += part.filter(isSource).length
        bench.send('in', part)
        expect(bytesOut(bench)).toHaveLength(part.filter(isSource).length)
        expect(bench.packets.held).toBeLessThan(quarter + 256)
      }
    }
    expect(bench.packets.held).toBeGreaterThan(quarter / 2)
    expect(sources).toBe(64 * 500)
    bench.stop()
  })
})

describe('repairs', () => {
  /** Ways to spoil a repair, some of them of another block, session or code. */
  const spoilt = fc.record({
    of: fc.nat(),
    closing: fc.option(fc.integer({ min: 1, max: 8 }), { nil: undefined }),
    cut: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
    longer: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
    flip: fc.option(fc.tuple(fc.integer({ min: 12, max: 70 }), fc.integer({ min: 1, max: 255 })), { nil: undefined }),
    index: fc.option(fc.nat(7), { nil: undefined }),
    block: fc.option(fc.oneof(fc.integer({ min: -300, max: 300 }), fc.integer()), { nil: undefined }),
    shape: fc.option(fc.tuple(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 20 })), { nil: undefined }),
    before: fc.integer({ min: -40, max: 40 }),
  })

  it.each([
    [8, 2],
    [4, 4],
    [3, 5],
  ] as const)('(%i,%i): made up, cut short or contradictory, they never cost a source that came', (k, r) => {
    const wire = wireOf(3, k * 30, [k, r])
    const repairs = wire.filter((packet) => !isSource(packet))
    fc.assert(
      fc.property(
        fc.array(spoilt, { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 1, max: 50 }),
        fc.nat(),
        (list, chunk, seed) => {
          const random = new Random(seed)
          const arriving = wire.map((packet, n) => ({ packet, at: n, genuine: true })).filter(() => !random.chance(0.1))
          for (const { of, before, ...change } of list) {
            const repair = repairs[of % repairs.length]
            let packet = Uint8Array.from(repair)
            const view = new DataView(packet.buffer)
            if (change.closing !== undefined) packet[7] = change.closing
            if (change.index !== undefined) packet[3] = change.index
            if (change.block !== undefined) view.setInt32(8, view.getInt32(8) + change.block)
            if (change.shape) packet.set(change.shape, 1)
            if (change.flip && change.flip[0] < packet.length) packet[change.flip[0]] ^= change.flip[1]
            if (change.cut !== undefined) packet = packet.slice(0, Math.max(0, packet.length - change.cut))
            if (change.longer !== undefined)
              packet = Uint8Array.from([...packet, ...new Uint8Array(change.longer).fill(7)])
            arriving.push({ packet, at: wire.indexOf(repair) + before, genuine: false })
          }
          arriving.sort((a, b) => a.at - b.at)
          const bench = decoder()
          for (let at = 0; at < arriving.length; at += chunk) {
            bench.send(
              'in',
              arriving.slice(at, at + chunk).map(({ packet }) => packet),
            )
            bench.check()
          }
          const out = new Map<string, number>()
          for (const bytes of bytesOut(bench)) out.set(hex(bytes), (out.get(hex(bytes)) ?? 0) + 1)
          for (const { packet, genuine } of arriving) {
            if (genuine && isSource(packet)) expect(out.get(contentOf(packet))).toBe(1)
          }
          bench.stop()
        },
      ),
      { seed: 22, numRuns: 150 },
    )
  })

  it('cut short ones cost a block nothing while good ones are enough', () => {
    const [s0, s1, s2, s3, ...repairs] = wireOf(5, 4, [4, 3])
    for (const order of [
      [0, 1, 2, 3],
      [1, 0, 2, 3],
      [2, 1, 0, 3],
    ]) {
      const bench = decoder()
      // Sources 2 and 3, the long ones, are lost.
      const arriving = [repairs[0].slice(0, 44), repairs[1], repairs[2], s1]
      bench.send('in', s0)
      for (const n of order) bench.send('in', arriving[n])
      expect(bytesOut(bench).map(hex).sort()).toEqual([s0, s1, s2, s3].map(contentOf).sort())
      expect(bench.metrics().dec).toMatchObject({ recovered_packets: 2, wrong_recoveries: 0 })
      bench.stop()
    }
  })

  it('a forged one that contradicts nothing yet makes a packet, and the source that shows it passes too', () => {
    const [s0, s1, repair] = wireOf(6, 2, [2, 1])
    const forged = Uint8Array.from(repair)
    forged[30] ^= 1
    const bench = decoder()
    bench.send('in', [s0, forged])
    expect(bytesOut(bench)).toHaveLength(2)
    bench.send('in', [s1, s1])
    expect(bytesOut(bench).map(hex)).toEqual([contentOf(s1)])
    expect(bench.metrics().dec).toMatchObject({ wrong_recoveries: 1, duplicate_packets: 1, late_packets: 0 })
    bench.stop()
  })
})
