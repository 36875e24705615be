/** Decoders among many encoders, restarted and made up ones: every source that comes leaves once, and nothing is invented. */
import { describe, expect, it } from 'vitest'
import {
  BLOCK_CODES,
  blockOf,
  bytesOut,
  decoderOf,
  REED_SOLOMON,
  sizes,
  sorted,
} from '../../../../test/harness/block-codes.ts'
import { drive, payload, tagOf } from '../../../../test/harness/component.ts'
import { Random } from '../../engine/random.ts'

const decoder = (config: object = {}) => decoderOf(REED_SOLOMON, config)

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

  it('are as many as max_sessions says from the moment on that it changes', () => {
    const bench = decoder({ max_sessions: 3 })
    const wires = Array.from({ length: 3 }, (_, n) => wireOf(n, 80, [4, 2]))
    const change = (max_sessions: number) =>
      bench.reconfigure({ dec: { reed_solomon_decoder: { input: 'in', output: 'out', max_sessions } } })
    let block = 0
    /** Of each encoder in turn a block that lost two of its sources; how many come out, and how many encoders are followed. */
    const followed = () => {
      for (const wire of wires) {
        const packets = wire.slice(block * 6, block * 6 + 6)
        bench.send('in', [packets[0], ...packets.slice(3)])
      }
      block++
      return [bytesOut(bench).length, bench.metrics().dec.followed_sessions]
    }
    expect(followed()).toEqual([12, 3])
    change(2)
    // The first one was silent longest.
    expect(followed()).toEqual([2 + 4 + 4, 2])
    expect(bench.metrics().dec.unfollowed_packets).toBe(2)
    change(3)
    // It comes back with what it begins now.
    expect(followed()).toEqual([12, 3])
    expect(followed()).toEqual([12, 3])
    change(1)
    expect(bench.metrics().dec.followed_sessions).toBe(1)
    expect(followed()).toEqual([2 + 2 + 4, 1])
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

  it('do not recover again what passed before they gave way, or before there was a place for them', () => {
    const bench = decoder({ max_sessions: 1 })
    const block = (encoder: number, n: number) => wireOf(encoder, 9, [3, 16]).slice(n * 19, n * 19 + 19)
    const tags = () => bytesOut(bench).map(tagOf)
    bench.send('in', block(0, 0).slice(0, 3))
    bench.send('in', block(1, 0))
    expect(tags()).toEqual([0, 1, 2, 1000, 1001, 1002])
    // With the eighth repair it takes the place of the other one; those that follow would give its sources once more.
    bench.send('in', block(0, 0).slice(3))
    expect(tags()).toEqual([])
    bench.send('in', [...block(1, 1), block(0, 1)[0]])
    expect(tags()).toEqual([1003, 1004, 1005, 3])
    bench.reconfigure({ dec: { reed_solomon_decoder: { input: 'in', output: 'out', max_sessions: 2 } } })
    bench.send('in', block(0, 1).slice(1))
    expect(tags()).toEqual([4, 5])
    // The next block is followed from its beginning.
    bench.send('in', block(0, 2).slice(3))
    expect(tags()).toEqual([6, 7, 8])
    bench.stop()
  })

  it('do not recover again what passed before max_sessions cost them their place, or another session did, whenever it gives them one again', () => {
    const [one, other] = [wireOf(0, 8, [4, 4]), wireOf(1, 8, [4, 4])]
    for (const lowers of [true, false]) {
      const bench = decoder({ max_sessions: lowers ? 2 : 1 })
      const change = (max_sessions: number) =>
        bench.reconfigure({ dec: { reed_solomon_decoder: { input: 'in', output: 'out', max_sessions } } })
      bench.send('in', [...one.slice(0, 2), ...other])
      bytesOut(bench)
      if (lowers) change(1)
      change(2)
      expect(bench.metrics().dec.followed_sessions).toBe(1)
      bench.send('in', one.slice(2, 8))
      expect(bytesOut(bench).map(tagOf)).toEqual([2, 3])
      // The next block is followed from its beginning.
      bench.send('in', one.slice(10))
      expect(bytesOut(bench).map(tagOf)).toEqual([6, 7, 4, 5])
      bench.stop()
    }
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

describe.each(BLOCK_CODES)('%s_decoder', (_key, code) => {
  it('follows a restarted encoder at once, the old one beside it', () => {
    const bench = decoderOf(code)
    for (let block = 0; block < 20; block++) {
      bench.send('in', Object.values(blockOf(code, sizes(5), 2, { block, session: 1 })).flat())
    }
    bytesOut(bench)
    const sources = sizes(5, 90)
    const fresh = blockOf(code, sources, 2, { block: 0, session: 2 })
    const straggler = blockOf(code, sizes(5), 2, { block: 20, session: 1 })
    bench.send('in', [fresh.repairs[0], straggler.sources[1], fresh.repairs[1], ...fresh.sources.slice(0, 3)])
    expect(sorted(bytesOut(bench))).toEqual(sorted([...sources, sizes(5)[1]]))
    bench.stop()
  })

  it('lets no junk session displace a session that has proved itself', () => {
    const bench = decoderOf(code)
    const next = { block: 0 }
    const damaged = () => {
      const { sources, repairs } = blockOf(code, sizes(5), 2, { block: next.block++, session: 7 })
      return [sources.slice(0, 2), [sources[4], ...repairs]]
    }
    for (let n = 0; n < 3; n++) for (const part of damaged()) bench.send('in', part)
    bytesOut(bench)
    for (let junk = 0; junk < 300; junk++) {
      const [before, after] = damaged()
      bench.send('in', before)
      const spoof = blockOf(code, sizes(1), 254, { block: junk * 7919, session: 1000 + junk }).repairs
      const leap = blockOf(code, sizes(5), 2, { block: 1e9 + junk * 1e6, session: 7 }).sources
      const misfit = blockOf(code, sizes(6), 2, { block: next.block, session: 7 }).sources
      bench.send('in', [...spoof.slice(0, 5), leap[0], misfit[0]])
      bytesOut(bench)
      bench.send('in', after)
      expect(bench.take('out')).toHaveLength(3)
    }
    expect(bench.metrics().dec).toMatchObject({ malformed_packets: 0, followed_sessions: 64 })
    expect(bench.packets.held).toBeLessThan(700)
    bench.stop()
  })

  it.each([
    ['within the window', 100],
    ['of a window', 128],
    ['longer than that', 187],
    ['much longer', 5000],
  ])('counts what an outage cost, %s, and has one session afterwards', (_what, cut) => {
    const bench = decoderOf(code)
    const wire = (block: number) => blockOf(code, sizes(8, 4), 2, { block })
    const whole = (from: number, to: number) => {
      for (let block = from; block < to; block++) bench.send('in', Object.values(wire(block)).flat())
    }
    whole(-50, 0)
    // It begins and ends in the middle of a block, and what comes then is not quite in its order.
    bench.send('in', wire(0).sources.slice(0, 5))
    const end = cut + 1
    bench.send('in', Object.values(wire(end + 1)).flat())
    bench.send('in', [...wire(end).sources.slice(6), ...wire(end).repairs])
    whole(end + 2, end + 2 + 300)
    expect(bytesOut(bench)).toHaveLength((50 + 301) * 8 + 5 + 2)
    const { dec } = bench.metrics()
    expect(dec).toMatchObject({ unrecovered_packets: 3 + cut * 8 + 6, followed_sessions: 1, late_packets: 0 })
    expect(bench.packets.held).toBe(0)
    const came = (50 + 301 - 127) * 10 + 5 + 4
    const share = (cut * 10 + 11) / (cut * 10 + 11 + came)
    if (cut < 1000) expect(dec.measured_loss).toBeCloseTo(share, 2)
    else expect(dec.measured_loss).toBeGreaterThan(0.7)
    bench.stop()
  })

  it('has as many places as before after outages, and where all are taken one leaves a session where it was', () => {
    const bench = decoderOf(code)
    const send = (session: number, block: number, count = 1) => {
      for (let n = 0; n < count; n++) {
        bench.send('in', Object.values(blockOf(code, sizes(4), 1, { session, block: block + n })).flat())
      }
    }
    for (let session = 1; session <= 63; session++) send(session, 0, 3)
    for (let n = 0; n < 10; n++) send(1, n * 1000, 3)
    expect(bench.metrics().dec).toMatchObject({ followed_sessions: 63, unrecovered_packets: 9 * 997 * 4 })
    send(64, 0, 3)
    send(2, 5000, 4)
    expect(bench.metrics().dec).toMatchObject({ followed_sessions: 64, unrecovered_packets: (9 * 997 + 4997) * 4 })
    const { unfollowed_packets } = bench.metrics().dec
    expect(unfollowed_packets).toBeLessThan(8)
    // All others are where they were.
    for (let session = 3; session <= 64; session++) send(session, 3)
    expect(bench.metrics().dec).toMatchObject({ followed_sessions: 64, unfollowed_packets, late_packets: 0 })
    bench.stop()
  })

  it('counts nothing where an encoder begins anew or far elsewhere, nor for junk', () => {
    const bench = decoderOf(code)
    const send = (session: number, block: number, count: number) => {
      for (let n = 0; n < count; n++) {
        bench.send('in', Object.values(blockOf(code, sizes(8, 4), 2, { session, block: block + n })).flat())
      }
    }
    send(1, 2 ** 32 - 100, 200)
    send(2, 0, 200)
    send(2, 2 ** 30, 200)
    expect(bench.metrics().dec).toMatchObject({ unrecovered_packets: 0, measured_loss: 0, followed_sessions: 2 })
    // One source far ahead between others is none of an outage, and keeps no place.
    bench.send('in', blockOf(code, sizes(8, 4), 2, { session: 1, block: 5000 }).sources[0])
    expect(bench.metrics().dec.followed_sessions).toBe(3)
    send(1, 100, 200)
    expect(bench.metrics().dec).toMatchObject({ unrecovered_packets: 0, measured_loss: 0, late_packets: 0 })
    expect(bench.metrics().dec.followed_sessions).toBe(2)
    bench.stop()
  })

  it('follows a leap of its own session, as after an outage', () => {
    const bench = decoderOf(code)
    for (const start of [0, 5000, 1e9, 3e9]) {
      for (let block = start; block < start + 30; block++) {
        const sources = sizes(5)
        const made = blockOf(code, sources, 2, { block })
        // A leap is believed of sources, not of repairs.
        const [first, ...others] = made.sources.slice(2)
        bench.send('in', [first, ...made.repairs, ...others])
        expect(sorted(bytesOut(bench))).toEqual(sorted(sources))
      }
    }
    bench.stop()
  })
})
