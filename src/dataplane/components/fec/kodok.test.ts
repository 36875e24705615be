/** What is kodok's own: repairs in the middle of a block, blocks that end by time, and what the next one says of them. */
import { describe, expect, it } from 'vitest'
import {
  bytesOut,
  decoderOf,
  isRepair,
  KODOK,
  repairPacket,
  seedOf,
  sessionOf,
  sizes,
  sourcePacket,
} from '../../../../test/harness/block-codes.ts'
import { drive, refusal } from '../../../../test/harness/component.ts'

const MS = 1e6

/** The encoder that makes repairs at these points: source packets, repair packets. */
const kodok = (points: readonly (readonly [number, number])[], more: object = {}) =>
  drive({ enc: { kodok_encoder: { input: 'in', output: 'out', repair_configs: configsOf(points), ...more } } })

const configsOf = (points: readonly (readonly [number, number])[]) =>
  points.map(([source_packets, repair_packets]) => ({ source_packets, repair_packets }))

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
        wanted.push(sourcePacket(KODOK, bytes, i, put))
        for (let n = i === 1 ? 1 : i === 4 ? 2 : 0; n > 0; n--) {
          const seed = seedOf(wire[wanted.length])
          wanted.push(repairPacket(KODOK, own.slice(0, i + 1), index++, seed, put))
        }
      })
      at += 6
    }
    expect(wire).toEqual(wanted)
    expect(bench.metrics().enc).toMatchObject({ source_packets: 13, repair_packets: 6 })
    bench.stop()
  })

  it('closes a block by its timeout, with the next repairs if a source has come since the last', () => {
    const points = [
      [2, 1],
      [8, 3],
    ] as const
    const bench = kodok(points, { timeout: 20 })
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
    bench.reconfigure({
      enc: { kodok_encoder: { input: 'in', output: 'out', repair_configs: configsOf(points), timeout: 50 } },
    })
    bench.advance(49.999 * MS)
    expect(seen()).toEqual([])
    bench.advance(MS)
    expect(seen()).toEqual([[true, 0, 1, start + 150]])
    bench.stop()
  })

  it('refuses points that do not rise, and more than 255 repairs, by name and value', () => {
    const refused = (points: [number, number][]) =>
      refusal({ enc: { kodok_encoder: { input: 'in', output: 'out', repair_configs: configsOf(points) } } })
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

describe('kodok_decoder', () => {
  it('recovers early sources from early repairs, long before the block ends', () => {
    const sources = sizes(20)
    const shape = { k: 20, r: 4 }
    const packet = (i: number) => sourcePacket(KODOK, sources[i], i, shape)
    const repair = (closing: number, j: number) => repairPacket(KODOK, sources.slice(0, closing), j, 77 + j, shape)
    const bench = decoderOf(KODOK)
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
        source: (i: number) => sourcePacket(KODOK, sources[i], i, shape),
        repair: (closing: number, j: number) =>
          repairPacket(KODOK, sources.slice(0, closing), j, 50 * block + j, shape),
      }
    }
    const bench = decoderOf(KODOK)
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
    const bench = decoderOf(KODOK)
    const send = (block: number, count: number, previous: number, lost: readonly number[]) => {
      const sources = sizes(count, 20)
      const shape = { k: 10, r: 2, block, previous }
      const wire = sources.map((bytes, i) => sourcePacket(KODOK, bytes, i, shape))
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

  it('takes a block whose next one is lost for one like those before, and tells the loss of short blocks by their sources', () => {
    const bench = decoderOf(KODOK)
    const sources = sizes(2)
    // Of blocks that end early with 2 of 10 sources, every fifth is lost: nobody says how long the one before it was.
    for (let block = 0; block < 1500; block++) {
      if (block % 5 === 4) continue
      const shape = { k: 10, r: 2, block, previous: block === 0 ? 0 : 2 }
      bench.send(
        'in',
        sources.map((bytes, i) => sourcePacket(KODOK, bytes, i, shape)),
      )
      bench.take('out')
    }
    const { unrecovered_packets, measured_loss } = bench.metrics().dec as Record<string, number>
    const givenUp = 1_500 - 64
    expect(Math.abs(unrecovered_packets / ((givenUp / 5) * 2) - 1)).toBeLessThan(0.05)
    expect(Math.abs(measured_loss - 0.2)).toBeLessThan(0.02)
    bench.stop()
  })
})
