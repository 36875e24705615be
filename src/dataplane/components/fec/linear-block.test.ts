/** The random linear block codes (rlnc, kodok): what is on the wire, what is recovered and when, what is counted, what junk does. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { coefficients, seededCombination } from '../../../../test/harness/coefficients.ts'
import { type Bench, drive, payload, refusal, tagOf } from '../../../../test/harness/component.ts'
import { determined } from '../../codes/linear.ts'
import { Random } from '../../engine/random.ts'

type Fields = Record<string, unknown>
const MS = 1e6

const encoderOf = (key: string, fields: Fields, seed = 1) =>
  drive({ enc: { [`${key}_encoder`]: { input: 'in', output: 'out', ...fields } } }, { seed })
const decoderOf = (key: string) => drive({ dec: { [`${key}_decoder`]: { input: 'in', output: 'out' } } })
const rlnc = (symbols: number, repair: number, more: Fields = {}) => encoderOf('rlnc', { symbols, repair, ...more })
const kodok = (points: readonly (readonly [number, number])[], more: Fields = {}) =>
  encoderOf('kodok', {
    repair_configs: points.map(([source_packets, repair_packets]) => ({ source_packets, repair_packets })),
    ...more,
  })

const bytesOut = (bench: Bench) => bench.take('out').map(({ bytes }) => bytes)
const sizes = (count: number, bytes = 40) => Array.from({ length: count }, (_, i) => payload(bytes + ((i * 7) % 31), i))
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const sorted = (list: readonly Uint8Array[]) => list.map(hex).sort()
const symbolOf = (bytes: Uint8Array) => Uint8Array.from([bytes.length >> 8, bytes.length & 255, ...bytes])

const KINDS = { rlnc: [0xb2, 0xb3], kodok: [0xb4, 0xb5] } as const
type Key = keyof typeof KINDS

interface Shape {
  k: number
  r: number
  session?: number
  block?: number
  previous?: number
}

function header(
  kind: number,
  index: number,
  closing: number,
  { k, r, session = 0xabcdef, block = 0 }: Shape,
): number[] {
  const bytes = new Uint8Array(12)
  const view = new DataView(bytes.buffer)
  bytes.set([kind, k, r, index])
  view.setUint32(4, session * 256 + closing)
  view.setUint32(8, block >>> 0)
  return [...bytes]
}

/** A source packet as the documentation has it. */
const sourcePacket = (key: Key, bytes: Uint8Array, index: number, shape: Shape) =>
  Uint8Array.from([...header(KINDS[key][0], index, shape.previous ?? 0, shape), ...symbolOf(bytes)])

/** A repair packet over `sources`. */
function repairPacket(key: Key, sources: readonly Uint8Array[], index: number, seed: number, shape: Shape): Uint8Array {
  const word = [24, 16, 8, 0].map((shift) => (seed >>> shift) & 255)
  const symbol = seededCombination(sources.map(symbolOf), seed)
  return Uint8Array.from([...header(KINDS[key][1], index, sources.length, shape), ...word, ...symbol])
}

const seedOf = (repair: Uint8Array) => new DataView(repair.buffer, repair.byteOffset).getInt32(12)
const sessionOf = (packet: Uint8Array) => new DataView(packet.buffer, packet.byteOffset).getUint32(4) >>> 8
const isRepair = (packet: Uint8Array) => (packet[0] & 1) === 1

/** A whole rlnc block, its seeds from `seed` on. */
function rlncBlock(sources: Uint8Array[], r: number, shape: Partial<Shape> = {}, seed = 100) {
  const whole = { k: sources.length, r, ...shape }
  return {
    sources: sources.map((bytes, i) => sourcePacket('rlnc', bytes, i, whole)),
    repairs: Array.from({ length: r }, (_, j) => repairPacket('rlnc', sources, j, seed + j, whole)),
  }
}

describe('rlnc_encoder', () => {
  it('puts on the wire what the documentation and the mathematics say', () => {
    const bench = rlnc(4, 2)
    const sources = [payload(10, 1), payload(300, 2), payload(0), payload(77, 3)]
    bench.send('in', sources, { remote: '192.0.2.9:99', client: 5 })
    const out = bench.take('out')
    const wire = out.map(({ bytes }) => bytes)
    const shape = { k: 4, r: 2, session: sessionOf(wire[0]) }
    expect(wire.slice(0, 4)).toEqual(sources.map((bytes, i) => sourcePacket('rlnc', bytes, i, shape)))
    expect(wire.slice(4)).toEqual([0, 1].map((j) => repairPacket('rlnc', sources, j, seedOf(wire[4 + j]), shape)))
    expect(seedOf(wire[4])).not.toBe(seedOf(wire[5]))
    for (const packet of out) expect(packet).toMatchObject({ remote: '192.0.2.9:99', client: 5 })
    expect(bench.metrics().enc).toMatchObject({ source_packets: 4, repair_packets: 2 })
    bench.stop()
  })

  it('makes the same repairs however the packets of a block are spread over batches', () => {
    const sources = sizes(40)
    const whole = rlnc(10, 3)
    whole.send('in', sources)
    const wanted = bytesOut(whole)
    expect(wanted).toHaveLength(52)
    whole.stop()
    const chunks = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 40, maxLength: 40 })
    fc.assert(
      fc.property(chunks, (lengths) => {
        const bench = rlnc(10, 3)
        let at = 0
        for (const length of lengths) {
          bench.send('in', sources.slice(at, at + length))
          at += length
        }
        expect(bytesOut(bench)).toEqual(wanted)
        bench.stop()
      }),
      { seed: 4, numRuns: 20 },
    )
  })

  it('closes a short block at FLUSH, and after flush_after_ms of silence, which may change while it runs', () => {
    const bench = rlnc(10, 2, { flush_after_ms: 8 })
    const repairs = () =>
      bench.take('out').flatMap(({ bytes, time }) => (isRepair(bytes) ? [[bytes[7], bytes[3], time / MS]] : []))
    bench.send('in', sizes(3))
    bench.notify('in', 'FLUSH')
    expect(repairs()).toEqual([
      [3, 0, 0],
      [3, 1, 0],
    ])
    expect(bench.notifications('out')).toEqual(['FLUSH'])
    bench.advance(100 * MS)
    expect(repairs()).toEqual([])
    bench.send('in', payload(50, 4))
    bench.advance(5 * MS)
    bench.send('in', payload(70, 5))
    bench.advance(7.999 * MS)
    expect(repairs()).toEqual([])
    bench.advance(1000 * MS)
    expect(repairs()).toEqual([
      [2, 0, 113],
      [2, 1, 113],
    ])
    bench.send('in', payload(50, 4))
    bench.advance(2 * MS)
    const at = bench.now / MS
    bench.reconfigure({
      enc: { rlnc_encoder: { input: 'in', output: 'out', symbols: 10, repair: 2, flush_after_ms: 20 } },
    })
    bench.advance(100 * MS)
    expect(repairs().map(([, , time]) => time)).toEqual([at + 18, at + 18])
    bench.reconfigure({ enc: { rlnc_encoder: { input: 'in', output: 'out', symbols: 10, repair: 2 } } })
    bench.send('in', payload(50, 4))
    bench.advance(1e12)
    expect(repairs()).toEqual([])
    bench.stop()
  })

  it('goes on without slots, its packets unprotected', () => {
    const bench = rlnc(4, 2)
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

  it('has room for its headers in a long chain', () => {
    const chain = Object.fromEntries(
      Array.from({ length: 8 }, (_, n) => [
        `enc${n}`,
        { rlnc_encoder: { input: `c${n}`, output: `c${n + 1}`, symbols: 1, repair: 1 } },
      ]),
    )
    const bench = drive(chain)
    bench.send('c0', [payload(2048, 1), payload(0)])
    const lengths = bench.take('c8').map(({ bytes }) => bytes.length)
    expect(lengths).toHaveLength(512)
    // Sources all the way, and repairs all the way.
    expect(Math.min(...lengths)).toBe(8 * 14)
    expect(Math.max(...lengths)).toBe(2048 + 8 * 18)
    for (let n = 0; n < 8; n++) expect(bench.metrics()[`enc${n}`].no_room_packets).toBe(0)
    bench.stop()
  })

  it('takes up to 255 sources and as many repairs, and refuses more by name', () => {
    const config = (symbols: number, repair: number) => ({
      enc: { rlnc_encoder: { input: 'in', output: 'out', symbols, repair } },
    })
    for (const [symbols, repair, field] of [
      [0, 1, 'symbols'],
      [256, 1, 'symbols'],
      [1, 0, 'repair'],
      [1, 256, 'repair'],
    ] as const) {
      expect(refusal(config(symbols, repair)).pointer.split('/').at(-1)).toBe(field)
    }
    const bench = rlnc(255, 255)
    const sources = sizes(255)
    bench.send('in', sources)
    const wire = bytesOut(bench)
    bench.stop()
    const decoder = decoderOf('rlnc')
    decoder.send('in', wire.slice(255))
    const got = bytesOut(decoder)
    // 255 random equations for 255 unknowns: short in one of 255 cases, and this seed is none of them.
    expect(sorted(got)).toEqual(sorted(sources))
    decoder.stop()
  })
})

describe('kodok_encoder', () => {
  it('makes repairs over all sources so far at each point, and ends the block at the last', () => {
    const bench = kodok([
      [2, 1],
      [5, 2],
      [6, 0],
    ])
    const sources = sizes(13)
    bench.send('in', sources.slice(0, 4))
    bench.send('in', sources.slice(4))
    const wire = bytesOut(bench)
    const shape = { k: 6, r: 3, session: sessionOf(wire[0]) }
    const wanted: Uint8Array[] = []
    for (let block = 0, at = 0; block < 3; block++) {
      const own = sources.slice(at, at + 6)
      const put = { ...shape, block, previous: block === 0 ? 0 : 6 }
      let index = 0
      own.forEach((bytes, i) => {
        wanted.push(sourcePacket('kodok', bytes, i, put))
        for (let n = i === 1 ? 1 : i === 4 ? 2 : 0; n > 0; n--) {
          const seed = seedOf(wire[wanted.length])
          wanted.push(repairPacket('kodok', own.slice(0, i + 1), index++, seed, put))
        }
      })
      at += 6
    }
    expect(wire).toEqual(wanted)
    expect(bench.metrics().enc).toMatchObject({ source_packets: 13, repair_packets: 6 })
    bench.stop()
  })

  it('closes a block by its timeout, with the next repairs if a source has come since the last', () => {
    const bench = kodok(
      [
        [2, 1],
        [8, 3],
      ],
      { timeout: 20 },
    )
    const seen = () => bench.take('out').map(({ bytes, time }) => [isRepair(bytes), bytes[3], bytes[7], time / MS])
    bench.send('in', sizes(1))
    bench.advance(15 * MS)
    bench.send('in', sizes(2))
    seen()
    bench.advance(4.999 * MS)
    expect(seen()).toEqual([])
    bench.advance(100 * MS)
    expect(seen()).toEqual([
      [true, 1, 3, 20],
      [true, 2, 3, 20],
      [true, 3, 3, 20],
    ])
    // Of the next block no source comes after its first repair: it ends without another.
    const start = bench.now / MS
    bench.send('in', sizes(2))
    expect(seen()).toEqual([
      [false, 0, 3, start],
      [false, 1, 3, start],
      [true, 0, 2, start],
    ])
    bench.advance(100 * MS)
    expect(seen()).toEqual([])
    bench.send('in', sizes(1))
    expect(seen()).toEqual([[false, 0, 2, start + 100]])
    const config = {
      input: 'in',
      output: 'out',
      repair_configs: [
        [2, 1],
        [8, 3],
      ],
    }
    const points = config.repair_configs.map(([source_packets, repair_packets]) => ({ source_packets, repair_packets }))
    bench.reconfigure({ enc: { kodok_encoder: { ...config, repair_configs: points, timeout: 50 } } })
    bench.advance(49.999 * MS)
    expect(seen()).toEqual([])
    bench.advance(MS)
    expect(seen()).toEqual([[true, 0, 1, start + 150]])
    bench.stop()
  })

  it('refuses points that do not rise, and more than 255 repairs, by name and value', () => {
    const refused = (points: [number, number][]) =>
      refusal({
        enc: {
          kodok_encoder: {
            input: 'in',
            output: 'out',
            repair_configs: points.map(([source_packets, repair_packets]) => ({ source_packets, repair_packets })),
          },
        },
      })
    const flat = refused([
      [4, 1],
      [4, 2],
    ])
    expect(flat.pointer).toMatch(/\/repair_configs\/1\/source_packets$/)
    expect(flat.message).toContain('source_packets is 4 after 4')
    const many = refused([
      [4, 200],
      [5, 56],
    ])
    expect(many.pointer).toMatch(/\/repair_configs\/1\/repair_packets$/)
    expect(many.message).toContain('256')
    expect(refused([[256, 1]]).pointer).toMatch(/source_packets$/)
    expect(refused([]).pointer).toMatch(/repair_configs$/)
  })
})

describe.each(['rlnc', 'kodok'] as const)('%s_decoder', (key) => {
  it('recovers each source at the moment it follows, and nothing that does not, in any order of arrival', () => {
    const scenario = fc.record({
      k: fc.integer({ min: 1, max: 20 }),
      r: fc.integer({ min: 1, max: 10 }),
      seed: fc.integer(),
      loss: fc.double({ min: 0.1, max: 0.6, noNaN: true }),
    })
    let recovered = 0
    let lost = 0
    fc.assert(
      fc.property(scenario, ({ k, r, seed, loss }) => {
        const random = new Random(seed)
        const sources = Array.from({ length: k }, (_, i) => payload(random.below(90), i))
        const closings = Array.from({ length: r }, () => (key === 'kodok' ? 1 + random.below(k) : k))
        const seeds = Array.from({ length: r }, () => random.bits())
        const wire = [
          ...sources.map((bytes, i) => sourcePacket(key, bytes, i, { k, r })),
          ...closings.map((closing, j) => repairPacket(key, sources.slice(0, closing), j, seeds[j], { k, r })),
        ]
        const arriving = wire
          .map((packet, n) => ({ packet, n, at: random.float() }))
          .filter(() => !random.chance(loss))
          .sort((a, b) => a.at - b.at)
        const bench = decoderOf(key)
        const had = new Set<number>()
        const came = new Set<number>()
        const rows: Uint8Array[] = []
        for (const { packet, n } of arriving) {
          bench.send('in', packet)
          const wanted: number[] = []
          if (n < k) {
            came.add(n)
            if (!had.has(n)) wanted.push(n)
          } else rows.push(coefficients(seeds[n - k], closings[n - k]))
          for (const i of wanted) had.add(i)
          const unknowns = [...Array(k).keys()].filter((i) => !came.has(i))
          for (const i of determined(rows, unknowns)) {
            if (had.has(i)) continue
            wanted.push(i)
            had.add(i)
            recovered++
          }
          expect(bytesOut(bench).map(hex)).toEqual(wanted.map((i) => hex(sources[i])))
        }
        lost += k - had.size
        expect(bench.metrics().dec).toMatchObject({ malformed_packets: 0, wrong_recoveries: 0, duplicate_packets: 0 })
        bench.stop()
      }),
      { seed: 11, numRuns: 300 },
    )
    expect(recovered).toBeGreaterThan(200)
    expect(lost).toBeGreaterThan(200)
  })

  it('delivers through an encoder, any batches, losses, reordering and duplicates, each packet at most once and as it was', () => {
    const scenario = fc.record({
      code: fc.constantFrom([8, 2], [16, 4], [50, 10], [7, 1], [100, 30]),
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
        const points: [number, number][] = [
          [k >> 1, r >> 1],
          [k, r - (r >> 1)],
        ]
        const encoder = key === 'rlnc' ? rlnc(k, r) : kodok(points)
        for (let at = 0; at < sources.length; at += chunk) encoder.send('in', sources.slice(at, at + chunk))
        const wire = bytesOut(encoder)
        encoder.stop()
        const arrive: { bytes: Uint8Array; order: number }[] = []
        for (let b = 0; b < blocks; b++) {
          const packets = wire.slice(b * (k + r), (b + 1) * (k + r))
          // At least one repair of the whole block is more than is missing.
          for (let n = 0; n < (r - (r >> 1)) / 2; n++) packets.splice(random.below(k), 1)
          for (const bytes of packets) {
            arrive.push({ bytes, order: b * 1000 + random.below(1500) })
            if (random.chance(0.2)) arrive.push({ bytes, order: b * 1000 + random.below(1500) })
          }
        }
        arrive.sort((one, other) => one.order - other.order)
        const decoder = decoderOf(key)
        const list = arrive.map(({ bytes }) => bytes)
        for (let at = 0; at < list.length; at += chunk) decoder.send('in', list.slice(at, at + chunk))
        const got = bytesOut(decoder)
        const left = new Set(sources.map(hex))
        for (const bytes of got) expect(left.delete(hex(bytes)), `${tagOf(bytes)} was sent, and came once`).toBe(true)
        missing += left.size
        sent += sources.length
        decoder.stop()
      }),
      { seed: 5, numRuns: 60 },
    )
    expect(sent).toBeGreaterThan(3000)
    // One equation too few, or just enough of them and those not independent.
    expect(missing).toBeLessThan(20)
  })
})

describe('rlnc_decoder', () => {
  it('gives a recovered packet the annotations of the one that completed it, and counts what came for nothing', () => {
    const sources = sizes(4)
    const { sources: s, repairs } = rlncBlock(sources, 4)
    const bench = decoderOf('rlnc')
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
    const bench = decoderOf('rlnc')
    for (let n = -3; n < 3; n++) {
      const sources = sizes(5, 20 + n)
      const made = rlncBlock(sources, 3, { k: 10, block: n })
      bench.send('in', [made.sources[4], made.repairs[1], made.sources[0], made.repairs[0], made.repairs[2]])
      expect(sorted(bytesOut(bench))).toEqual(sorted(sources))
    }
    expect(bench.metrics().dec).toMatchObject({ recovered_packets: 18, unrecovered_packets: 0 })
    bench.stop()
  })

  it('gives blocks up when they leave the window, counts what they lack, and measures the loss', () => {
    const bench = decoderOf('rlnc')
    const blocks = 1500
    for (let block = 0; block < blocks; block++) {
      const { sources, repairs } = rlncBlock(sizes(8, 4), 2, { block })
      if (block % 50 === 7) continue
      bench.send('in', block % 5 === 0 ? [...sources.slice(2), repairs[0]] : [...sources, ...repairs])
      bench.take('out')
    }
    const { dec } = bench.metrics()
    const gone = blocks - 128
    const silent = Math.floor((gone - 8) / 50) + 1
    expect(dec.unrecovered_packets).toBe(Math.ceil(gone / 5) * 2 + silent * 8)
    expect(dec.measured_loss).toBeGreaterThan(0.07)
    expect(dec.measured_loss).toBeLessThan(0.09)
    expect(bench.packets.held).toBeLessThan(1100)
    bench.send('in', rlncBlock(sizes(8, 4), 2, { block: 3 }).sources)
    expect(bytesOut(bench)).toEqual([])
    expect(bench.metrics().dec.late_packets).toBe(8)
    bench.stop()
  })

  it('drops repairs that contradict the sources or each other, passes every source, and recovers with those that agree', () => {
    const sources = [payload(30, 1), payload(60, 2), payload(45, 3), payload(10, 4)]
    const good = rlncBlock(sources, 4)
    const shorter = rlncBlock(
      sources.map((bytes) => bytes.slice(0, 20)),
      4,
    )
    const longer = rlncBlock([payload(200, 1), ...sources.slice(1)], 4)
    const fewer = rlncBlock(sources.slice(0, 2), 4, { k: 4 })
    const check = (arriving: Uint8Array[], malformed: number, wanted: Uint8Array[]) => {
      const bench = decoderOf('rlnc')
      for (const packet of arriving) bench.send('in', packet)
      expect(sorted(bytesOut(bench))).toEqual(sorted(wanted))
      expect(bench.metrics().dec).toMatchObject({ malformed_packets: malformed, wrong_recoveries: 0 })
      bench.stop()
    }
    const [s0, s1, s2, s3] = good.sources
    // Too short for a source that came before it, or that comes after it.
    check([s1, shorter.repairs[0], s0, s2, good.repairs[1]], 1, sources)
    check([shorter.repairs[0], s1, s0, s2, good.repairs[1]], 1, sources)
    // Of fewer sources than there are.
    check([s2, fewer.repairs[0], s0, s1, good.repairs[1]], 1, sources)
    check([fewer.repairs[0], s2, s0, s1, good.repairs[1]], 1, sources)
    // Longer than anything that follows can make it: it is the one that none agrees with.
    check([s0, s1, good.repairs[1], longer.repairs[0], good.repairs[2]], 1, sources)
    // All of them made up: the sources leave nevertheless.
    check([longer.repairs[0], longer.repairs[1], s0, s1, s2, s3], 2, sources)
  })

  it('passes a source that a forged repair had replaced, and counts the wrong recovery', () => {
    const sources = [payload(30, 1), payload(30, 2), payload(30, 3)]
    const forged = rlncBlock([sources[0], sources[1], payload(30, 9)], 1)
    const good = rlncBlock(sources, 1)
    const bench = decoderOf('rlnc')
    bench.send('in', [good.sources[0], good.sources[1], forged.repairs[0]])
    expect(bytesOut(bench)).toEqual([sources[0], sources[1], payload(30, 9)])
    bench.send('in', good.sources[2])
    expect(bytesOut(bench)).toEqual([sources[2]])
    expect(bench.metrics().dec).toMatchObject({ wrong_recoveries: 1, recovered_packets: 1 })
    bench.stop()
  })

  it('recovers in as many blocks at once as it keeps, one packet of each at a time', () => {
    const blocks = Array.from({ length: 40 }, (_, block) => ({
      own: sizes(6, 30 + block),
      ...rlncBlock(sizes(6, 30 + block), 3, { block }, 1000 * block),
    }))
    const bench = decoderOf('rlnc')
    for (let n = 0; n < 3; n++) for (const { sources } of blocks) bench.send('in', sources[n + 1])
    for (let n = 0; n < 3; n++) for (const { repairs } of blocks) bench.send('in', repairs[n])
    expect(sorted(bytesOut(bench))).toEqual(sorted(blocks.flatMap(({ own }) => own)))
    expect(bench.metrics().dec).toMatchObject({ recovered_packets: 120, held_packets: 0 })
    bench.stop()
  })

  it('forgets everything at RESET', () => {
    const sources = sizes(3)
    const made = rlncBlock(sources, 2)
    const bench = decoderOf('rlnc')
    bench.send('in', [made.sources[0], made.repairs[0]])
    bench.notify('in', 'RESET')
    expect(bench.packets.held).toBe(0)
    bench.send('in', [made.sources[1], made.repairs[1]])
    expect(bytesOut(bench)).toEqual([sources[0], sources[1]])
    bench.stop()
  })
})

describe('kodok_decoder', () => {
  it('recovers early sources from early repairs, long before the block ends', () => {
    const sources = sizes(20)
    const shape = { k: 20, r: 4 }
    const packet = (i: number) => sourcePacket('kodok', sources[i], i, shape)
    const repair = (closing: number, j: number) => repairPacket('kodok', sources.slice(0, closing), j, 77 + j, shape)
    const bench = decoderOf('kodok')
    bench.send('in', [0, 1, 3, 4].map(packet))
    bench.send('in', repair(5, 0))
    expect(bytesOut(bench)).toEqual([0, 1, 3, 4, 2].map((i) => sources[i]))
    bench.send('in', [5, 6, 8, 9].map(packet))
    bench.send('in', repair(10, 1))
    expect(bytesOut(bench)).toEqual([5, 6, 8, 9, 7].map((i) => sources[i]))
    bench.send('in', packet(2))
    expect(bytesOut(bench)).toEqual([])
    expect(bench.metrics().dec).toMatchObject({ recovered_packets: 2, late_packets: 1, held_packets: 2 })
    bench.stop()
  })

  it('tells a source once, also when other blocks were worked on meanwhile, or there was no slot to keep it', () => {
    const sources = sizes(6)
    const packetsOf = (block: number) => {
      const shape = { k: 6, r: 4, block }
      return {
        source: (i: number) => sourcePacket('kodok', sources[i], i, shape),
        repair: (closing: number, j: number) =>
          repairPacket('kodok', sources.slice(0, closing), j, 50 * block + j, shape),
      }
    }
    const bench = decoderOf('kodok')
    const first = packetsOf(0)
    bench.send('in', [first.source(0), first.source(1), first.repair(3, 0)])
    expect(bytesOut(bench)).toEqual([sources[0], sources[1], sources[2]])
    for (let block = 1; block <= 40; block++) {
      const { source, repair } = packetsOf(block)
      bench.send('in', [source(0), repair(3, 0)])
    }
    bytesOut(bench)
    bench.send('in', first.repair(4, 1))
    expect(bytesOut(bench)).toEqual([sources[3]])
    const last = packetsOf(41)
    const taken: number[] = []
    while (bench.packets.available > 1) taken.push(bench.packets.allocate())
    bench.send('in', last.source(0))
    expect(bench.metrics().dec.unkept_packets).toBe(1)
    for (const packet of taken) bench.packets.release(packet)
    bench.send('in', last.source(1))
    expect(bytesOut(bench)).toEqual([sources[0], sources[1]])
    // Two equations for what is not at hand, of which one source has left already.
    bench.send('in', [last.repair(3, 0), last.repair(3, 1)])
    expect(bytesOut(bench)).toEqual([sources[2]])
    bench.stop()
  })

  it('learns from the next block how many sources one has that ended early, and counts no more than those', () => {
    const bench = decoderOf('kodok')
    const send = (block: number, count: number, previous: number, lost: readonly number[]) => {
      const sources = sizes(count, 20)
      const shape = { k: 10, r: 2, block, previous }
      const wire = sources.map((bytes, i) => sourcePacket('kodok', bytes, i, shape))
      bench.send(
        'in',
        wire.filter((_, i) => !lost.includes(i)),
      )
    }
    send(0, 4, 0, [])
    const held = bench.packets.held
    expect(held).toBe(4)
    send(1, 6, 4, [2, 5])
    // The first block is known to be whole now, and nothing of it is kept any more.
    expect(bench.packets.held).toBe(4)
    for (let block = 2; block < 300; block++) send(block, 10, block === 2 ? 6 : 10, [])
    expect(bench.metrics().dec.unrecovered_packets).toBe(2)
    bench.stop()
  })
})
