/** The decoders of all block codes: what is recovered and when, what is counted, what of a block is given up, what junk does. */
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
  sizes,
  sorted,
} from '../../../../test/harness/block-codes.ts'
import { payload, tagOf } from '../../../../test/harness/component.ts'
import { Random } from '../../engine/random.ts'

describe.each(BLOCK_CODES)('%s_decoder', (key, code) => {
  const exact = key === 'reed_solomon'

  it('delivers through an encoder, any batches, losses, reordering and duplicates, each packet at most once and as it was', () => {
    const shapes: [number, number][] = [[8, 2], [10, 4], [20, 5], [50, 10], [7, 1], exact ? [100, 100] : [100, 30]]
    const scenario = fc.record({
      code: fc.constantFrom(...shapes),
      blocks: fc.integer({ min: 1, max: 4 }),
      seed: fc.integer(),
      chunk: fc.integer({ min: 1, max: 200 }),
    })
    let missing = 0
    let sent = 0
    fc.assert(
      fc.property(scenario, ({ code: [k, r], blocks, seed, chunk }) => {
        const random = new Random(seed)
        const sources = Array.from({ length: k * blocks }, (_, i) => payload(4 + random.below(1300), i))
        // Where repairs may stand in the middle of a block, half of them do.
        const points = [
          { source_packets: k >> 1, repair_packets: r >> 1 },
          { source_packets: k, repair_packets: r - (r >> 1) },
        ]
        const encoder = encoderOf(code, k, r, code.progressive ? { repair_configs: points } : {})
        for (let at = 0; at < sources.length; at += chunk) encoder.send('in', sources.slice(at, at + chunk))
        const wire = bytesOut(encoder)
        encoder.stop()
        const arrive: { bytes: Uint8Array; order: number }[] = []
        for (let b = 0; b < blocks; b++) {
          const packets = wire.slice(b * (k + r), (b + 1) * (k + r))
          // Random combinations of the whole block are one more than is missing, where there are several: a few may say the same.
          const last = code.progressive ? r - (r >> 1) : r
          const lost = exact || r === 1 ? r : last - 1
          for (let n = 0; n < lost; n++) packets.splice(random.below(packets.length), 1)
          for (const bytes of packets) {
            arrive.push({ bytes, order: b * 1000 + random.below(1500) })
            if (random.chance(0.2)) arrive.push({ bytes, order: b * 1000 + random.below(1500) })
          }
        }
        arrive.sort((one, other) => one.order - other.order)
        const decoder = decoderOf(code)
        const list = arrive.map(({ bytes }) => bytes)
        for (let at = 0; at < list.length; at += chunk) decoder.send('in', list.slice(at, at + chunk))
        const left = new Set(sources.map(hex))
        for (const bytes of bytesOut(decoder))
          expect(left.delete(hex(bytes)), `${tagOf(bytes)} was sent, and came once`).toBe(true)
        missing += left.size
        sent += sources.length
        decoder.stop()
      }),
      { seed: 5, numRuns: 60 },
    )
    expect(sent).toBeGreaterThan(3000)
    expect(missing).toBeLessThanOrEqual(exact ? 0 : 20)
  })

  it('recovers at the first moment it can, one packet at a time, and counts what came for nothing', () => {
    const sources = sizes(4)
    const { sources: s, repairs } = blockOf(code, sources, 3)
    const bench = decoderOf(code)
    const step = (packet: Uint8Array) => {
      bench.send('in', packet, { remote: '[2001:db8::1]:7', client: 3 })
      return bench.take('out')
    }
    expect(step(repairs[2])).toEqual([])
    expect(step(s[3]).map(({ bytes }) => bytes)).toEqual([sources[3]])
    expect(step(s[0]).map(({ bytes }) => bytes)).toEqual([sources[0]])
    expect(bench.metrics().dec.held_packets).toBe(1)
    const completed = step(repairs[0])
    expect(completed.map(({ bytes }) => bytes)).toEqual([sources[1], sources[2]])
    expect(completed[0]).toMatchObject({ remote: '[2001:db8::1]:7', client: 3 })
    for (const packet of [s[0], s[1], s[1], repairs[0], repairs[1]]) expect(step(packet)).toEqual([])
    expect(bench.metrics().dec).toMatchObject({
      recovered_packets: 2,
      late_packets: 1,
      duplicate_packets: 3,
      redundant_packets: 1,
      spent_packets: 2,
      held_packets: 0,
      malformed_packets: 0,
      unrecovered_packets: 0,
    })
    bench.stop()
  })

  it('recovers blocks that were closed early, and goes on where block ids wrap around', () => {
    const bench = decoderOf(code)
    for (let n = -3; n < 3; n++) {
      const sources = sizes(5, 20 + n)
      const made = blockOf(code, sources, 3, { k: 10, block: n })
      bench.send('in', [made.sources[4], made.repairs[1], made.sources[0], made.repairs[0], made.repairs[2]])
      expect(sorted(bytesOut(bench))).toEqual(sorted(sources))
    }
    const old = blockOf(code, sizes(5, 17), 3, { k: 10, block: -3 })
    bench.send('in', old.sources[0])
    expect(bench.metrics().dec).toMatchObject({
      recovered_packets: 18,
      unrecovered_packets: 0,
      duplicate_packets: 1,
      late_packets: 0,
    })
    bench.stop()
  })

  it('gives blocks up when they leave the window, counts what they lack, and measures the loss', () => {
    const bench = decoderOf(code)
    const blocks = 1500
    for (let block = 0; block < blocks; block++) {
      const { sources, repairs } = blockOf(code, sizes(8, 4), 2, { block })
      // Of every fifth block three packets are lost, sources 0 and 1 and a repair; of every 50th all.
      if (block % 50 === 7) continue
      bench.send('in', block % 5 === 0 ? [...sources.slice(2), repairs[0]] : [...sources, ...repairs])
      bench.take('out')
    }
    const { dec } = bench.metrics()
    const gone = blocks - 128
    const damaged = Math.ceil(gone / 5)
    const silent = Math.floor((gone - 8) / 50) + 1
    expect(dec.unrecovered_packets).toBe(damaged * 2 + silent * 8)
    expect(dec.measured_loss).toBeGreaterThan(0.07)
    expect(dec.measured_loss).toBeLessThan(0.09)
    expect(bench.packets.held).toBeLessThan(1100)
    bench.send('in', blockOf(code, sizes(8, 4), 2, { block: 3 }).sources)
    expect(bytesOut(bench)).toEqual([])
    expect(bench.metrics().dec.late_packets).toBe(8)
    bench.stop()
  })

  it.each([0, 20])(
    'takes blocks that were lost whole, the first after %i others, for as short as those around them',
    (first) => {
      const bench = decoderOf(code)
      let previous = 0
      const block = (count: number, id: number) => {
        const made = blockOf(code, sizes(count), 2, { k: 8, block: id, previous })
        previous = code.progressive ? count : 0
        return Object.values(made).flat()
      }
      for (let id = 0; id < first + 400; id++) {
        const wire = block(id < first + 60 ? 1 : 8, id)
        // Of the first block a repair comes, so that its session is heard; of it and the lost ones nothing says how long they were.
        if (id < first || id >= first + 20) bench.send('in', wire)
        else if (id === 0) bench.send('in', changed(wire[1], 7, 1))
      }
      const { dec } = bench.metrics()
      expect(dec.recovered_packets).toBe(first === 0 ? 1 : 0)
      expect(dec.unrecovered_packets).toBe(first === 0 ? 19 : 20)
      bench.stop()
    },
  )

  it('expects all repairs of a block that was closed early, unless those depend on where', () => {
    const bench = decoderOf(code)
    for (let block = 0; block < 300; block++) {
      const { sources, repairs } = blockOf(code, sizes(3), 3, { k: 8, block, previous: code.progressive ? 3 : 0 })
      bench.send('in', [...sources, repairs[0]])
    }
    // Three sources and a repair of each came. Of kodok nobody knows that there were others.
    expect(bench.metrics().dec.measured_loss).toBeCloseTo(code.progressive ? 0 : 2 / 6, 10)
    expect(bench.metrics().dec.unrecovered_packets).toBe(0)
    bench.stop()
  })

  it('forgets everything at RESET and passes notifications on', () => {
    const bench = decoderOf(code)
    const sources = sizes(4)
    const made = blockOf(code, sources, 2)
    bench.send('in', [made.repairs[0], made.sources[0], made.sources[1]])
    bench.notify('in', 'RESET')
    expect(bench.packets.held).toBe(0)
    bytesOut(bench)
    bench.send('in', [made.sources[2], made.repairs[1], made.sources[3]])
    expect(bytesOut(bench)).toEqual([sources[2], sources[3]])
    bench.notify('in', 'FLUSH')
    expect(bench.notifications('out')).toEqual(['RESET', 'FLUSH'])
    bench.stop()
  })

  it('recovers beside a source that there was no slot to keep', () => {
    const bench = decoderOf(code)
    const { packets } = bench
    const all = sizes(4)
    const made = blockOf(code, all, 2)
    const taken: number[] = []
    while (packets.available > 1) taken.push(packets.allocate())
    bench.send('in', made.sources[0])
    expect(bench.metrics().dec.unkept_packets).toBe(1)
    for (const packet of taken) packets.release(packet)
    bench.send('in', [made.sources[1], made.sources[2], ...made.repairs])
    expect(sorted(bytesOut(bench))).toEqual(sorted(all))
    bench.stop()
  })

  it('drops what cannot be of its encoder, or of the block it says, and goes on', () => {
    const all = sizes(4, 50)
    const { sources, repairs } = blockOf(code, all, 3)
    const bench = decoderOf(code)
    bench.send('in', [sources[0], repairs[0]])
    bytesOut(bench)
    const wrong = [
      new Uint8Array(0),
      sources[1].slice(0, 13), // shorter than a header
      repairs[1].slice(0, code.symbolAt + 1), // without all of a length
      repairs[1].slice(0, code.symbolAt + 48), // shorter than a source
      sources[1].slice(0, -1), // its length says otherwise
      changed(sources[1], 3, 4), // index beyond k
      changed(repairs[1], 3, 3), // index beyond r
      changed(repairs[1], 7, 0), // over no source
      changed(repairs[1], 7, 5), // more sources than k
      changed(sources[1], 7, 5), // the same of the block before
      changed(sources[1], 0, code.source ^ 8),
      changed(repairs[1], 0, code.repair ^ 8),
    ]
    // Sources that say how many the block before had, repairs over the first ones, and as many as both bytes can say are kodok's.
    if (!code.progressive) wrong.push(changed(repairs[0], 7, 3), changed(sources[1], 7, 1))
    if (exact) wrong.push(changed(sources[1], 2, 252))
    bench.send('in', wrong)
    expect(bench.metrics().dec).toMatchObject({
      malformed_packets: wrong.length,
      held_packets: 1,
      duplicate_packets: 0,
    })
    expect(bytesOut(bench)).toEqual([])
    bench.send('in', [sources[1], repairs[1], repairs[2]])
    expect(sorted(bytesOut(bench))).toEqual(sorted(all.slice(1)))
    bench.stop()
  })

  it('survives any bytes, bounded in slots, and still works afterwards', () => {
    const bench = decoderOf(code)
    const valid = Object.values(blockOf(code, sizes(6), 3, { session: 9 })).flat()
    const mutated = fc
      .record({
        base: fc.constantFrom(...valid),
        flips: fc.array(fc.tuple(fc.nat(20), fc.nat(255)), { maxLength: 4 }),
        cut: fc.nat(60),
      })
      .map(({ base, flips, cut }) => {
        const bytes = Uint8Array.from(base)
        for (const [at, value] of flips) bytes[at] = value
        return cut < bytes.length && cut % 3 === 0 ? bytes.slice(0, cut) : bytes
      })
    const junk = fc.uint8Array({ maxLength: 1500, size: 'max' }).map((bytes) => {
      if (bytes.length > 0 && bytes[0] & 1) bytes[0] = code.source + ((bytes[0] >> 1) & 1)
      return bytes
    })
    fc.assert(
      fc.property(fc.array(fc.oneof(junk, mutated), { minLength: 1, maxLength: 300, size: 'max' }), (list) => {
        bench.send('in', list)
        bench.take('out')
        bench.check()
        expect(bench.packets.held).toBeLessThan(bench.packets.slots / 4 + 256)
      }),
      { seed: 6, numRuns: 40 },
    )
    expect(bench.metrics().dec.malformed_packets).toBeGreaterThan(500)
    // A newcomer among as many sessions as are followed proves itself first.
    const sources = sizes(6)
    const first = blockOf(code, sources, 3, { session: 0x123456 })
    bench.send('in', [...first.sources, ...first.repairs])
    expect(bytesOut(bench)).toEqual(sources)
    const made = blockOf(code, sources, 3, { session: 0x123456, block: 1 })
    bench.send('in', [...made.repairs, ...made.sources.slice(3)])
    expect(sorted(bytesOut(bench))).toEqual(sorted(sources))
    bench.stop()
  })
})
