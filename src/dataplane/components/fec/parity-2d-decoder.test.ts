/** parity_2d_decoder: what is recovered and when, what is counted, what junk does. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Bench, drive, payload } from '../../../../test/harness/component.ts'
import { blockOf, hex, packet, repaired, sizes, sorted, symbolOf, wireOf } from '../../../../test/harness/parity.ts'
import { Random } from '../../engine/random.ts'

type Fields = Record<string, unknown>

const encoderOf = (columns: number, rows: number, more: Fields = {}) =>
  drive({ enc: { parity_2d_encoder: { input: 'in', output: 'out', columns, rows, ...more } } })
const decoderOf = () => drive({ dec: { parity_2d_decoder: { input: 'in', output: 'out' } } })
const bytesOut = (bench: Bench) => bench.take('out').map(({ bytes }) => bytes)

describe('parity_2d_decoder', () => {
  it('recovers what rows and columns give back, at the moment they do, and nothing else, in any order of arrival', () => {
    const scenario = fc.record({
      columns: fc.integer({ min: 2, max: 7 }),
      rows: fc.integer({ min: 2, max: 7 }),
      part: fc.double({ min: 0.1, max: 1, noNaN: true }),
      seed: fc.integer(),
      loss: fc.double({ min: 0.05, max: 0.5, noNaN: true }),
      inOrder: fc.boolean(),
    })
    let recovered = 0
    let lost = 0
    fc.assert(
      fc.property(scenario, ({ columns, rows, part, seed, loss, inOrder }) => {
        const random = new Random(seed)
        const shape = { columns, rows }
        const count = Math.ceil(columns * rows * part)
        const sources = Array.from({ length: count }, (_, i) => payload(4 + random.below(90), i))
        const made = blockOf(sources, shape)
        const arriving = [
          ...made.sources.map((bytes, source) => ({ bytes, source, line: -1, saysEnd: false })),
          ...made.rows.map((bytes, line) => ({ bytes, source: -1, line, saysEnd: count < (line + 1) * columns })),
          ...made.columns.map((bytes, c) => ({ bytes, source: -1, line: rows + c, saysEnd: true })),
        ]
          .filter(() => !random.chance(loss))
          .map((one) => ({ ...one, at: random.float() }))
        if (!inOrder) arriving.sort((a, b) => a.at - b.at)
        const bench = decoderOf()
        const had = new Set<number>()
        const lines = new Set<number>()
        // Until a parity says where a block ends that was closed early, the rest of it may be on its way.
        let end = columns * rows
        for (const { bytes, source, line, saysEnd } of arriving) {
          bench.send('in', bytes)
          const wanted: number[] = []
          if (line >= 0) lines.add(line)
          else if (!had.has(source)) wanted.push(source)
          if (saysEnd) end = count
          for (const i of wanted) had.add(i)
          const missing = new Set([...Array(end).keys()].filter((i) => !had.has(i)))
          for (const i of repaired(missing, lines, shape)) {
            wanted.push(i)
            had.add(i)
            recovered++
          }
          expect(sorted(bytesOut(bench))).toEqual(sorted(wanted.map((i) => sources[i])))
        }
        lost += count - had.size
        expect(bench.metrics().dec).toMatchObject({ malformed_packets: 0, wrong_recoveries: 0, duplicate_packets: 0 })
        bench.stop()
      }),
      { seed: 11, numRuns: 200 },
    )
    expect(recovered).toBeGreaterThan(200)
    expect(lost).toBeGreaterThan(50)
  })

  it('delivers through an encoder, any batches, losses, reordering and duplicates, each packet at most once and as it was', () => {
    const scenario = fc.record({
      grid: fc.constantFrom([4, 4], [8, 4], [2, 2], [10, 10], [64, 3]),
      blocks: fc.integer({ min: 1, max: 5 }),
      seed: fc.integer(),
      chunk: fc.integer({ min: 1, max: 200 }),
    })
    let left = 0
    let sent = 0
    fc.assert(
      fc.property(scenario, ({ grid: [columns, rows], blocks, seed, chunk }) => {
        const random = new Random(seed)
        const sources = Array.from({ length: columns * rows * blocks }, (_, i) => payload(4 + random.below(1300), i))
        const encoder = encoderOf(columns, rows)
        for (let at = 0; at < sources.length; at += chunk) encoder.send('in', sources.slice(at, at + chunk))
        const wire = bytesOut(encoder)
        encoder.stop()
        const arrive = wire.flatMap((bytes, n) => {
          const copies = random.chance(0.03) ? 0 : random.chance(0.1) ? 2 : 1
          return Array.from({ length: copies }, () => ({ bytes, order: n + random.below(30) }))
        })
        arrive.sort((one, other) => one.order - other.order)
        const decoder = decoderOf()
        const list = arrive.map(({ bytes }) => bytes)
        for (let at = 0; at < list.length; at += chunk) decoder.send('in', list.slice(at, at + chunk))
        const missing = new Set(sources.map(hex))
        for (const bytes of bytesOut(decoder)) expect(missing.delete(hex(bytes))).toBe(true)
        left += missing.size
        sent += sources.length
        decoder.stop()
      }),
      { seed: 5, numRuns: 60 },
    )
    expect(sent).toBeGreaterThan(10_000)
    // Of 3 % lost 97 % are back.
    expect(left / sent).toBeLessThan(0.001 * 3)
  })

  it('gives a recovered packet the annotations of the one that completed it, and counts what came for nothing', () => {
    const sources = sizes(4)
    const { sources: s, rows, columns } = blockOf(sources, { columns: 2, rows: 2 })
    const bench = decoderOf()
    const step = (bytes: Uint8Array, client: number) => {
      bench.send('in', bytes, { remote: '[2001:db8::1]:7', client })
      return bench.take('out')
    }
    expect(step(rows[0], 1)).toEqual([])
    expect(bench.metrics().dec.held_packets).toBe(1)
    const completed = step(s[1], 2)
    expect(completed.map(({ bytes }) => bytes)).toEqual([sources[1], sources[0]])
    expect(completed[1]).toMatchObject({ remote: '[2001:db8::1]:7', client: 2 })
    for (const bytes of [s[0], s[0], rows[0]]) expect(step(bytes, 3)).toEqual([])
    step(s[2], 3)
    expect(step(columns[1], 4).map(({ bytes }) => bytes)).toEqual([sources[3]])
    step(columns[0], 4)
    step(rows[1], 4)
    expect(bench.metrics().dec).toMatchObject({
      recovered_packets: 2,
      late_packets: 1,
      duplicate_packets: 2,
      redundant_packets: 2,
      spent_packets: 2,
      held_packets: 0,
      malformed_packets: 0,
      unrecovered_packets: 0,
    })
    expect(bench.packets.held).toBe(0)
    bench.stop()
  })

  it('gives blocks up when they leave the window, counts what they lack, and measures the loss', () => {
    const bench = decoderOf()
    const shape = { columns: 4, rows: 2 }
    const blocks = 1000
    for (let block = 0; block < blocks; block++) {
      const wire = wireOf(sizes(8, 4), { ...shape, block: block - 500 })
      if (block % 50 === 7) continue
      // Two of one row and column each, and their parities: no line has one missing only.
      bench.send('in', block % 5 === 0 ? wire.filter((_, n) => ![0, 1, 5, 6].includes(n)) : wire)
      bench.take('out')
    }
    const { dec } = bench.metrics()
    const gone = blocks - 128
    const silent = Math.floor((gone - 8) / 50) + 1
    expect(dec.unrecovered_packets).toBe(Math.ceil(gone / 5) * 4 + silent * 8)
    expect(dec.measured_loss).toBeGreaterThan(0.06)
    expect(dec.measured_loss).toBeLessThan(0.09)
    bench.send('in', blockOf(sizes(8, 4), { ...shape, block: -497 }).sources)
    expect(bytesOut(bench)).toEqual([])
    expect(bench.metrics().dec.late_packets).toBe(8)
    bench.stop()
  })

  it.each([0, 20])(
    'takes blocks that were lost whole, the first after %i others, for as short as those around them',
    (first) => {
      const bench = decoderOf()
      const shape = { columns: 4, rows: 4 }
      for (let block = 0; block < first + 300; block++) {
        const wire = wireOf(sizes(block < first + 60 ? 1 : 16), { ...shape, block })
        if (block < first || block >= first + 20) bench.send('in', wire)
        // Its session is heard from its start, and nothing says how long the block was.
        else if (block === 0) bench.send('in', wireOf(sizes(16), { ...shape, block })[0])
      }
      expect(bench.metrics().dec.unrecovered_packets).toBe(first === 0 ? 19 : 20)
      bench.stop()
    },
  )

  it('drops parities that contradict the sources, and passes every source', () => {
    const sources = [payload(30, 1), payload(60, 2), payload(45, 3), payload(10, 4)]
    const shape = { columns: 2, rows: 2 }
    const good = blockOf(sources, shape)
    const shorter = blockOf(
      sources.map((bytes) => bytes.slice(0, 20)),
      shape,
    )
    const longer = blockOf([payload(200, 1), payload(300, 2), ...sources.slice(2)], shape)
    const fewer = blockOf(sources.slice(0, 2), shape)
    const check = (arriving: Uint8Array[], malformed: number, wanted: Uint8Array[]) => {
      const bench = decoderOf()
      for (const bytes of arriving) bench.send('in', bytes)
      expect(sorted(bytesOut(bench))).toEqual(sorted(wanted))
      expect(bench.metrics().dec).toMatchObject({ malformed_packets: malformed, wrong_recoveries: 0 })
      bench.stop()
    }
    const [s0, s1, s2, s3] = good.sources
    check([s1, shorter.rows[0], good.columns[0], s2], 1, [sources[0], sources[1], sources[2]])
    check([shorter.rows[0], s1, s2, s3, good.columns[0]], 1, sources)
    check([longer.rows[0], s1, s2, s3, good.columns[0]], 1, sources)
    check([s2, fewer.columns[0], s1, s3, good.rows[0]], 1, sources)
    // A block that was said to have ended before them.
    check([fewer.columns[0], s2, s3, s0, s1], 0, sources)
  })

  it('passes a source that a forged parity had replaced, and counts the wrong recovery', () => {
    const sources = [payload(30, 1), payload(30, 2), payload(30, 3), payload(30, 4)]
    const shape = { columns: 2, rows: 2 }
    const forged = blockOf([payload(30, 9), ...sources.slice(1)], shape)
    const good = blockOf(sources, shape)
    const bench = decoderOf()
    bench.send('in', [good.sources[1], forged.rows[0]])
    expect(bytesOut(bench)).toEqual([sources[1], payload(30, 9)])
    bench.send('in', good.sources[0])
    expect(bytesOut(bench)).toEqual([sources[0]])
    expect(bench.metrics().dec).toMatchObject({ wrong_recoveries: 1, recovered_packets: 1 })
    bench.stop()
  })

  it('keeps no more than a quarter of the slots, and gives up the oldest blocks first', () => {
    const bench = decoderOf()
    const { packets } = bench
    // Sessions with blocks of 128 lines, of each one source.
    for (let session = 1; session <= 64; session++) {
      for (let block = 0; block < 4; block++) {
        const shape = { columns: 64, rows: 64, session, block }
        bench.send(
          'in',
          Array.from({ length: 64 }, (_, i) => packet(0xb6, 0, (i * 65) % 4096, symbolOf(payload(40, i)), shape)),
        )
        bench.take('out')
      }
      expect(packets.held).toBeLessThan(packets.slots / 4 + 200)
    }
    bench.stop()
  })

  it('follows a sender that leaps far ahead once it is believed, and passes its sources meanwhile', () => {
    const bench = decoderOf()
    const shape = { columns: 2, rows: 2 }
    const send = (block: number, drop = false) => {
      const wire = wireOf(sizes(4, 20), { ...shape, block })
      bench.send('in', drop ? wire.slice(1) : wire)
      return bytesOut(bench).length
    }
    for (let block = 0; block < 4; block++) expect(send(block)).toBe(4)
    expect(send(1_000_000)).toBe(4)
    expect(send(4, true)).toBe(4)
    for (let block = 2_000_000; block < 2_000_003; block++) expect(send(block)).toBe(4)
    expect(bench.metrics().dec.unfollowed_packets).toBe(4 + 7)
    expect(send(2_000_003, true)).toBe(4)
    bench.stop()
  })

  it.each([50, 64, 200, 5000])('counts what an outage of %i blocks cost, once its session goes on', (cut) => {
    const bench = decoderOf()
    const shape = { columns: 4, rows: 4 }
    const whole = (from: number, to: number) => {
      for (let block = from; block < to; block++) bench.send('in', wireOf(sizes(16, 4), { ...shape, block }))
    }
    whole(-50, 0)
    bench.send('in', blockOf(sizes(16, 4), { ...shape, block: 0 }).sources.slice(0, 10))
    whole(cut + 1, cut + 201)
    const { dec } = bench.metrics()
    expect(dec).toMatchObject({ unrecovered_packets: 6 + cut * 16, followed_sessions: 1, late_packets: 0 })
    const came = (50 + 200 - 63) * 24 + 10
    const lost = 14 + cut * 24
    if (lost + came < 10_000) expect(dec.measured_loss).toBeCloseTo(lost / (lost + came), 2)
    else expect(dec.measured_loss).toBeGreaterThan(0.4)
    bench.stop()
  })

  it('counts nothing where an encoder begins anew or far elsewhere, nor for junk', () => {
    const bench = decoderOf()
    const send = (session: number, block: number, count: number) => {
      for (let n = 0; n < count; n++) {
        bench.send('in', wireOf(sizes(4, 4), { columns: 2, rows: 2, session, block: block + n }))
      }
    }
    send(1, 2 ** 32 - 300, 600)
    send(2, 0, 600)
    send(2, 2 ** 30, 600)
    // Sources far ahead, each elsewhere, are of no outage, however many come in a row.
    for (let junk = 1; junk <= 20; junk++) {
      bench.send('in', blockOf(sizes(4), { columns: 2, rows: 2, session: 1, block: junk * 7919 }).sources[0])
    }
    send(1, 300, 600)
    expect(bench.metrics().dec).toMatchObject({ unrecovered_packets: 0, measured_loss: 0, late_packets: 0 })
    bench.stop()
  })

  it('forgets everything at RESET', () => {
    const sources = sizes(4)
    const made = blockOf(sources, { columns: 2, rows: 2 })
    const bench = decoderOf()
    bench.send('in', [made.sources[0], made.rows[1]])
    bench.notify('in', 'RESET')
    expect(bench.packets.held).toBe(0)
    bench.send('in', [made.sources[2], made.rows[0]])
    expect(bytesOut(bench)).toEqual([sources[0], sources[2]])
    bench.stop()
  })
})
