/** Repairs of all block codes that come twice, are made up, cut short, or contradict what came: no source is lost for them, and what each counts as. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  BLOCK_CODES,
  blockOf,
  bytesOut,
  changed,
  decoderOf,
  encoderOf,
  hex,
  isRepair,
  REED_SOLOMON,
  RLNC,
  sizes,
  sorted,
} from '../../../../test/harness/block-codes.ts'
import { payload } from '../../../../test/harness/component.ts'
import { Random } from '../../engine/random.ts'

/** One of four is long, so that a repair made without it shows. */
const sources = [payload(30, 1), payload(60, 2), payload(45, 3), payload(10, 4)]

describe.each(BLOCK_CODES)('%s', (_key, code) => {
  const good = blockOf(code, sources, 4)
  const [s0, s1, s2, s3] = good.sources
  const shorter = blockOf(
    code,
    sources.map((bytes) => bytes.slice(0, 20)),
    4,
  )
  const longer = blockOf(code, [payload(200, 1), ...sources.slice(1)], 4)
  const fewer = blockOf(code, sources.slice(0, 2), 4, { k: 4 })

  /** Feeds packets one at a time; all sources come out, and these numbers. */
  function feed(arriving: readonly Uint8Array[], numbers: Record<string, number>): void {
    const bench = decoderOf(code)
    for (const packet of arriving) bench.send('in', packet)
    expect(sorted(bytesOut(bench))).toEqual(sorted(sources))
    expect(bench.metrics().dec).toMatchObject({ wrong_recoveries: 0, ...numbers })
    bench.stop()
  }

  it('a packet that the network brings again counts as duplicate, whatever became of the first, and is never malformed', () => {
    const scenario = fc.record({
      k: fc.integer({ min: 1, max: 10 }),
      r: fc.integer({ min: 1, max: 5 }),
      count: fc.integer({ min: 1, max: 30 }),
      seed: fc.integer(),
    })
    let again = 0
    fc.assert(
      fc.property(scenario, ({ k, r, count, seed }) => {
        const random = new Random(seed)
        const encoder = encoderOf(code, k, r)
        const sent = Array.from({ length: count }, (_, n) => payload(random.below(200), n))
        encoder.send('in', sent)
        encoder.notify('in', 'FLUSH')
        const came = bytesOut(encoder).filter(() => !random.chance(0.2))
        encoder.stop()
        const arriving = came
          .flatMap((packet) => Array.from({ length: 1 + random.below(3) }, () => packet))
          .map((packet, n) => ({ packet, at: n + random.below(20) }))
          .sort((one, other) => one.at - other.at)
        const bench = decoderOf(code)
        for (const { packet } of arriving) bench.send('in', packet)
        const { dec } = bench.metrics()
        expect(dec.malformed_packets).toBe(0)
        // What is of blocks behind the window is late, whether it comes again or not.
        expect(dec.duplicate_packets).toBeLessThanOrEqual(arriving.length - came.length)
        expect(dec.duplicate_packets + dec.late_packets).toBeGreaterThanOrEqual(arriving.length - came.length)
        again += dec.duplicate_packets
        bench.stop()
      }),
      { seed: 8, numRuns: 150 },
    )
    expect(again).toBeGreaterThan(1000)
  })

  it('one too short for a source is dropped, before that comes or after, and the others recover', () => {
    feed([s1, shorter.repairs[0], s0, s2, good.repairs[1]], { malformed_packets: 1, recovered_packets: 1 })
    feed([shorter.repairs[0], s1, s0, s2, good.repairs[1]], { malformed_packets: 1, recovered_packets: 1 })
  })

  it('one that knows of no such source is dropped, where repairs are over whole blocks', () => {
    const malformed_packets = code.progressive ? 0 : 1
    feed([s2, fewer.repairs[0], s0, s1, good.repairs[1]], { malformed_packets })
    feed([fewer.repairs[0], s2, s0, s1, good.repairs[1]], { malformed_packets })
  })

  it('one that a source contradicted is a duplicate when it comes again, and the right one is taken in its place', () => {
    feed([shorter.repairs[0], s1, shorter.repairs[0], s0, s2, good.repairs[0]], {
      malformed_packets: 1,
      duplicate_packets: 1,
      recovered_packets: 1,
      held_packets: 0,
    })
  })

  it('one whose result is impossible is dropped, is a duplicate when it comes again, and the right one is taken in its place', () => {
    feed([s0, s1, s2, shorter.repairs[0], longer.repairs[1], longer.repairs[1], good.repairs[1]], {
      malformed_packets: 2,
      duplicate_packets: 1,
      recovered_packets: 1,
    })
    // Two bytes of the length are wrong, so it has the shape of the right ones.
    const at = code.symbolAt
    const forged = changed(good.repairs[0], at, good.repairs[0][at] ^ 0xff)
    feed([s0, s1, s2, forged, forged, good.repairs[1]], {
      malformed_packets: 1,
      duplicate_packets: 1,
      recovered_packets: 1,
    })
  })

  it('another one of an index that is taken is malformed', () => {
    feed([good.repairs[0], longer.repairs[0], s0, s1, s2], { malformed_packets: 1, recovered_packets: 1 })
  })

  it('of a block that is whole those that would fit are redundant, also where a wrong one had come before', () => {
    const bench = decoderOf(code)
    bench.send('in', [longer.repairs[0], s0, s1, s2, s3])
    expect(bytesOut(bench)).toEqual(sources)
    const after = [good.repairs[1], good.repairs[1], good.repairs[2], longer.repairs[3]]
    for (const packet of after) bench.send('in', packet)
    expect(bench.metrics().dec).toMatchObject(
      // Of kodok nobody looks what a whole block's repairs would be: those over its first sources differ anyway.
      code.progressive
        ? { malformed_packets: 0, redundant_packets: 4, duplicate_packets: 1 }
        : { malformed_packets: 1, redundant_packets: 3, duplicate_packets: 1 },
    )
    bench.stop()
  })

  it('made up ones for all indices cost no source', () => {
    feed([longer.repairs[0], longer.repairs[1], s0, s1, s2, s3], { malformed_packets: 2 })
  })

  it('one that was dropped has not come, as far as the measured loss goes, until the right one does', () => {
    const lossOf = (packets: (block: number) => Uint8Array[]) => {
      const bench = decoderOf(code)
      for (let block = 0; block < 400; block++) for (const packet of packets(block)) bench.send('in', packet)
      bytesOut(bench)
      const loss = bench.metrics().dec.measured_loss
      bench.stop()
      return loss
    }
    const wrongOf = (block: number) =>
      blockOf(
        code,
        sources.map((bytes) => bytes.slice(0, 20)),
        2,
        { block },
      ).repairs
    const rightOf = (block: number) => blockOf(code, sources, 2, { block })
    // Contradicts a source.
    const dropped = (block: number) => [wrongOf(block)[0], ...rightOf(block).sources, rightOf(block).repairs[1]]
    expect(lossOf(dropped)).toBeCloseTo(1 / 6, 10)
    expect(lossOf((block) => [...dropped(block), rightOf(block).repairs[0]])).toBe(0)
    // Its result is impossible; the last source is lost.
    const impossible = (block: number) => {
      const { sources: own, repairs } = rightOf(block)
      const forged = changed(repairs[0], code.symbolAt, repairs[0][code.symbolAt] ^ 0xff)
      return [...own.slice(0, 3), forged, repairs[1]]
    }
    expect(lossOf(impossible)).toBeCloseTo(2 / 6, 10)
  })

  it('a forged one that contradicts nothing yet makes a packet, and the source that shows it passes too', () => {
    const two = sizes(2)
    const { sources: own, repairs } = blockOf(code, two, 1)
    const forged = changed(repairs[0], 30, repairs[0][30] ^ 1)
    const bench = decoderOf(code)
    bench.send('in', [own[0], forged])
    expect(bytesOut(bench)).toHaveLength(2)
    bench.send('in', [own[1], own[1]])
    expect(bytesOut(bench)).toEqual([two[1]])
    expect(bench.metrics().dec).toMatchObject({
      wrong_recoveries: 1,
      recovered_packets: 1,
      duplicate_packets: 1,
      late_packets: 0,
    })
    bench.stop()
  })
})

it('reed_solomon: the repairs of one kind that suffice count, and those alike are redundant then', () => {
  const { sources: own, repairs } = blockOf(REED_SOLOMON, sources, 5)
  const wrong = blockOf(
    REED_SOLOMON,
    sources.map((bytes) => bytes.slice(0, 50)),
    5,
  )
  const bench = decoderOf(REED_SOLOMON)
  for (const packet of [own[0], own[2], wrong.repairs[3], repairs[0], repairs[1]]) bench.send('in', packet)
  expect(sorted(bytesOut(bench))).toEqual(sorted(sources))
  bench.send('in', repairs[2])
  expect(bench.metrics().dec).toMatchObject({ recovered_packets: 2, spent_packets: 3, redundant_packets: 1 })
  expect(bench.metrics().dec.malformed_packets).toBe(0)
  bench.send('in', wrong.repairs[4])
  expect(bench.metrics().dec).toMatchObject({ redundant_packets: 1, malformed_packets: 1 })
  bench.stop()
})

describe.each([
  ['reed_solomon', REED_SOLOMON],
  ['rlnc', RLNC],
])('%s', (_key, code) => {
  it('cut short ones cost a block nothing while good ones are enough', () => {
    const own = [payload(20, 1), payload(27, 2), payload(34, 3), payload(41, 4)]
    const { sources: wire, repairs } = blockOf(code, own, 3)
    for (const order of [
      [0, 1, 2, 3],
      [1, 0, 2, 3],
      [2, 1, 0, 3],
    ]) {
      const bench = decoderOf(code)
      // Sources 2 and 3, the long ones, are lost.
      const arriving = [repairs[0].slice(0, code.symbolAt + 32), repairs[1], repairs[2], wire[1]]
      bench.send('in', wire[0])
      for (const n of order) bench.send('in', arriving[n])
      expect(sorted(bytesOut(bench))).toEqual(sorted(own))
      expect(bench.metrics().dec).toMatchObject({ recovered_packets: 2, wrong_recoveries: 0 })
      bench.stop()
    }
  })
})

describe.each(BLOCK_CODES)('%s', (_key, code) => {
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
  ])('(%i,%i): made up, cut short or contradictory, they never cost a source that came', (k, r) => {
    const encoder = encoderOf(code, k, r)
    encoder.send(
      'in',
      Array.from({ length: k * 30 }, (_, n) => payload(20 + ((n * 7) % 40), n)),
    )
    const wire = bytesOut(encoder)
    encoder.stop()
    const repairs = wire.filter(isRepair)
    fc.assert(
      fc.property(
        fc.array(spoilt, { minLength: 1, maxLength: 60, size: 'max' }),
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
          const bench = decoderOf(code)
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
            if (genuine && !isRepair(packet)) expect(out.get(hex(packet.subarray(14)))).toBe(1)
          }
          bench.stop()
        },
      ),
      { seed: 22, numRuns: 60 },
    )
  })
})
