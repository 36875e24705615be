/** rely_decoder: what is recovered, in which order, when it is given up, whom it follows. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Bench, drive, payload, tagOf } from '../../../../test/harness/component.ts'
import { isRepair, repairPacket, sized, sourcePacket, viewOf } from '../../../../test/harness/rely.ts'
import { Random } from '../../engine/random.ts'

const encoderOf = (fields: Record<string, unknown>) =>
  drive({ enc: { rely_encoder: { input: 'in', output: 'out', ...fields } } })
const decoderOf = (fields: Record<string, unknown> = {}) =>
  drive({ dec: { rely_decoder: { input: 'in', output: 'out', ...fields } } })
const bytesOut = (bench: Bench) => bench.take('out').map(({ bytes }) => bytes)
const tagsOut = (bench: Bench) => bench.take('out').map(({ bytes }) => tagOf(bytes))

describe('rely_decoder', () => {
  it('passes sources on at once and recovered ones as soon as they are determined', () => {
    const bench = decoderOf()
    const sources = sized(6)
    const wire = sources.map((bytes, i) => sourcePacket(bytes, i))
    bench.send('in', [wire[0], wire[1], wire[4]])
    expect(bytesOut(bench)).toEqual([sources[0], sources[1], sources[4]])
    bench.send('in', repairPacket(sources.slice(0, 5), 0, 7))
    expect(bytesOut(bench)).toEqual([])
    bench.send('in', repairPacket(sources.slice(0, 5), 0, 8), { remote: '192.0.2.9:99', client: 5 })
    const out = bench.take('out')
    expect(out.map(({ bytes }) => bytes)).toEqual([sources[2], sources[3]])
    for (const packet of out) expect(packet).toMatchObject({ remote: '192.0.2.9:99', client: 5 })
    bench.send('in', [repairPacket(sources.slice(0, 5), 0, 9), wire[2], wire[2], wire[1]])
    expect(bytesOut(bench)).toEqual([])
    bench.advance(0)
    expect(bench.metrics().dec).toMatchObject({
      recovered_packets: 2,
      used_repair_packets: 2,
      redundant_packets: 1,
      late_packets: 1,
      duplicate_packets: 2,
      unrecovered_packets: 0,
      followed_sessions: 1,
    })
    bench.stop()
  })

  it('recovers sources whose successors were all lost too', () => {
    const bench = decoderOf({ release_in_order: true })
    const sources = sized(4)
    bench.send('in', [sourcePacket(sources[0], 0), sourcePacket(sources[1], 1)])
    bench.send('in', [repairPacket(sources, 0, 1), repairPacket(sources, 0, 2)])
    expect(bytesOut(bench)).toEqual(sources)
    bench.send('in', sourcePacket(sources[3], 3))
    expect(bench.metrics().dec).toMatchObject({ late_packets: 1, recovered_packets: 2 })
    bench.stop()
  })

  it('with release_in_order lets a quarter of the slots of the run wait, beyond that not the sender with the most of them', () => {
    const bench = decoderOf({ release_in_order: true, timeout: 100_000 })
    const quarter = bench.packets.slots / 4
    const waiting = [4, 11, 8, 8, 4].map((part) => (part * quarter) / 32)
    const bytes = payload(40, 1)
    let passed = 0
    for (const [session, count] of waiting.entries()) {
      // The second source is lost.
      const wire = Array.from({ length: count + 2 }, (_, n) => sourcePacket(bytes, n, session))
      bench.send('in', wire[0])
      for (let at = 2; at < wire.length; at += 256) {
        bench.send('in', wire.slice(at, at + 256))
        passed += bytesOut(bench).length
        bench.advance(0)
        expect(bench.metrics().dec.held_packets).toBeLessThanOrEqual(quarter)
      }
    }
    expect(bench.metrics().dec).toMatchObject({ unrecovered_packets: 1, held_packets: (quarter * 24) / 32 })
    expect(passed).toBe(waiting.length + waiting[1])
    bench.stop()
  })

  it('with release_in_order lets packets wait for those before them, however they become known', () => {
    const sources = sized(8)
    const wire = sources.map((bytes, i) => sourcePacket(bytes, i))
    const bench = decoderOf({ release_in_order: true })
    bench.send('in', [wire[0], wire[3], wire[2], wire[5]])
    expect(tagsOut(bench)).toEqual([0])
    bench.advance(0)
    expect(bench.metrics().dec.held_packets).toBe(3)
    bench.send('in', [repairPacket(sources.slice(0, 6), 0, 3)])
    // Gives 4 away as well.
    bench.send('in', [wire[1], wire[6], wire[7]])
    expect(tagsOut(bench)).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(bench.metrics().dec).toMatchObject({ recovered_packets: 1, held_packets: 0 })
    bench.stop()
  })

  it('gives a missing packet up timeout after a later one came, and drops it when it comes after that', () => {
    const wire = sized(10).map((bytes, i) => sourcePacket(bytes, i))
    const bench = decoderOf({ release_in_order: true, timeout: 50 })
    bench.send('in', [wire[0], wire[2]])
    bench.advance(20e6)
    bench.send('in', [wire[5]])
    bench.advance(29.9e6)
    expect(tagsOut(bench)).toEqual([0])
    bench.advance(0.2e6)
    expect(bench.take('out')).toMatchObject([{ time: 50e6 }])
    bench.send('in', [wire[1], wire[3]])
    expect(tagsOut(bench)).toEqual([3])
    bench.advance(20e6)
    expect(tagsOut(bench)).toEqual([5])
    expect(bench.metrics().dec).toMatchObject({ unrecovered_packets: 2, late_packets: 1 })
    bench.stop()
    const usual = decoderOf()
    usual.send('in', [wire[0], wire[2]])
    usual.advance(199e6)
    expect(usual.metrics().dec.unrecovered_packets).toBe(0)
    usual.advance(2e6)
    expect(usual.metrics().dec.unrecovered_packets).toBe(1)
    usual.stop()
  })

  it('takes changed fields over: a shorter timeout at once, and what waits leaves when order no longer matters', () => {
    const wire = sized(10).map((bytes, i) => sourcePacket(bytes, i))
    const bench = decoderOf({ release_in_order: true, timeout: 5000 })
    const change = (fields: Record<string, unknown>) =>
      bench.reconfigure({ dec: { rely_decoder: { input: 'in', output: 'out', ...fields } } })
    bench.send('in', [wire[0], wire[2], wire[4]])
    bench.advance(100e6)
    expect(tagsOut(bench)).toEqual([0])
    change({ release_in_order: false, timeout: 5000 })
    expect(tagsOut(bench)).toEqual([2, 4])
    bench.send('in', [wire[6]])
    expect(tagsOut(bench)).toEqual([6])
    change({ release_in_order: true, timeout: 5000 })
    bench.send('in', [wire[5], wire[8], wire[7]])
    expect(tagsOut(bench)).toEqual([5, 7, 8])
    change({ release_in_order: true, timeout: 20 })
    expect(bench.metrics().dec.unrecovered_packets).toBe(2)
    bench.stop()
  })

  it('follows encoders side by side, and a restarted one', () => {
    const sources = sized(4)
    const bench = decoderOf()
    for (const session of [1, 2, 3]) {
      const wire = sources.map((bytes, i) => sourcePacket(bytes, i, session))
      bench.send('in', [wire[0], wire[1]])
    }
    for (const session of [1, 2, 3]) {
      bench.send('in', [sourcePacket(sources[3], 3, session), repairPacket(sources, 0, session, session)])
    }
    expect(bytesOut(bench)).toHaveLength(3 * 4)
    expect(bench.metrics().dec).toMatchObject({ recovered_packets: 3, followed_sessions: 3 })
    bench.notify('in', 'RESET')
    bench.advance(0)
    expect(bench.metrics().dec.followed_sessions).toBe(0)
    expect(bench.notifications('out')).toEqual(['RESET'])
    bench.stop()
  })

  it('begins a flow that is under way with its first source, whatever repairs come before it or after a RESET', () => {
    const bench = decoderOf({ release_in_order: true, timeout: 1000 })
    const sources = Array.from({ length: 400 }, (_, n) => payload(20, n))
    const repair = (first: number, count: number, key: number) =>
      repairPacket(sources.slice(first, first + count), first, key)
    const source = (n: number) => sourcePacket(sources[n], n)
    for (const at of [300, 350]) {
      bench.send('in', [repair(at - 290, 290, 1), repair(at - 40, 40, 2)])
      bench.send('in', [source(at), source(at + 2), repair(at, 3, 3)])
      expect(tagsOut(bench)).toEqual([at, at + 1, at + 2])
      bench.notify('in', 'RESET')
    }
    bench.advance(2e9)
    expect(bench.metrics().dec).toMatchObject({
      unrecovered_packets: 0,
      unfollowed_repair_packets: 4,
      recovered_packets: 2,
      measured_loss: 0,
    })
    bench.stop()
  })

  it('begins at its beginning a flow whose first packet that comes is a repair over its first sources', () => {
    const bench = decoderOf({ release_in_order: true })
    const sources = sized(4)
    bench.send('in', [repairPacket(sources, 0, 1), sourcePacket(sources[1], 1)])
    bench.send('in', [sourcePacket(sources[2], 2), sourcePacket(sources[3], 3)])
    expect(tagsOut(bench)).toEqual([0, 1, 2, 3])
    expect(bench.metrics().dec).toMatchObject({ recovered_packets: 1, unfollowed_repair_packets: 0 })
    bench.stop()
  })

  it('passes once what comes doubled and late of a flow that is under way, where it is met and where it has gone on far off', () => {
    for (const release_in_order of [false, true]) {
      const bench = decoderOf({ release_in_order })
      const heard: number[] = []
      const hear = (numbers: number[]) => {
        for (const n of numbers) bench.send('in', sourcePacket(payload(20, n), n))
        heard.push(...numbers)
      }
      hear([100, 99, 99, 101, 97, 99, 100, 97])
      for (const start of [102, 10_000]) for (let n = start; n < start + 20; n++) hear([n + 1, n, n + 1, n - 2, n])
      bench.advance(1e9)
      const tags = tagsOut(bench)
      expect(tags.toSorted((one, other) => one - other)).toEqual([...new Set(heard)].sort((a, b) => a - b))
      expect(bench.metrics().dec).toMatchObject({
        duplicate_packets: heard.length - tags.length,
        late_packets: 0,
        held_packets: 0,
      })
      bench.stop()
    }
  })

  it('passes the sources of a 65th session on, and follows it when one of the others has been silent', () => {
    const bench = decoderOf()
    for (let session = 1; session <= 64; session++) bench.send('in', sourcePacket(payload(20, 0), 0, session))
    bench.take('out')
    bench.send('in', repairPacket([payload(20, 1), payload(20, 2)], 1, 1, 99))
    expect(bench.metrics().dec.unfollowed_repair_packets).toBe(1)
    for (let n = 0; n < 12; n++) bench.send('in', sourcePacket(payload(20, n), n, 99))
    expect(tagsOut(bench)).toEqual([...Array(12).keys()])
    bench.advance(0)
    expect(bench.metrics().dec).toMatchObject({
      followed_sessions: 64,
      unfollowed_packets: 7,
      unfollowed_repair_packets: 1,
    })
    // The first one gave way: its next packet is a newcomer's.
    bench.send('in', sourcePacket(payload(20, 1), 1, 1))
    expect(bench.metrics().dec.unfollowed_packets).toBe(8)
    bench.send('in', sourcePacket(payload(20, 1), 1, 2))
    expect(bench.metrics().dec.unfollowed_packets).toBe(8)
    bench.stop()
  })

  it('follows a leap when 8 packets in a row make it, and not for one', () => {
    const bench = decoderOf()
    const send = (sequence: number) => bench.send('in', sourcePacket(payload(20, sequence), sequence))
    send(0)
    send(1_000_000)
    send(1)
    for (let n = 0; n < 8; n++) send(2_000_000 + n)
    expect(bench.metrics().dec).toMatchObject({ unfollowed_packets: 8, unrecovered_packets: 0 })
    send(2_000_009)
    bench.send(
      'in',
      repairPacket(
        [8, 9].map((n) => payload(20, 2_000_000 + n)),
        2_000_008,
        4,
      ),
    )
    expect(tagsOut(bench).slice(-2)).toEqual([2_000_009, 2_000_008])
    // The first after the leap may have been out of the way; once several have come, what is far behind is late.
    send(2)
    expect(bench.metrics().dec).toMatchObject({ late_packets: 0, unfollowed_packets: 9, recovered_packets: 1 })
    for (let n = 10; n < 20; n++) send(2_000_000 + n)
    send(3)
    expect(bench.metrics().dec).toMatchObject({ late_packets: 1, unfollowed_packets: 9 })
    bench.stop()
  })

  it('is not led astray for long by a first packet that is out of the way', () => {
    const bench = decoderOf()
    bench.send('in', sourcePacket(payload(20, 2 ** 30), 2 ** 30))
    const sources = Array.from({ length: 20 }, (_, n) => payload(20, n))
    bench.send(
      'in',
      sources.filter((_, n) => n !== 15).map((bytes) => sourcePacket(bytes, tagOf(bytes))),
    )
    bench.send('in', repairPacket(sources.slice(10), 10, 1))
    expect(tagsOut(bench).slice(1)).toEqual([...Array(15).keys(), 16, 17, 18, 19, 15])
    bench.stop()
  })

  it('measures the loss of sources', () => {
    const bench = decoderOf()
    const random = new Random(3)
    for (let n = 0; n < 5000; n++) if (!random.chance(0.2)) bench.send('in', sourcePacket(payload(10, n), n))
    // Until their time is over they may be late.
    bench.advance(199e6)
    expect(bench.metrics().dec.measured_loss).toBe(0)
    bench.advance(1e6)
    expect(bench.metrics().dec.measured_loss).toBeGreaterThan(0.18)
    expect(bench.metrics().dec.measured_loss).toBeLessThan(0.22)
    bench.stop()
  })

  it('measures no loss where all sources came, in whatever order and however many', () => {
    const bench = decoderOf()
    const AT_ONCE = 40
    const sent = Array.from({ length: 30_000 }, (_, n) => n)
    // Each part of them comes backwards.
    for (let at = 0; at < sent.length; at += AT_ONCE) {
      for (const n of sent.slice(at, at + AT_ONCE).reverse()) bench.send('in', sourcePacket(payload(10, n), n))
      expect(bench.metrics().dec.measured_loss).toBe(0)
    }
    bench.stop()
  })

  it('between an encoder and any loss invents nothing, repeats nothing, keeps the order, and accounts for all', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 2 ** 30 }),
        fc.integer({ min: 0, max: 60 }),
        fc.boolean(),
        fc.constantFrom(0.05, 0.2, 1, 3),
        (seed, loss, inOrder, rate) => {
          const random = new Random(seed)
          const enc = encoderOf({ repair_target_rate: rate, max_payloads: 1 + random.below(300), flush_after_ms: 5 })
          const dec = decoderOf({ release_in_order: inOrder, timeout: 40 })
          const sent: Uint8Array[] = []
          const inTime: number[] = []
          const late: Uint8Array[] = []
          for (let step = 0; step < 60; step++) {
            const sources = Array.from({ length: random.below(12) }, () => {
              sent.push(payload(4 + random.below(200), sent.length))
              return sent.at(-1) as Uint8Array
            })
            enc.send('in', sources)
            enc.advance(1e6)
            const wire = bytesOut(enc).filter((packet) => {
              const isLost = random.below(100) < loss
              if (isLost && random.chance(0.2)) late.push(packet)
              if (!isLost && !isRepair(packet)) inTime.push(viewOf(packet).getUint32(4))
              return !isLost
            })
            dec.send('in', wire)
            if (late.length > 0 && random.chance(0.5)) dec.send('in', late.splice(random.below(late.length), 1))
            dec.advance(1e6)
          }
          dec.send('in', late)
          dec.advance(200e6)
          const out = bytesOut(dec)
          for (const bytes of out) expect(bytes).toEqual(sent[tagOf(bytes)])
          const tags = out.map(tagOf)
          expect(new Set(tags).size).toBe(tags.length)
          if (inOrder) {
            const { late_packets: dropped } = dec.metrics().dec
            if (dropped === 0) expect(tags).toEqual([...tags].sort((a, b) => a - b))
          }
          const { unrecovered_packets: gone, recovered_packets: mended, no_slot_packets: none } = dec.metrics().dec
          expect(none).toBe(0)
          expect(tags).toEqual(expect.arrayContaining(inTime))
          expect(tags.length).toBeGreaterThanOrEqual(inTime.length + mended)
          // What was the last of all, and lost, is neither.
          expect(tags.length + gone).toBeLessThanOrEqual(sent.length)
          expect(dec.metrics().dec).toMatchObject({ malformed_packets: 0, wrong_recoveries: 0, held_packets: 0 })
          enc.stop()
          dec.stop()
        },
      ),
      { seed: 8, numRuns: 60 },
    )
  })
})
