/** reed_solomon_encoder and _decoder: what is on the wire, what survives, what is counted, what junk does. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Bench, drive, payload, Refused, tagOf } from '../../../../test/harness/component.ts'
import { encode } from '../../codes/reed-solomon.ts'

const encoderOf = (symbols: number, repair: number) =>
  drive({ enc: { reed_solomon_encoder: { input: 'in', output: 'out', symbols, repair } } })
const decoderOf = () => drive({ dec: { reed_solomon_decoder: { input: 'in', output: 'out' } } })

const bytesOut = (bench: Bench) => bench.take('out').map(({ bytes }) => bytes)
const sizes = (count: number, bytes = 40) => Array.from({ length: count }, (_, i) => payload(bytes + ((i * 7) % 31), i))
const sorted = (list: Uint8Array[]) => list.map((bytes) => Buffer.from(bytes).toString('hex')).sort()

/** A protected symbol: length, then payload. */
const symbolOf = (bytes: Uint8Array) => Uint8Array.from([bytes.length >> 8, bytes.length & 255, ...bytes])

/** The packets of one block as they are on the wire, built from the documentation. */
function blockPackets(
  sources: Uint8Array[],
  r: number,
  { session = 0xabcdef, block = 0, k = sources.length } = {},
): { sources: Uint8Array[]; repairs: Uint8Array[] } {
  const header = (kind: number, index: number, closing: number) => {
    const bytes = new Uint8Array(12)
    const view = new DataView(bytes.buffer)
    bytes.set([kind, k, r, index])
    view.setUint32(4, session * 256 + closing)
    view.setUint32(8, block >>> 0)
    return bytes
  }
  const symbols = sources.map(symbolOf)
  return {
    sources: symbols.map((symbol, i) => Uint8Array.from([...header(0xb0, i, 0), ...symbol])),
    repairs: encode(symbols, r).map((symbol, j) => Uint8Array.from([...header(0xb1, j, sources.length), ...symbol])),
  }
}

describe('reed_solomon_encoder', () => {
  it('puts on the wire what the documentation and the reference code say', () => {
    const bench = encoderOf(4, 2)
    const sources = [payload(10, 1), payload(300, 2), payload(0), payload(77, 3)]
    bench.send('in', sources, { remote: '192.0.2.9:99', client: 5 })
    const out = bench.take('out')
    const session = new DataView(out[0].bytes.buffer).getUint32(4) >>> 8
    const wanted = blockPackets(sources, 2, { session })
    expect(out.map(({ bytes }) => bytes)).toEqual([...wanted.sources, ...wanted.repairs])
    for (const packet of out) expect(packet).toMatchObject({ remote: '192.0.2.9:99', client: 5 })
    expect(bench.metrics().enc).toMatchObject({ source_packets: 4, repair_packets: 2 })
    bench.stop()
  })

  it('makes the same repairs however the packets of a block are spread over batches', () => {
    const sources = sizes(40)
    const whole = encoderOf(10, 3)
    whole.send('in', sources)
    const wanted = bytesOut(whole)
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 40, maxLength: 40 }), (chunks) => {
        const bench = encoderOf(10, 3)
        let at = 0
        for (const chunk of chunks) {
          bench.send('in', sources.slice(at, at + chunk))
          at += chunk
        }
        expect(bytesOut(bench)).toEqual(wanted)
        bench.stop()
      }),
      { seed: 4, numRuns: 20 },
    )
    whole.stop()
  })

  it('sends block after block, each with its sources and then its repairs, however many a batch fills', () => {
    const scenario = fc.record({
      k: fc.integer({ min: 1, max: 12 }),
      r: fc.integer({ min: 0, max: 12 }),
      chunks: fc.array(fc.integer({ min: 1, max: 256 }), { minLength: 1, maxLength: 4 }),
      seed: fc.nat(99),
    })
    fc.assert(
      fc.property(scenario, ({ k, r, chunks, seed }) => {
        const bench = encoderOf(k, r)
        const sources: Uint8Array[] = []
        for (const chunk of chunks) {
          const batch = Array.from({ length: chunk }, (_, n) => payload((n * 37 + seed) % 90, sources.length + n))
          bench.send('in', batch)
          sources.push(...batch)
        }
        bench.notify('in', 'FLUSH')
        const out = bytesOut(bench)
        const session = new DataView(out[0].buffer).getUint32(4) >>> 8
        const wanted: Uint8Array[] = []
        for (let block = 0; block * k < sources.length; block++) {
          const made = blockPackets(sources.slice(block * k, (block + 1) * k), r, { session, block, k })
          wanted.push(...made.sources, ...made.repairs)
        }
        expect(out).toEqual(wanted)
        bench.stop()
      }),
      { seed: 6, numRuns: 15 },
    )
  })

  it('makes as many repairs as there are slots, for the blocks that are full first', () => {
    const bench = encoderOf(4, 2)
    const { packets } = bench
    const taken: number[] = []
    while (packets.available > 12 + 3) taken.push(packets.allocate())
    bench.send('in', sizes(12))
    const out = bytesOut(bench).map((bytes) => [bytes[0] === 0xb1 ? 'repair' : 'source', bytes[11]])
    expect(out.filter(([kind]) => kind === 'repair')).toEqual([
      ['repair', 0],
      ['repair', 0],
      ['repair', 1],
    ])
    expect(out).toHaveLength(15)
    expect(bench.metrics().enc).toMatchObject({ source_packets: 12, repair_packets: 3, unsent_repair_packets: 3 })
    for (const packet of taken) packets.release(packet)
    bench.stop()
  })

  it('sends sources at once, closes a short block at FLUSH, and passes FLUSH on behind its repairs', () => {
    const bench = encoderOf(10, 2)
    bench.send('in', sizes(3))
    expect(bytesOut(bench)).toHaveLength(3)
    bench.notify('in', 'FLUSH')
    const repairs = bytesOut(bench)
    expect(repairs.map((bytes) => [bytes[0], bytes[1], bytes[3], bytes[7]])).toEqual([
      [0xb1, 10, 0, 3],
      [0xb1, 10, 1, 3],
    ])
    expect(bench.notifications('out')).toEqual(['FLUSH'])
    bench.notify('in', 'FLUSH')
    expect(bytesOut(bench)).toEqual([])
    bench.send('in', sizes(1))
    expect(new DataView(bytesOut(bench)[0].buffer).getUint32(8)).toBe(1)
    bench.stop()
  })

  it('closes a block after flush_after_ms of silence, not before, and not when nothing is unprotected', () => {
    const bench = drive({
      enc: { reed_solomon_encoder: { input: 'in', output: 'out', symbols: 4, repair: 2, flush_after_ms: 8 } },
    })
    const repairs = () =>
      bench.take('out').flatMap(({ bytes, time }) => (bytes[0] === 0xb1 ? [[bytes[7], bytes[3], time / 1e6]] : []))
    // Every 5 ms: never silent for long; the fourth fills the block.
    for (let n = 0; n < 3; n++) {
      bench.send('in', payload(50, n))
      bench.advance(5e6)
    }
    expect(repairs()).toEqual([])
    bench.send('in', payload(50, 3))
    expect(repairs()).toEqual([
      [4, 0, 15],
      [4, 1, 15],
    ])
    bench.advance(100e6)
    expect(repairs()).toEqual([])
    // At 115 and 120 ms, then silence until 128.
    bench.send('in', payload(50, 4))
    bench.advance(5e6)
    bench.send('in', payload(70, 5))
    bench.advance(7.999e6)
    expect(repairs()).toEqual([])
    bench.advance(100e6)
    expect(repairs()).toEqual([
      [2, 0, 128],
      [2, 1, 128],
    ])
    expect(bench.metrics().enc).toMatchObject({ source_packets: 6, repair_packets: 4 })
    bench.send('in', payload(50, 6))
    bench.stop()
  })

  it('never closes a block by itself where flush_after_ms is not set', () => {
    for (const config of [{}, { flush_after_ms: 0 }]) {
      const bench = drive({
        enc: { reed_solomon_encoder: { input: 'in', output: 'out', symbols: 4, repair: 2, ...config } },
      })
      bench.send('in', sizes(3))
      bench.advance(1e12)
      expect(bytesOut(bench)).toHaveLength(3)
      bench.stop()
    }
  })

  it('goes on without slots, its packets unprotected', () => {
    const bench = encoderOf(4, 2)
    const { packets } = bench
    const taken: number[] = []
    const leave = (free: number) => {
      while (packets.available > free) taken.push(packets.allocate())
    }
    bench.send('in', sizes(2))
    leave(2)
    bench.send('in', sizes(2))
    expect(bytesOut(bench)).toHaveLength(4)
    expect(bench.metrics().enc).toMatchObject({ unsent_repair_packets: 2, unprotected_packets: 0 })
    leave(3)
    bench.send('in', sizes(2))
    expect(bytesOut(bench)).toHaveLength(2)
    expect(bench.metrics().enc).toMatchObject({ unprotected_packets: 2 })
    for (const packet of taken) packets.release(packet)
    bench.send('in', sizes(4))
    expect(bytesOut(bench).filter(({ 0: kind }) => kind === 0xb1)).toHaveLength(2)
    bench.stop()
  })

  it('has room for its header in a long chain, its repairs too', () => {
    const chain = Object.fromEntries(
      Array.from({ length: 10 }, (_, n) => [
        `enc${n}`,
        { reed_solomon_encoder: { input: `c${n}`, output: `c${n + 1}`, symbols: 1, repair: 1 } },
      ]),
    )
    const bench = drive(chain)
    bench.send('c0', [payload(2048, 1), payload(0)])
    expect(bench.take('c10').map(({ bytes }) => bytes.length)).toEqual([2188, 140].flatMap((n) => Array(1024).fill(n)))
    for (let n = 0; n < 10; n++) expect(bench.metrics()[`enc${n}`].no_room_packets).toBe(0)
    bench.stop()
  })

  it('refuses blocks of more than 255 symbols', () => {
    const refused = (symbols: number, repair: number) => {
      try {
        encoderOf(symbols, repair).stop()
        return null
      } catch (error) {
        return (error as Refused).problems.map(({ pointer }) => pointer.split('/').at(-1))
      }
    }
    expect(refused(200, 56)).toEqual(['repair'])
    expect(refused(0, 1)).toEqual(['symbols'])
    expect(refused(1, -1)).toEqual(['repair'])
    expect(refused(200, 55)).toBeNull()
    expect(refused(255, 0)).toBeNull()
    expect(() => encoderOf(1, 255)).toThrow(Refused)
  })
})

describe('reed_solomon_decoder', () => {
  it('recovers over every erasure pattern that a block must survive', () => {
    let recovered = 0
    for (const [k, r] of [
      [1, 1],
      [1, 3],
      [2, 2],
      [3, 2],
      [4, 3],
      [5, 2],
    ]) {
      const sources = sizes(k)
      const bench = decoderOf()
      let block = 0
      for (let lost = 0; lost < 1 << (k + r); lost++) {
        const made = blockPackets(sources, r, { block: block++ })
        const arrive = [...made.sources, ...made.repairs].filter((_, n) => ((lost >> n) & 1) === 0)
        const lostSources = sources.filter((_, i) => (lost >> i) & 1).length
        bench.send('in', arrive)
        const got = bytesOut(bench)
        if (arrive.length >= k) {
          expect(sorted(got)).toEqual(sorted(sources))
          recovered += lostSources
        } else expect(got).toEqual(sources.filter((_, i) => ((lost >> i) & 1) === 0))
        bench.check()
      }
      expect(bench.metrics().dec.malformed_packets).toBe(0)
      bench.stop()
    }
    expect(recovered).toBe(154)
  })

  it('recovers through an encoder, any batches, losses, reordering and duplicates, for larger blocks', () => {
    const scenario = fc.record({
      code: fc.constantFrom([8, 2], [10, 4], [20, 5], [50, 10], [7, 1], [100, 100]),
      blocks: fc.integer({ min: 1, max: 4 }),
      random: fc.infiniteStream(fc.nat(0xffff)),
      chunk: fc.integer({ min: 1, max: 200 }),
    })
    fc.assert(
      fc.property(scenario, ({ code: [k, r], blocks, random, chunk }) => {
        const next = () => random.next().value as number
        const sources = Array.from({ length: k * blocks }, (_, i) => payload(4 + (next() % 1300), i))
        const encoder = encoderOf(k, r)
        for (let at = 0; at < sources.length; at += chunk) encoder.send('in', sources.slice(at, at + chunk))
        const wire = bytesOut(encoder)
        encoder.stop()
        const arrive: { bytes: Uint8Array; order: number }[] = []
        for (let b = 0; b < blocks; b++) {
          const packets = wire.slice(b * (k + r), (b + 1) * (k + r))
          for (let n = 0; n < r; n++) packets.splice(next() % packets.length, 1)
          for (const bytes of packets) {
            arrive.push({ bytes, order: b * 1000 + (next() % 1500) })
            if (next() % 5 === 0) arrive.push({ bytes, order: b * 1000 + (next() % 1500) })
          }
        }
        arrive.sort((one, other) => one.order - other.order)
        const decoder = decoderOf()
        const list = arrive.map(({ bytes }) => bytes)
        for (let at = 0; at < list.length; at += chunk) decoder.send('in', list.slice(at, at + chunk))
        expect(sorted(bytesOut(decoder))).toEqual(sorted(sources))
        decoder.stop()
      }),
      { seed: 5, numRuns: 60 },
    )
  })

  it('recovers at the first moment it can, one packet at a time, and counts what came for nothing', () => {
    const sources = sizes(4)
    const { sources: s, repairs } = blockPackets(sources, 3)
    const bench = decoderOf()
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

  it('recovers short blocks', () => {
    const sources = sizes(3)
    const made = blockPackets(sources, 2, { k: 10 })
    const bench = decoderOf()
    bench.send('in', [made.sources[1], ...made.repairs])
    expect(sorted(bytesOut(bench))).toEqual(sorted(sources))
    bench.stop()
  })

  it('goes on where block ids wrap around', () => {
    const bench = decoderOf()
    for (let n = -3; n < 3; n++) {
      const sources = sizes(5, 20 + n)
      const made = blockPackets(sources, 2, { block: n })
      bench.send('in', [made.sources[4], made.repairs[1], made.sources[0], made.sources[2], made.repairs[0]])
      expect(sorted(bytesOut(bench))).toEqual(sorted(sources))
    }
    const old = blockPackets(sizes(5, 17), 2, { block: -3 })
    bench.send('in', old.sources[0])
    expect(bench.metrics().dec).toMatchObject({ recovered_packets: 12, duplicate_packets: 1, late_packets: 0 })
    bench.stop()
  })

  it('gives blocks up when they leave the window, and measures the loss', () => {
    const bench = decoderOf()
    const blocks = 1500
    for (let block = 0; block < blocks; block++) {
      const { sources, repairs } = blockPackets(sizes(8, 4), 2, { block })
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
    const { sources } = blockPackets(sizes(8, 4), 2, { block: 3 })
    bench.send('in', sources)
    expect(bytesOut(bench)).toEqual([])
    expect(bench.metrics().dec.late_packets).toBe(8)
    bench.stop()
  })

  it('follows a restarted encoder at once, the old one beside it', () => {
    const bench = decoderOf()
    for (let block = 0; block < 20; block++) {
      bench.send('in', Object.values(blockPackets(sizes(5), 2, { block, session: 1 })).flat())
    }
    bytesOut(bench)
    const sources = sizes(5, 90)
    const fresh = blockPackets(sources, 2, { block: 0, session: 2 })
    const straggler = blockPackets(sizes(5), 2, { block: 20, session: 1 })
    bench.send('in', [fresh.repairs[0], straggler.sources[1], fresh.repairs[1], ...fresh.sources.slice(0, 3)])
    expect(sorted(bytesOut(bench))).toEqual(sorted([...sources, sizes(5)[1]]))
    bench.stop()
  })

  it('lets no junk session displace a session that has proved itself', () => {
    const bench = decoderOf()
    const next = { block: 0 }
    const damaged = () => {
      const { sources, repairs } = blockPackets(sizes(5), 2, { block: next.block++, session: 7 })
      return [sources.slice(0, 2), [sources[4], ...repairs]]
    }
    for (let n = 0; n < 3; n++) for (const part of damaged()) bench.send('in', part)
    bytesOut(bench)
    for (let junk = 0; junk < 300; junk++) {
      const [before, after] = damaged()
      bench.send('in', before)
      const spoof = blockPackets(sizes(1), 254, { block: junk * 7919, session: 1000 + junk }).repairs
      const leap = blockPackets(sizes(5), 2, { block: 1e9 + junk * 1e6, session: 7 }).sources
      const misfit = blockPackets(sizes(6), 2, { block: next.block, session: 7 }).sources
      bench.send('in', [...spoof.slice(0, 5), leap[0], misfit[0]])
      bytesOut(bench)
      bench.send('in', after)
      expect(bench.take('out')).toHaveLength(3)
    }
    expect(bench.metrics().dec).toMatchObject({ malformed_packets: 0, followed_sessions: 64 })
    expect(bench.packets.held).toBeLessThan(700)
    bench.stop()
  })

  it('follows a leap of its own session, as after an outage', () => {
    const bench = decoderOf()
    for (const start of [0, 5000, 1e9, 3e9]) {
      for (let block = start; block < start + 30; block++) {
        const sources = sizes(5)
        const made = blockPackets(sources, 2, { block })
        // A leap is believed of sources, not of repairs.
        const [first, ...others] = made.sources.slice(2)
        bench.send('in', [first, ...made.repairs, ...others])
        expect(sorted(bytesOut(bench))).toEqual(sorted(sources))
      }
    }
    bench.stop()
  })

  it('forgets at RESET and passes notifications on', () => {
    const bench = decoderOf()
    const sources = sizes(4)
    const made = blockPackets(sources, 2)
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

  it('survives packets that contradict their block', () => {
    const { sources, repairs } = blockPackets(sizes(4, 50), 3)
    const changed = (bytes: Uint8Array, at: number, value: number) => {
      const copy = Uint8Array.from(bytes)
      copy[at] = value
      return copy
    }
    const bench = decoderOf()
    bench.send('in', [sources[0], repairs[0]])
    bytesOut(bench)
    bench.send('in', [
      repairs[1].slice(0, 60), // shorter than a source
      changed(repairs[0], 7, 3), // another number of sources
      sources[1].slice(0, -1), // its length says otherwise
      changed(sources[1], 3, 4), // index beyond k
      changed(repairs[1], 3, 3), // index beyond r
      changed(sources[1], 7, 1), // a source that closes
      changed(repairs[1], 7, 5), // more sources than k
      changed(sources[1], 0, 0xb2),
      changed(sources[1], 2, 252), // k + r > 255
    ])
    expect(bench.metrics().dec).toMatchObject({ malformed_packets: 9, held_packets: 1, duplicate_packets: 0 })
    expect(bytesOut(bench)).toEqual([])
    bench.send('in', [sources[1], repairs[1], repairs[2]])
    expect(bytesOut(bench)).toHaveLength(3)
    bench.stop()
  })

  it('makes no packet of a length that is impossible, and recovers with a repair that is good', () => {
    const { sources, repairs } = blockPackets(sizes(2, 50), 2)
    const forged = Uint8Array.from(repairs[0])
    forged[12] ^= 0xff
    const bench = decoderOf()
    bench.send('in', [sources[0], forged])
    expect(bytesOut(bench)).toHaveLength(1)
    expect(bench.metrics().dec).toMatchObject({ malformed_packets: 1, recovered_packets: 0 })
    bench.send('in', repairs[1])
    expect(bytesOut(bench)).toEqual([sizes(2, 50)[1]])
    bench.stop()
  })

  it('goes on when no slot is free', () => {
    const bench = decoderOf()
    const { packets } = bench
    const all = sizes(4)
    const made = blockPackets(all, 2)
    const taken: number[] = []
    const leave = (free: number) => {
      while (packets.available > free) taken.push(packets.allocate())
    }
    leave(1)
    bench.send('in', made.sources[0])
    expect(bench.metrics().dec.unkept_packets).toBe(1)
    while (taken.length > 0) packets.release(taken.pop() as number)
    bench.send('in', [made.sources[1], made.sources[2], ...made.repairs])
    expect(sorted(bytesOut(bench))).toEqual(sorted(all))
    const second = blockPackets(all, 2, { block: 1 })
    leave(4)
    bench.send('in', [second.sources[0], second.sources[1], ...second.repairs])
    expect(bytesOut(bench)).toHaveLength(2)
    expect(bench.metrics().dec.unrecovered_packets).toBe(2)
    while (taken.length > 0) packets.release(taken.pop() as number)
    bench.stop()
  })

  it('survives any bytes, bounded in slots, and still works afterwards', () => {
    const bench = decoderOf()
    const valid = Object.values(blockPackets(sizes(6), 3, { session: 9 })).flat()
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
    const junk = fc.uint8Array({ maxLength: 1500 }).map((bytes) => {
      if (bytes.length > 0 && bytes[0] & 1) bytes[0] = 0xb0 + ((bytes[0] >> 1) & 1)
      return bytes
    })
    fc.assert(
      fc.property(fc.array(fc.oneof(junk, mutated), { minLength: 1, maxLength: 300 }), (list) => {
        bench.send('in', list)
        bench.take('out')
        bench.check()
        expect(bench.packets.held).toBeLessThan(bench.packets.slots / 4 + 256)
      }),
      { seed: 6, numRuns: 150 },
    )
    expect(bench.metrics().dec.malformed_packets).toBeGreaterThan(500)
    // A newcomer among as many sessions as are followed proves itself first.
    const sources = sizes(6)
    const first = blockPackets(sources, 3, { session: 0x123456 })
    bench.send('in', [...first.sources, ...first.repairs])
    expect(bytesOut(bench)).toEqual(sources)
    const made = blockPackets(sources, 3, { session: 0x123456, block: 1 })
    bench.send('in', [...made.repairs, ...made.sources.slice(3)])
    expect(sorted(bytesOut(bench))).toEqual(sorted(sources))
    bench.stop()
  })
})

describe('both, through emulated loss', () => {
  it.each([
    [5, true],
    [10, true],
    [10, false],
  ])(
    'a ping every 200 ms through (8,2) with a tenth lost and %i ms each way, flush_after_ms set: %j',
    (path, flushes) => {
      const end = (name: string, seed: number, from: string, to: string) => ({
        [`protect${name}`]: {
          reed_solomon_encoder: {
            input: from,
            output: `coded${name}`,
            symbols: 8,
            repair: 2,
            ...(flushes && { flush_after_ms: 8 }),
          },
        },
        [`loss${name}`]: { uniform_loss: { input: `coded${name}`, output: `left${name}`, loss_prob: 0.1, seed } },
        [`path${name}`]: { delay_constant: { flows: [{ input: `left${name}`, output: `sent${name}` }], delay: path } },
        [`recover${name}`]: { reed_solomon_decoder: { input: `sent${name}`, output: to } },
      })
      const bench = drive({ ...end('A', 1, 'ping', 'heard'), ...end('B', 2, 'heard', 'pong') })
      const pings = 3000
      for (let n = 0; n < pings; n++) {
        bench.send('ping', payload(84, n))
        bench.advance(200e6)
      }
      bench.advance(5e9)
      const times = bench.take('pong').map(({ bytes, time }) => time / 1e6 - tagOf(bytes) * 200)
      const mean = times.reduce((sum, time) => sum + time, 0) / times.length
      if (flushes) {
        expect(times.length).toBeGreaterThan(pings * 0.993)
        expect(mean).toBeLessThan(2 * path + 4)
        // Recovered both ways, each time after the silence.
        expect(Math.max(...times)).toBe(2 * path + 16)
      } else {
        expect(mean).toBeGreaterThan(2 * path + 50)
        expect(Math.max(...times)).toBeGreaterThan(1000)
      }
      bench.stop()
    },
  )

  it('uses no more slots over many packets than at the beginning', () => {
    const encoder = encoderOf(10, 4)
    const decoder = decoderOf()
    const sources = sizes(250)
    for (let round = 0; round < 40; round++) {
      encoder.send('in', sources)
      decoder.send(
        'in',
        bytesOut(encoder).filter((_, n) => (n * 7919 + round) % 10 !== 0),
      )
      decoder.take('out')
      expect(decoder.packets.held).toBeLessThan(1400)
      expect(encoder.packets.held).toBeLessThan(10)
    }
    expect(decoder.metrics().dec.recovered_packets).toBeGreaterThan(900)
    encoder.stop()
    decoder.stop()
  })
})
