/** rely_encoder and _decoder: what is on the wire, what is recovered, in which order, when it is given up, what is counted, what junk does. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Bench, drive, payload, refusal, tagOf } from '../../../../test/harness/component.ts'
import { multiplyAdd } from '../../codes/gf256.ts'
import { codingCoefficients } from '../../codes/tinymt32.ts'
import { Random } from '../../engine/random.ts'

const encoderOf = (fields: Record<string, unknown>) =>
  drive({ enc: { rely_encoder: { input: 'in', output: 'out', ...fields } } })
const decoderOf = (fields: Record<string, unknown> = {}) =>
  drive({ dec: { rely_decoder: { input: 'in', output: 'out', ...fields } } })
const bytesOut = (bench: Bench) => bench.take('out').map(({ bytes }) => bytes)
const tagsOut = (bench: Bench) => bench.take('out').map(({ bytes }) => tagOf(bytes))
const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset)
const isRepair = (bytes: Uint8Array) => bytes[0] === 0xb9

const SESSION = 0xabcdef

function sourcePacket(bytes: Uint8Array, sequence: number, session = SESSION): Uint8Array {
  const packet = new Uint8Array(10 + bytes.length)
  const view = viewOf(packet)
  view.setUint32(0, 0xb8 * 2 ** 24 + session)
  view.setUint32(4, sequence >>> 0)
  view.setUint16(8, bytes.length)
  packet.set(bytes, 10)
  return packet
}

/** The repair of payloads whose first has number `first`, built from the documentation. */
function repairPacket(sources: readonly Uint8Array[], first: number, key: number, session = SESSION): Uint8Array {
  const symbols = sources.map((bytes) => Uint8Array.of(bytes.length >> 8, bytes.length & 255, ...bytes))
  const packet = new Uint8Array(12 + Math.max(...symbols.map(({ length }) => length)))
  const view = viewOf(packet)
  view.setUint32(0, 0xb9 * 2 ** 24 + session)
  view.setUint32(4, first >>> 0)
  view.setUint16(8, sources.length)
  view.setUint16(10, key)
  const coefficients = codingCoefficients(key, sources.length)
  symbols.forEach((symbol, i) => {
    multiplyAdd(packet, 12, symbol, 0, symbol.length, coefficients[i])
  })
  return packet
}

/** First source, how many, and key of a repair. */
const windowOf = (bytes: Uint8Array) => [
  viewOf(bytes).getUint32(4),
  viewOf(bytes).getUint16(8),
  viewOf(bytes).getUint16(10),
]
const sized = (count: number) => Array.from({ length: count }, (_, i) => payload(40 + ((i * 7) % 31), i))

describe('rely_encoder', () => {
  it('puts on the wire what the documentation and the mathematics say', () => {
    const bench = encoderOf({ repair_target_rate: 0.5 })
    const sources = [payload(10, 1), payload(300, 2), payload(0), payload(77, 3)]
    bench.send('in', sources, { remote: '192.0.2.9:99', client: 5 })
    const out = bench.take('out')
    const session = viewOf(out[0].bytes).getUint32(0) & 0xffffff
    const wanted = [
      sourcePacket(sources[0], 0, session),
      sourcePacket(sources[1], 1, session),
      repairPacket(sources.slice(0, 2), 0, 0, session),
      sourcePacket(sources[2], 2, session),
      sourcePacket(sources[3], 3, session),
      repairPacket(sources, 0, 1, session),
    ]
    expect(out.map(({ bytes }) => bytes)).toEqual(wanted)
    for (const packet of out) expect(packet).toMatchObject({ remote: '192.0.2.9:99', client: 5 })
    expect(bench.metrics().enc).toMatchObject({ source_packets: 4, repair_packets: 2 })
    bench.stop()
  })

  it.each([
    [0, 0],
    [0.1, 100],
    [0.15, 150],
    [1, 1000],
    [2.5, 2500],
    [4, 4000],
  ])('at a rate of %f sends %i repairs for 1,000 sources', (rate, repairs) => {
    const bench = encoderOf({ repair_target_rate: rate, max_payloads: 8 })
    for (let n = 0; n < 10; n++) bench.send('in', sized(100))
    expect(bytesOut(bench).filter(isRepair)).toHaveLength(repairs)
    bench.stop()
  })

  it('covers the newest max_payloads that are younger than repair_time_window and timeout', () => {
    const windows = (fields: Record<string, unknown>) => {
      const bench = encoderOf({ repair_target_rate: 1, ...fields })
      for (let n = 0; n < 200; n++) {
        bench.send('in', payload(20, n))
        bench.advance(1e6)
      }
      const last = bytesOut(bench).filter(isRepair).at(-1) as Uint8Array
      bench.stop()
      return windowOf(last).slice(0, 2)
    }
    expect(windows({})).toEqual([100, 100])
    expect(windows({ repair_time_window: 30 })).toEqual([170, 30])
    expect(windows({ repair_time_window: 30, timeout: 20 })).toEqual([180, 20])
    expect(windows({ timeout: 500 })).toEqual([100, 100])
    expect(windows({ max_payloads: 7 })).toEqual([193, 7])
    expect(windows({ repair_time_window: 1000 })).toEqual([0, 200])
  })

  it('protects what is left after flush_after_ms of silence, and at FLUSH, once', () => {
    const bench = encoderOf({ repair_target_rate: 0.25, flush_after_ms: 8 })
    bench.send('in', sized(6), { remote: '192.0.2.9:99', client: 5 })
    expect(bytesOut(bench).filter(isRepair).map(windowOf)).toEqual([[0, 4, 0]])
    bench.advance(7.9e6)
    expect(bytesOut(bench)).toEqual([])
    bench.advance(0.2e6)
    const flushed = bench.take('out')
    expect(flushed).toMatchObject([{ time: 8e6, remote: '192.0.2.9:99', client: 5 }])
    expect(windowOf(flushed[0].bytes)).toEqual([0, 6, 1])
    bench.advance(1e9)
    bench.notify('in', 'FLUSH')
    expect(bytesOut(bench)).toEqual([])
    bench.send('in', sized(1))
    bench.notify('in', 'FLUSH')
    expect(bytesOut(bench).filter(isRepair).map(windowOf)).toEqual([[6, 1, 2]])
    expect(bench.notifications('out')).toEqual(['FLUSH', 'FLUSH'])
    bench.stop()
  })

  it('takes changed fields over, another size of the window with a window that begins anew', () => {
    const bench = encoderOf({ repair_target_rate: 0.5, max_payloads: 10 })
    const change = (fields: Record<string, unknown>) =>
      bench.reconfigure({ enc: { rely_encoder: { input: 'in', output: 'out', ...fields } } })
    bench.send('in', sized(20))
    expect(bytesOut(bench).filter(isRepair)).toHaveLength(10)
    change({ repair_target_rate: 0, max_payloads: 10 })
    bench.send('in', sized(20))
    expect(bytesOut(bench).filter(isRepair)).toHaveLength(0)
    change({ repair_target_rate: 0.25, max_payloads: 10 })
    bench.send('in', sized(4))
    expect(bytesOut(bench).filter(isRepair).map(windowOf)).toEqual([[40, 4, 10]])
    change({ repair_target_rate: 0.25, max_payloads: 500 })
    bench.send('in', sized(8))
    expect(bytesOut(bench).filter(isRepair).map(windowOf)).toEqual([
      [44, 4, 11],
      [44, 8, 12],
    ])
    bench.stop()
  })

  it('drops what has no room for the header, and says so of repairs when slots have run out', () => {
    const bench = drive(
      { enc: { rely_encoder: { input: 'in', output: 'out', repair_target_rate: 1 } } },
      { mtu: 70_000 },
    )
    bench.send('in', new Uint8Array(65_536))
    expect(bench.metrics().enc).toMatchObject({ no_room_packets: 1, source_packets: 0 })
    bench.stop()
  })

  it.each([
    [{ repair_target_rate: 4.5 }, '/repair_target_rate', /4/],
    [{ repair_target_rate: -0.1 }, '/repair_target_rate', /0/],
    [{ repair_target_rate: 1, max_payloads: 4097 }, '/max_payloads', /4096/],
    [{ repair_target_rate: 1, timeout: -1 }, '/timeout', /0/],
    [{}, '/repair_target_rate', /required|missing/],
  ])('refuses %j', (fields, where, what) => {
    const { pointer, message } = refusal({ enc: { rely_encoder: { input: 'in', output: 'out', ...fields } } })
    expect(`${pointer} ${message}`).toContain(where.slice(1))
    expect(message).toMatch(what)
  })
})

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

  it('passes a source on although a repair made another of it, in its turn and not both', () => {
    const good = sized(4)
    const forged = [good[0], payload(50, 66), good[2], good[3]]
    for (const inOrder of [false, true]) {
      const bench = decoderOf({ release_in_order: inOrder })
      bench.send('in', [sourcePacket(good[0], 0), sourcePacket(good[3], 3)])
      bench.send('in', repairPacket(forged.slice(0, 3), 0, 1))
      bench.send('in', repairPacket(forged.slice(1, 2), 1, 2))
      bench.send('in', [sourcePacket(good[1], 1), sourcePacket(good[2], 2)])
      const tags = tagsOut(bench)
      expect(tags).toContain(1)
      expect(tags).toContain(2)
      expect(bench.metrics().dec.wrong_recoveries).toBeGreaterThan(0)
      bench.stop()
    }
  })

  it('drops junk and repairs that contradict what came', () => {
    const sources = sized(3)
    const bench = decoderOf()
    const source = sourcePacket(sources[0], 0)
    bench.send('in', [source, new Uint8Array(0), source.subarray(0, 9), source.subarray(0, 20), new Uint8Array(100)])
    expect(bytesOut(bench)).toEqual([sources[0]])
    expect(bench.metrics().dec.malformed_packets).toBe(4)
    const repair = repairPacket(sources, 0, 1)
    const wrong = [repair.subarray(0, 13), repair.subarray(0, 20)]
    for (const count of [0, 4097]) {
      const other = repair.slice()
      viewOf(other).setUint16(8, count)
      wrong.push(other)
    }
    bench.send('in', wrong)
    expect(bench.metrics().dec).toMatchObject({ malformed_packets: 8, used_repair_packets: 0 })
    const far = repair.slice()
    viewOf(far).setUint32(4, 100_000)
    bench.send('in', far)
    expect(bench.metrics().dec).toMatchObject({ unusable_repair_packets: 1 })
    bench.stop()
  })

  it('makes nothing that was not sent of packets that were cut, lengthened, repeated, replayed or made up', () => {
    const random = new Random(Number(process.env.PENSTOCK_TEST_SEED ?? 4))
    const total = Number(process.env.PENSTOCK_TEST_PACKETS ?? 20_000)
    let recovered = 0
    for (let done = 0; done < total; ) {
      const enc = encoderOf({ repair_target_rate: 0.4, max_payloads: 1 + random.below(60) })
      const dec = decoderOf({ release_in_order: random.chance(0.5), timeout: 30 })
      const sent = new Set<string>()
      const wire: Uint8Array[] = []
      const past: Uint8Array[] = []
      for (let step = 0; step < 60; step++) {
        const sources = Array.from({ length: 1 + random.below(12) }, () => {
          const bytes = new Uint8Array(random.below(120))
          random.fill(bytes, 0, bytes.length)
          sent.add(Buffer.from(bytes).toString('hex'))
          return bytes
        })
        enc.send('in', sources)
        wire.push(...bytesOut(enc))
        const arriving = wire.splice(0).flatMap((packet): Uint8Array[] => {
          past.push(packet)
          if (random.chance(0.2)) return []
          const old = past[Math.max(0, past.length - 1 - random.below(80))] as Uint8Array
          switch (random.below(8)) {
            case 0:
              return [packet.slice(0, random.below(packet.length))]
            case 1: {
              const long = new Uint8Array(packet.length + 1 + random.below(40))
              if (random.chance(0.7)) random.fill(long, 0, long.length)
              long.set(packet)
              return [long]
            }
            case 2: {
              const bytes = new Uint8Array(random.below(100))
              random.fill(bytes, 0, bytes.length)
              return [bytes]
            }
            case 3:
              return [packet, old]
            default:
              return [packet]
          }
        })
        dec.send('in', arriving)
        done += arriving.length
        dec.advance(1e6)
        for (const bytes of bytesOut(dec)) expect(sent).toContain(Buffer.from(bytes).toString('hex'))
      }
      recovered += dec.metrics().dec.recovered_packets
      enc.stop()
      dec.stop()
    }
    expect(recovered).toBeGreaterThan(total / 100)
  })

  it('measures the loss of sources', () => {
    const bench = decoderOf()
    const random = new Random(3)
    for (let n = 0; n < 5000; n++) if (!random.chance(0.2)) bench.send('in', sourcePacket(payload(10, n), n))
    bench.advance(1e6)
    expect(bench.metrics().dec.measured_loss).toBeGreaterThan(0.18)
    expect(bench.metrics().dec.measured_loss).toBeLessThan(0.22)
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
