/** The encoders of all block codes: what is on the wire, in which order, when a block is closed, what happens without slots. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  BLOCK_CODES,
  blockIdOf,
  bytesOut,
  encoderOf,
  isRepair,
  REED_SOLOMON,
  RLNC,
  repairPacket,
  seedOf,
  sessionOf,
  sizes,
  sourcePacket,
} from '../../../../test/harness/block-codes.ts'
import { drive, payload } from '../../../../test/harness/component.ts'

const MS = 1e6

describe.each(BLOCK_CODES)('%s_encoder', (_key, code) => {
  /** What is to be on the wire of `sources`, the last block closed early; session, and seeds where they are random, are those of `wire`. */
  function wanted(wire: readonly Uint8Array[], sources: readonly Uint8Array[], k: number, r: number): Uint8Array[] {
    const packets: Uint8Array[] = []
    for (let block = 0; block * k < sources.length; block++) {
      const own = sources.slice(block * k, (block + 1) * k)
      const shape = { k, r, session: sessionOf(wire[0]), block, previous: code.progressive && block > 0 ? k : 0 }
      packets.push(...own.map((bytes, i) => sourcePacket(code, bytes, i, shape)))
      for (let j = 0; j < r; j++) packets.push(repairPacket(code, own, j, seedOf(wire[packets.length]), shape))
    }
    return packets
  }

  it('puts on the wire what the documentation and the mathematics say', () => {
    const bench = encoderOf(code, 4, 2)
    const sources = [payload(10, 1), payload(300, 2), payload(0), payload(77, 3)]
    bench.send('in', sources, { remote: '192.0.2.9:99', client: 5 })
    const out = bench.take('out')
    const wire = out.map(({ bytes }) => bytes)
    expect(wire).toEqual(wanted(wire, sources, 4, 2))
    expect(wire[4].subarray(12)).not.toEqual(wire[5].subarray(12))
    for (const packet of out) expect(packet).toMatchObject({ remote: '192.0.2.9:99', client: 5 })
    expect(bench.metrics().enc).toMatchObject({ source_packets: 4, repair_packets: 2 })
    bench.stop()
  })

  it('makes the same repairs however the packets of a block are spread over batches', () => {
    const sources = sizes(40)
    const whole = encoderOf(code, 10, 3)
    whole.send('in', sources)
    const all = bytesOut(whole)
    expect(all).toHaveLength(52)
    whole.stop()
    const chunks = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 40, maxLength: 40 })
    fc.assert(
      fc.property(chunks, (lengths) => {
        const bench = encoderOf(code, 10, 3)
        let at = 0
        for (const length of lengths) {
          bench.send('in', sources.slice(at, at + length))
          at += length
        }
        expect(bytesOut(bench)).toEqual(all)
        bench.stop()
      }),
      { seed: 4, numRuns: 20 },
    )
  })

  it('sends block after block, each with its sources and then its repairs, however many a batch fills', () => {
    const scenario = fc.record({
      k: fc.integer({ min: 1, max: 12 }),
      r: fc.integer({ min: code.key === 'rlnc' ? 1 : 0, max: 12 }),
      chunks: fc.array(fc.integer({ min: 1, max: 256 }), { minLength: 1, maxLength: 4 }),
      seed: fc.nat(99),
    })
    fc.assert(
      fc.property(scenario, ({ k, r, chunks, seed }) => {
        const bench = encoderOf(code, k, r)
        const sources: Uint8Array[] = []
        for (const chunk of chunks) {
          const batch = Array.from({ length: chunk }, (_, n) => payload((n * 37 + seed) % 90, sources.length + n))
          bench.send('in', batch)
          sources.push(...batch)
        }
        bench.notify('in', 'FLUSH')
        const wire = bytesOut(bench)
        expect(wire).toEqual(wanted(wire, sources, k, r))
        bench.stop()
      }),
      { seed: 6, numRuns: 15 },
    )
  })

  it('makes as many repairs as there are slots, for the blocks that are full first', () => {
    const bench = encoderOf(code, 4, 2)
    const { packets } = bench
    const taken: number[] = []
    while (packets.available > 12 + 3) taken.push(packets.allocate())
    bench.send('in', sizes(12))
    const out = bytesOut(bench)
    expect(out.filter(isRepair).map(blockIdOf)).toEqual([0, 0, 1])
    expect(out).toHaveLength(15)
    expect(bench.metrics().enc).toMatchObject({ source_packets: 12, repair_packets: 3, unsent_repair_packets: 3 })
    for (const packet of taken) packets.release(packet)
    bench.stop()
  })

  it('sends sources at once, closes a short block at FLUSH, and passes FLUSH on behind its repairs', () => {
    const bench = encoderOf(code, 10, 2)
    bench.send('in', sizes(3))
    expect(bytesOut(bench)).toHaveLength(3)
    bench.notify('in', 'FLUSH')
    const repairs = bytesOut(bench)
    expect(repairs.map((bytes) => [bytes[0], bytes[1], bytes[3], bytes[7]])).toEqual([
      [code.repair, 10, 0, 3],
      [code.repair, 10, 1, 3],
    ])
    expect(bench.notifications('out')).toEqual(['FLUSH'])
    bench.notify('in', 'FLUSH')
    expect(bytesOut(bench)).toEqual([])
    bench.send('in', sizes(1))
    expect(blockIdOf(bytesOut(bench)[0])).toBe(1)
    bench.stop()
  })

  it('never closes a block by itself where no time for that is set', () => {
    const field = code.key === 'kodok' ? 'timeout' : 'flush_after_ms'
    for (const config of [{}, { [field]: 0 }]) {
      const bench = encoderOf(code, 4, 2, config)
      bench.send('in', sizes(3))
      bench.advance(1e12)
      expect(bytesOut(bench)).toHaveLength(3)
      bench.stop()
    }
  })

  it('goes on without slots, its packets unprotected', () => {
    const bench = encoderOf(code, 4, 2)
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
    expect(bytesOut(bench).filter(isRepair)).toHaveLength(2)
    bench.stop()
  })

  it('has room for its headers in a long chain, those of its repairs too', () => {
    const links = 10
    const shape =
      code.key === 'kodok' ? { repair_configs: [{ source_packets: 1, repair_packets: 1 }] } : { symbols: 1, repair: 1 }
    const chain = Object.fromEntries(
      Array.from({ length: links }, (_, n) => [
        `enc${n}`,
        { [`${code.key}_encoder`]: { input: `c${n}`, output: `c${n + 1}`, ...shape } },
      ]),
    )
    const bench = drive(chain)
    bench.send('c0', [payload(2048, 1), payload(0)])
    const lengths = bench.take(`c${links}`).map(({ bytes }) => bytes.length)
    expect(lengths).toHaveLength(2 << links)
    // Sources all the way, and repairs all the way.
    const front = code.symbolAt + 2
    expect([Math.min(...lengths), Math.max(...lengths)]).toEqual([links * 14, 2048 + links * front])
    const large = lengths.filter((bytes) => bytes >= 2048)
    expect([large.length, Math.min(...large)]).toEqual([1 << links, 2048 + links * 14])
    for (let n = 0; n < links; n++) expect(bench.metrics()[`enc${n}`].no_room_packets).toBe(0)
    bench.stop()
  })
})

describe.each([
  ['reed_solomon', REED_SOLOMON],
  ['rlnc', RLNC],
])('%s_encoder', (key, code) => {
  it('closes a block after flush_after_ms of silence, not before, and not when nothing is unprotected', () => {
    const bench = encoderOf(code, 4, 2, { flush_after_ms: 8 })
    const repairs = () =>
      bench.take('out').flatMap(({ bytes, time }) => (isRepair(bytes) ? [[bytes[7], bytes[3], time / MS]] : []))
    // Every 5 ms: never silent for long; the fourth fills the block.
    for (let n = 0; n < 3; n++) {
      bench.send('in', payload(50, n))
      bench.advance(5 * MS)
    }
    expect(repairs()).toEqual([])
    bench.send('in', payload(50, 3))
    expect(repairs()).toEqual([
      [4, 0, 15],
      [4, 1, 15],
    ])
    bench.advance(100 * MS)
    expect(repairs()).toEqual([])
    // At 115 and 120 ms, then silence until 128.
    bench.send('in', payload(50, 4))
    bench.advance(5 * MS)
    bench.send('in', payload(70, 5))
    bench.advance(7.999 * MS)
    expect(repairs()).toEqual([])
    bench.advance(100 * MS)
    expect(repairs()).toEqual([
      [2, 0, 128],
      [2, 1, 128],
    ])
    expect(bench.metrics().enc).toMatchObject({ source_packets: 6, repair_packets: 4 })
    bench.send('in', payload(50, 6))
    bench.stop()
  })

  it('takes over another flush_after_ms while it runs, for the block at hand too', () => {
    const bench = encoderOf(code, 10, 2, { flush_after_ms: 8 })
    const change = (more: object) =>
      bench.reconfigure({
        enc: { [`${key}_encoder`]: { input: 'in', output: 'out', symbols: 10, repair: 2, ...more } },
      })
    const times = () => bench.take('out').flatMap(({ bytes, time }) => (isRepair(bytes) ? [time / MS] : []))
    bench.send('in', payload(50, 4))
    bench.advance(2 * MS)
    change({ flush_after_ms: 20 })
    bench.advance(100 * MS)
    expect(times()).toEqual([20, 20])
    bench.send('in', payload(50, 4))
    bench.advance(10 * MS)
    // It has been silent for longer than that.
    change({ flush_after_ms: 5 })
    expect(times()).toEqual([112, 112])
    change({})
    bench.send('in', payload(50, 4))
    bench.advance(1e12)
    expect(times()).toEqual([])
    bench.stop()
  })
})
