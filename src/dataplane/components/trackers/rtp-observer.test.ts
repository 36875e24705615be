/** rtp_observer: streams whose loss, order, jitter, rate and clock are known. */
import { describe, expect, test } from 'vitest'
import { type Bench, drive, refusal } from '../../../../test/harness/component.ts'
import { Random } from '../../engine/random.ts'

const MS = 1e6
const config = (fields = {}) => ({ eye: { rtp_observer: { input: 'in', output: 'out', ...fields } } })
const SSRC = 0xdeadbeef

interface Rtp {
  sequence: number
  timestamp?: number
  ssrc?: number
  type?: number
  bytes?: number
}

function rtp({ sequence, timestamp = 0, ssrc = SSRC, type = 0, bytes = 100 }: Rtp): Uint8Array {
  const made = new Uint8Array(bytes)
  const view = new DataView(made.buffer)
  view.setUint16(0, 0x8000 | type)
  view.setUint16(2, sequence)
  view.setUint32(4, timestamp)
  view.setUint32(8, ssrc)
  return made
}

/** `payload` in UDP and IPv4, with `options` words of options. */
function inV4(payload: Uint8Array, { options = 0, protocol = 17, fragment = 0, udpBytes = payload.length + 8 } = {}) {
  const header = 20 + options * 4
  const made = Buffer.alloc(header + 8 + payload.length)
  made[0] = 0x45 + options
  made.writeUInt16BE(made.length, 2)
  made.writeUInt16BE(fragment, 6)
  made[9] = protocol
  made.writeUInt16BE(5004, header + 2)
  made.writeUInt16BE(udpBytes, header + 4)
  made.set(payload, header + 8)
  return made
}

/** `payload` in UDP and IPv6, behind a hop-by-hop extension header when asked. */
function inV6(payload: Uint8Array, extended = false) {
  const extension = extended ? 8 : 0
  const made = Buffer.alloc(40 + extension + 8 + payload.length)
  made[0] = 0x60
  made.writeUInt16BE(made.length - 40, 4)
  made[6] = extended ? 0 : 17
  if (extended) made[40] = 17
  made.writeUInt16BE(payload.length + 8, 40 + extension + 4)
  made.set(payload, 48 + extension)
  return made
}

const eye = (bench: Bench) => bench.metrics().eye as Record<string, number>

/** What the place of a stream shows, without the names in front. */
function stream(bench: Bench, place = 0): Record<string, number> {
  const prefix = `stream_${place}_`
  const own = Object.entries(eye(bench)).filter(([name]) => name.startsWith(prefix))
  return Object.fromEntries(own.map(([name, value]) => [name.slice(prefix.length), value]))
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)

describe('where RTP is', () => {
  const other = (bytes: number) => (payload: Uint8Array) => Buffer.concat([Buffer.alloc(bytes), payload])
  test.each<[string, object, (payload: Uint8Array) => Uint8Array, boolean]>([
    ['at the start', {}, (payload) => payload, true],
    ['behind IPv4 and UDP', {}, (payload) => inV4(payload), true],
    ['behind IPv4 with options', {}, (payload) => inV4(payload, { options: 3 }), true],
    ['behind IPv6 and UDP', {}, (payload) => inV6(payload), true],
    ['behind IPv6 with an extension header', {}, (payload) => inV6(payload, true), true],
    ['in a UDP length of 0', {}, (payload) => inV4(payload, { udpBytes: 0 }), true],
    ['not beyond the UDP length', {}, (payload) => inV4(payload, { udpBytes: 19 }), false],
    ['not behind IPv4 and TCP', {}, (payload) => inV4(payload, { protocol: 6 }), false],
    ['not in a later fragment', {}, (payload) => inV4(payload, { fragment: 5 }), false],
    ['not at 4', {}, other(4), false],
    ['at force_offset', { force_offset: 4 }, other(4), true],
    ['at force_offset 0', { force_offset: 0 }, (payload) => payload, true],
    ['nowhere else with force_offset', { force_offset: 0 }, (payload) => inV4(payload), false],
    ['not where the packet ends before', { force_offset: 200 }, (payload) => payload, false],
    ['not far beyond any packet', { force_offset: 2_147_483_647 }, (payload) => payload, false],
  ])('%s', (_, fields, wrapped, isThere) => {
    const bench = drive(config(fields))
    const packets = range(0, 5).map((sequence) => wrapped(rtp({ sequence })))
    bench.send('in', packets)
    expect(eye(bench)).toMatchObject({ rtp_packets: isThere ? 5 : 0, other_packets: isThere ? 0 : 5 })
    expect(stream(bench).packets).toBe(isThere ? 5 : 0)
    expect(bench.received('out').map(({ bytes }) => Buffer.from(bytes))).toEqual(packets.map((it) => Buffer.from(it)))
    bench.advance(1000 * MS)
    expect(stream(bench).bits_per_second).toBe(isThere ? 4000 : 0)
    bench.stop()
  })

  test('force_offset changes while running', () => {
    const bench = drive(config())
    bench.send('in', [rtp({ sequence: 0 }), other(6)(rtp({ sequence: 1 }))])
    expect(eye(bench)).toMatchObject({ rtp_packets: 1, other_packets: 1 })
    bench.reconfigure(config({ force_offset: 6 }))
    bench.send('in', [other(6)(rtp({ sequence: 1 })), rtp({ sequence: 2, bytes: 12 })])
    expect(eye(bench)).toMatchObject({ rtp_packets: 2, other_packets: 2 })
    bench.reconfigure(config())
    bench.send('in', rtp({ sequence: 2 }))
    expect(stream(bench).packets).toBe(3)
    bench.stop()
  })

  test.each([
    [-1, 'is below the minimum of 0 bytes'],
    [2_147_483_648, 'is above the maximum of 2147483647 bytes'],
  ])('force_offset %d is refused', (force_offset, why) => {
    const pointer = '/engine_config/pipeline/eye/rtp_observer/force_offset'
    expect(refusal(config({ force_offset }))).toEqual({ pointer, message: `${force_offset} ${why}` })
  })

  test('RTCP is no RTP, beside its stream or alone', () => {
    const bench = drive(config())
    const rtcp = [200, 201, 202, 203, 204].map((type) => {
      const made = rtp({ sequence: 6 })
      made[1] = type
      return made
    })
    bench.send('in', [rtp({ sequence: 5 }), ...rtcp, rtp({ sequence: 6 })])
    expect(eye(bench)).toMatchObject({ rtp_packets: 2, other_packets: 5, streams: 1 })
    bench.stop()
  })
})

describe('loss and order', () => {
  test('what is missing, late and double', () => {
    const bench = drive(config())
    const sequences = [...range(100, 110), 112, 111, 113, 113, 117, 105]
    bench.send(
      'in',
      sequences.map((sequence) => rtp({ sequence })),
    )
    // 110, 114, 115 and 116 are missing.
    expect(stream(bench)).toMatchObject({
      ssrc: SSRC,
      packets: 14,
      lost_packets: 4,
      loss: 4 / 18,
      reordered_packets: 1,
      duplicate_packets: 2,
    })
    bench.stop()
  })

  test('what comes from before the first is late, and was never missing', () => {
    const bench = drive(config())
    bench.send(
      'in',
      [100, 101, 99, 97, 97, 103].map((sequence) => rtp({ sequence })),
    )
    const figures = { packets: 5, lost_packets: 1, reordered_packets: 2, duplicate_packets: 1 }
    expect(stream(bench)).toMatchObject(figures)
    bench.stop()
  })

  test('sequences go on from 65,535 to 0, and late ones come across that too', () => {
    const bench = drive(config())
    for (let i = 65_000; i < 200_000; i++) {
      if (i % 100 !== 7) bench.send('in', rtp({ sequence: i % 65_536, bytes: 12 }))
      if (i === 65_537) bench.send('in', rtp({ sequence: 65_507 % 65_536, bytes: 12 }))
    }
    expect(stream(bench)).toMatchObject({ packets: 135_000 - 1349, lost_packets: 1349, reordered_packets: 1 })
    bench.stop()
  })

  test('a jump counts when the next packet confirms it, and no loss with it (RFC 3550, A.1)', () => {
    const bench = drive(config())
    const send = (...sequences: number[]) =>
      bench.send(
        'in',
        sequences.map((sequence) => rtp({ sequence })),
      )
    send(1, 2, 3, 30_000, 4)
    expect(stream(bench)).toMatchObject({ packets: 4, lost_packets: 0 })
    send(40_000, 40_001, 40_003)
    expect(stream(bench)).toMatchObject({ packets: 7, lost_packets: 1 })
    send(43_002)
    expect(stream(bench)).toMatchObject({ packets: 8, lost_packets: 1 + 2998 })
    send(42_990, 42_902, 42_903, 42_903)
    expect(stream(bench)).toMatchObject({ packets: 10, reordered_packets: 2, duplicate_packets: 1 })
    bench.stop()
  })
})

describe('jitter', () => {
  /** RFC 3550, A.8, in timestamp units with floating point. */
  function jitterOf(packets: readonly { at: number; timestamp: number }[], rate: number): number {
    let jitter = 0
    for (let i = 1; i < packets.length; i++) {
      const [now, before] = [packets[i], packets[i - 1]] as [{ at: number; timestamp: number }, (typeof packets)[0]]
      const difference = ((now.at - before.at) / 1e9) * rate - (now.timestamp - before.timestamp)
      jitter += (Math.abs(difference) - jitter) / 16
    }
    return (jitter / rate) * 1e9
  }

  test.each([
    [0, 8000],
    [14, 90_000],
    [11, 44_100],
    [33, 90_000],
  ])('of payload type %d, whose clock is %d Hz, timestamps wrapping', (type, rate) => {
    const bench = drive(config())
    const random = new Random(3)
    const sent: { at: number; timestamp: number }[] = []
    const first = 2 ** 32 - rate
    for (let i = 0; i < 500; i++) {
      const ticks = Math.round((i * rate) / 50)
      bench.send('in', rtp({ sequence: i, type, timestamp: (first + ticks) % 2 ** 32 }))
      sent.push({ at: bench.now, timestamp: ticks })
      bench.advance(12 * MS + random.below(16 * MS))
    }
    const { jitter, clock_rate, payload_type } = stream(bench)
    expect(jitter).toBeCloseTo(jitterOf(sent, rate), 0)
    expect(jitter).toBeGreaterThan(2 * MS)
    expect([clock_rate, payload_type]).toEqual([rate, type])
    bench.stop()
  })

  test('packets of one frame, sent in one go, have none between them', () => {
    const bench = drive(config())
    for (let i = 0; i < 300; i++) {
      bench.send(
        'in',
        [0, 1, 2].map((part) => rtp({ sequence: i * 3 + part, type: 32, timestamp: i * 3000 })),
      )
      bench.advance(1e9 / 30)
    }
    expect(stream(bench).jitter).toBeLessThan(1)
    bench.stop()
  })

  test.each([8000, 12_000, 16_000, 24_000, 32_000, 44_100, 48_000, 90_000])(
    'a dynamic type is found to have %d Hz after 2 s, through jitter, and shows none before',
    (rate) => {
      const bench = drive(config())
      const random = new Random(rate)
      let before = 0
      for (let i = 0; bench.now < 4e9; i++) {
        bench.send('in', rtp({ sequence: i, type: 101, timestamp: 4_294_960_000 + Math.round((i * rate) / 50) }))
        if (bench.now < 2e9) {
          expect(stream(bench)).toMatchObject({ clock_rate: 0, jitter: 0 })
          before++
        }
        bench.advance(i * 20 * MS + 10 * MS + random.below(20 * MS) - bench.now)
      }
      expect(before).toBeGreaterThan(90)
      expect(stream(bench).clock_rate).toBe(rate)
      expect(stream(bench).jitter).toBeGreaterThan(2 * MS)
      expect(stream(bench).jitter).toBeLessThan(15 * MS)
      bench.stop()
    },
  )

  test.each([44_100, 48_000])('%d Hz is told from its neighbour behind a path whose delay is 80 ± 70 ms', (rate) => {
    for (let seed = 1; seed <= 20; seed++) {
      const path = { delay_constant: { flows: [{ input: 'sent', output: 'in' }], delay: 80, jitter: 70, seed } }
      const bench = drive({ path, ...config() }, { record: false })
      for (let i = 0; i < 120; i++) {
        bench.send('sent', rtp({ sequence: i, type: 97, timestamp: Math.round((i * rate) / 50) }))
        bench.advance(20 * MS)
      }
      expect(stream(bench).clock_rate, `seed ${seed}`).toBe(rate)
      bench.stop()
    }
  })

  test('timestamps that stand still or go back give no rate, until they go on', () => {
    const bench = drive(config())
    let sequence = 0
    const send = (timestamp: number) => {
      bench.send('in', rtp({ sequence: sequence++, type: 97, timestamp }))
      bench.advance(20 * MS)
    }
    for (let i = 0; i < 101; i++) send(5000)
    expect(stream(bench).clock_rate).toBe(0)
    for (let i = 0; i < 110; i++) send(5000 + i * 960)
    expect(stream(bench).clock_rate).toBe(48_000)
    bench.stop()
  })

  test('a dynamic type within a stream of a known rate has that rate (RFC 4733)', () => {
    const bench = drive(config())
    range(0, 300).forEach((i) => {
      bench.send('in', rtp({ sequence: i, type: i % 20 === 5 ? 101 : 0, timestamp: i * 160 }))
      bench.advance(20 * MS)
      if (i > 0) expect(stream(bench)).toMatchObject({ clock_rate: 8000, jitter: 0 })
    })
    bench.stop()
  })
})

describe('streams', () => {
  const pair = (ssrc: number, sequence = 0) => [sequence, sequence + 1].map((s) => rtp({ sequence: s, ssrc }))

  test('are two packets in sequence, not one and not two that are not', () => {
    const bench = drive(config())
    bench.send('in', [rtp({ sequence: 7 }), rtp({ sequence: 9 }), rtp({ sequence: 9 })])
    expect(eye(bench)).toMatchObject({ streams: 0, rtp_packets: 3, unfollowed_packets: 3, stream_0_packets: 0 })
    bench.send('in', [rtp({ sequence: 10 }), rtp({ sequence: 11 })])
    expect(eye(bench)).toMatchObject({ streams: 1, unfollowed_packets: 3, stream_0_packets: 3, stream_0_ssrc: SSRC })
    bench.stop()
  })

  test('of 65 the one silent longest gives its place to the newcomer, whose figures begin anew', () => {
    const bench = drive(config())
    for (const ssrc of range(1, 65)) {
      bench.send('in', pair(ssrc, 65_535))
      bench.send('in', [rtp({ sequence: 5, ssrc }), rtp({ sequence: 5, ssrc })])
      bench.advance(MS)
    }
    for (const ssrc of range(1, 65)) if (ssrc !== 40) bench.send('in', rtp({ sequence: 6, ssrc }))
    bench.advance(1000 * MS)
    expect(stream(bench, 39)).toMatchObject({ ssrc: 40, packets: 3, lost_packets: 4, duplicate_packets: 1 })
    for (const sequence of range(0, 8)) bench.send('in', rtp({ sequence, ssrc: 99 }))
    expect(stream(bench, 39).ssrc).toBe(40)
    bench.send('in', rtp({ sequence: 8, ssrc: 99 }))
    expect(stream(bench, 39)).toMatchObject({
      ssrc: 99,
      packets: 2,
      lost_packets: 0,
      loss: 0,
      duplicate_packets: 0,
      bits_per_second: 0,
    })
    expect(eye(bench).streams).toBe(64)
    expect(range(0, 64).map((place) => stream(bench, place).ssrc)).toEqual(
      range(1, 65).map((ssrc) => (ssrc === 40 ? 99 : ssrc)),
    )
    bench.stop()
  })

  test('one of too many does not cost those their places that are heard', () => {
    const bench = drive(config())
    const round = (sequence: number) => {
      bench.send(
        'in',
        range(1, 66).map((ssrc) => rtp({ sequence, ssrc })),
      )
      bench.advance(20 * MS)
    }
    const places = () => range(0, 64).map((place) => stream(bench, place).ssrc)
    round(0)
    round(1)
    const first = places()
    expect(new Set(first).size).toBe(64)
    for (const sequence of range(2, 50)) round(sequence)
    expect(places()).toEqual(first)
    expect(range(0, 64).every((place) => stream(bench, place).packets === 50)).toBe(true)
    expect(eye(bench).unfollowed_packets).toBe(64 + 50)
    bench.stop()
  })

  test('bit rate of the last whole second, 0 when silent', () => {
    const bench = drive(config())
    for (const sequence of range(0, 50)) {
      bench.send('in', inV4(rtp({ sequence, bytes: 172 })))
      bench.advance(20 * MS)
    }
    expect(stream(bench).bits_per_second).toBe(50 * 172 * 8)
    bench.advance(1000 * MS)
    expect(stream(bench).bits_per_second).toBe(0)
    bench.stop()
  })
})
