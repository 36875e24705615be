/** rely_decoder where numbers leap: bursts and outages are followed and counted, a source that strays alone costs nobody anything. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Bench, drive, payload, tagOf } from '../../../../test/harness/component.ts'
import { isRepair, sourcePacket, viewOf } from '../../../../test/harness/rely.ts'
import { Random } from '../../engine/random.ts'

const MS = 1e6
const decoderOf = (fields: Record<string, unknown> = {}) =>
  drive({ dec: { rely_decoder: { input: 'in', output: 'out', ...fields } } })
const tagsOut = (bench: Bench) => bench.take('out').map(({ bytes }) => tagOf(bytes))
const source = (n: number, tag = n) => sourcePacket(payload(20, tag), n)
const STRAY = 1e6

/** What an encoder sends of `count` packets, batch by batch of one. */
function wireOf(count: number, fields: Record<string, unknown>): Uint8Array[][] {
  const bench = drive({ enc: { rely_encoder: { input: 'in', output: 'out', ...fields } } })
  const wire = Array.from({ length: count }, (_, n) => {
    bench.send('in', payload(20, n))
    bench.advance(MS)
    return bench.take('out').map(({ bytes }) => bytes)
  })
  bench.stop()
  return wire
}

/** A source with its number raised. */
function raised(packet: Uint8Array, by: number): Uint8Array {
  const other = packet.slice()
  viewOf(other).setUint32(4, viewOf(packet).getUint32(4) + by)
  viewOf(other).setUint32(10, STRAY)
  return other
}

describe.each([false, true])('rely_decoder with release_in_order %s', (release_in_order) => {
  it.each([65, 300, 1000, 4000])('loses one packet at most to a source whose number is %i too high', (by) => {
    for (const interval of [1, 15, 500]) {
      const bench = decoderOf({ release_in_order, timeout: 300 })
      const out: number[] = []
      for (let n = 0; n < 100 + by + 100; n++) {
        bench.send('in', source(n))
        if (n === 100) bench.send('in', source(n + by, STRAY))
        bench.advance(interval * MS)
        if (n % 50 === 0) out.push(...tagsOut(bench))
      }
      out.push(...tagsOut(bench))
      const all = Array.from({ length: 200 + by }, (_, n) => n).filter((n) => n !== 100 + by)
      expect(out.filter((tag) => tag !== STRAY)).toEqual(all)
      expect(out.filter((tag) => tag === STRAY)).toHaveLength(1)
      expect(bench.metrics().dec).toMatchObject({
        unrecovered_packets: 0,
        duplicate_packets: 1,
        late_packets: 0,
        measured_loss: 0,
        held_packets: 0,
      })
      bench.stop()
    }
  })

  it.each([300, 4000])('recovers as without it beside such a source, %i too high', (by) => {
    const wire = wireOf(2000, { repair_target_rate: 0.3 })
    const lost = (isStray: boolean) => {
      const random = new Random(5)
      const bench = decoderOf({ release_in_order })
      wire.forEach((packets, n) => {
        for (const packet of packets) if (!random.chance(0.1)) bench.send('in', packet)
        // None whose number others come to: what is taken for theirs spoils what is recovered there.
        if (isStray && n % 30 === 10 && n + by > 2000) bench.send('in', raised(packets[0], by))
        bench.advance(MS)
      })
      bench.advance(1e9)
      const missing = new Set(Array.from({ length: 2000 }, (_, n) => n))
      for (const tag of tagsOut(bench)) missing.delete(tag)
      bench.stop()
      return missing.size
    }
    expect(lost(false)).toBe(0)
    expect(lost(true)).toBe(0)
  })

  it.each([65, 200, 1000, 4000])(
    'follows a burst of %i losses at once, loses nothing behind it and counts it',
    (cut) => {
      const bench = decoderOf({ release_in_order, timeout: 50 })
      for (let n = 0; n < 100; n++) bench.send('in', source(n))
      tagsOut(bench)
      const start = bench.now
      for (let n = 0; n < 100; n++) {
        bench.send('in', source(100 + cut + n))
        bench.advance(MS)
      }
      const out = bench.take('out')
      expect(out.map(({ bytes }) => tagOf(bytes))).toEqual(Array.from({ length: 100 }, (_, n) => 100 + cut + n))
      // In their order they wait for those before them, from the first on that showed these to be missing.
      out.forEach(({ time }, n) => {
        expect(time - start).toBe(release_in_order ? Math.max(50, n) * MS : n * MS)
      })
      expect(bench.metrics().dec).toMatchObject({ unrecovered_packets: cut, unfollowed_packets: 0, held_packets: 0 })
      expect(bench.metrics().dec.measured_loss).toBeCloseTo(cut / (cut + 200), 6)
      bench.stop()
    },
  )

  it('lets nothing behind a burst of losses wait longer than timeout, however few packets come', () => {
    const bench = decoderOf({ release_in_order, timeout: 50 })
    for (let n = 0; n < 100; n++) bench.send('in', source(n))
    tagsOut(bench)
    for (let n = 0; n < 20; n++) {
      bench.send('in', source(500 + n))
      bench.advance(20 * MS)
    }
    bench.advance(100 * MS)
    const out = bench.take('out')
    expect(out.map(({ bytes }) => tagOf(bytes))).toEqual(Array.from({ length: 20 }, (_, n) => 500 + n))
    for (const { time, arrival } of out) expect(time - arrival).toBeLessThanOrEqual(50 * MS)
    expect(bench.metrics().dec.unrecovered_packets).toBe(400)
    bench.stop()
  })

  it('follows one of two paths that comes back ahead of the other', () => {
    const bench = decoderOf({ release_in_order, timeout: 300 })
    const out: number[] = []
    // The slower one is 200 packets behind, and the faster one was silent for 400.
    for (let n = 0; n < 2000; n++) {
      const [fast, slow] = [n, n - 200]
      if (fast % 2 === 0 && (fast < 500 || fast >= 900)) bench.send('in', source(fast))
      if (slow > 0 && slow % 2 === 1) bench.send('in', source(slow))
      bench.advance(MS)
      out.push(...tagsOut(bench))
    }
    const came = Array.from({ length: 2000 }, (_, n) => n).filter((n) => (n % 2 === 0 ? n < 500 || n >= 900 : n < 1800))
    const inTime = came.filter((n) => n < 1500)
    expect(out.filter((tag) => tag < 1500).sort((a, b) => a - b)).toEqual(inTime)
    if (release_in_order) expect(out).toEqual([...out].sort((a, b) => a - b))
    bench.advance(400 * MS)
    expect(bench.metrics().dec).toMatchObject({ late_packets: 0, unfollowed_packets: 0, unrecovered_packets: 299 })
    bench.stop()
  })

  it.each([4097, 5000, 20_000, 1_000_000])('counts what an outage of %i packets cost', (cut) => {
    const bench = decoderOf({ release_in_order, timeout: 50 })
    const [before, after] = [500, 5000]
    for (let n = 0; n < before; n++) if (n !== 490) bench.send('in', source(n))
    for (let n = 0; n < after; n++) bench.send('in', source(before + cut + n))
    bench.advance(1e9)
    expect(tagsOut(bench)).toHaveLength(before - 1 + after)
    const { dec } = bench.metrics()
    expect(dec).toMatchObject({ unrecovered_packets: cut + 1, late_packets: 0, followed_sessions: 1 })
    const lost = cut + 1
    const whole = before + cut + after - 7
    if (whole < 10_000) expect(dec.measured_loss).toBeCloseTo(lost / whole, 3)
    else expect(dec.measured_loss).toBeGreaterThan(0.4)
    bench.stop()
  })

  it('counts nothing where an encoder begins anew or far elsewhere, nor for junk', () => {
    const bench = decoderOf({ release_in_order })
    const send = (session: number, from: number, count: number) => {
      for (let n = 0; n < count; n++) bench.send('in', sourcePacket(payload(20, n), from + n, session))
    }
    send(1, 2 ** 32 - 100, 200)
    send(2, 0, 200)
    send(2, 2 ** 30, 200)
    for (let junk = 1; junk < 50; junk++) send(1, junk * 7919, 1)
    for (let junk = 1; junk < 50; junk++) send(1, 5000, 1)
    send(1, 100 + 4000, 1)
    bench.notify('in', 'RESET')
    send(1, 100, 200)
    bench.advance(1e9)
    expect(bench.metrics().dec).toMatchObject({ unrecovered_packets: 0, measured_loss: 0, late_packets: 0 })
    bench.stop()
  })

  it('takes numbers with any bit turned, between others, as quickly as others', () => {
    const bench = decoderOf({ release_in_order })
    let came = 0
    for (let n = 0; n < 2000; n++) {
      bench.send('in', source(n))
      if (n % 5 === 0 && n < 1900) bench.send('in', source(n ^ (1 << ((n / 5) % 32)), STRAY + n))
      bench.advance(MS)
      came += tagsOut(bench).filter((tag) => tag < STRAY).length
    }
    bench.advance(1e9)
    came += tagsOut(bench).filter((tag) => tag < STRAY).length
    const { duplicate_packets, unrecovered_packets } = bench.metrics().dec
    expect(unrecovered_packets).toBe(0)
    expect(came).toBeGreaterThanOrEqual(2000 - duplicate_packets)
    expect(came).toBeGreaterThan(1700)
    bench.stop()
  }, 15_000)

  it('passes every source once, and no other, whatever bursts, reordering and strays there are', () => {
    fc.assert(
      fc.property(fc.integer(), fc.array(fc.nat(5), { minLength: 5, maxLength: 25, size: 'max' }), (seed, parts) => {
        const random = new Random(seed)
        const bench = decoderOf({ release_in_order, timeout: 300 })
        const wanted = new Set<number>()
        const strays = new Set<number>()
        let next = 0
        const out: number[] = []
        const send = (n: number) => {
          if (!strays.has(n)) wanted.add(n)
          bench.send('in', source(n))
          bench.advance(0.1 * MS)
        }
        while (next < 10) send(next++)
        for (const part of parts) {
          if (part === 0) next += 65 + random.below(900)
          else if (part === 1) {
            const stray = next + 65 + random.below(3000)
            if (strays.has(stray)) continue
            strays.add(stray)
            bench.send('in', source(stray, STRAY + stray))
          } else if (part === 2) {
            // A few come in any order.
            const some = Array.from({ length: 20 }, (_, n) => next + n)
            while (some.length > 0) send(some.splice(random.below(some.length), 1)[0])
            next += 20
          } else {
            const count = 20 + random.below(200)
            for (let n = 0; n < count; n++) if (!random.chance(0.1)) send(next + n)
            next += count
          }
          out.push(...tagsOut(bench))
        }
        for (let n = 0; n < 50; n++) send(next + n)
        bench.advance(1e9)
        out.push(...tagsOut(bench))
        const genuine = out.filter((tag) => tag < STRAY)
        expect(new Set(out).size).toBe(out.length)
        expect(genuine.sort((a, b) => a - b)).toEqual([...wanted].sort((a, b) => a - b))
        expect(out.length - genuine.length).toBe(strays.size)
        expect(bench.metrics().dec).toMatchObject({ late_packets: 0, held_packets: 0 })
        bench.stop()
      }),
      { seed: 3, numRuns: 100 },
    )
  })
})

it('recovers behind a burst of losses what repairs behind it determine', () => {
  const wire = wireOf(1000, { repair_target_rate: 1, repair_time_window: 60 })
  const bench = decoderOf({ release_in_order: true, timeout: 500 })
  wire.forEach((packets, n) => {
    if (n >= 200 && n < 300) return
    bench.send('in', n === 310 ? packets.filter(isRepair) : packets)
    bench.advance(MS)
  })
  bench.advance(1e9)
  const tags = new Set(tagsOut(bench))
  const lost = Array.from({ length: 1000 }, (_, n) => n).filter((n) => !tags.has(n))
  // Half of the window behind it, as many repairs as sources.
  expect(lost.length).toBeLessThan(75)
  expect(Math.max(...lost)).toBeLessThan(275)
  bench.stop()
})
