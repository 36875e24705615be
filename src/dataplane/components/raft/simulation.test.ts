/** raft over emulated paths on the virtual clock: what comes out, when, and how much of the paths is used. */
import { describe, expect, test } from 'vitest'
import { Bonded, type Path } from '../../../../test/harness/bonded.ts'
import { drive, payload } from '../../../../test/harness/component.ts'

const MS = 1e6
const TWO_PATHS: Path[] = [
  { delay: 15, loss: 0.05, rate: 20 },
  { delay: 40, rate: 10 },
]
const measured = (paths: readonly Path[]): Path[] =>
  paths.map((path) => ({ ...path, carrier: { auto_bandwidth_estimation: true } }))

/** A packet of `bytes` bytes that begins with its number. */
function numbered(bytes: number, number: number): Uint8Array {
  const packet = payload(bytes, number)
  new DataView(packet.buffer).setUint32(0, number)
  return packet
}

/** Sends `count` packets, one each `interval` ns; `each` is told before the n-th. */
function flow(
  bonded: Bonded,
  count: number,
  interval: number,
  bytes: number,
  each: (n: number) => void = () => {},
): void {
  for (let n = 0; n < count; n++) {
    each(n)
    bonded.bench.send('a in 0', numbered(bytes, n))
    bonded.bench.advance(interval)
  }
  bonded.bench.advance(2000 * MS)
}

const numbersOf = (received: readonly { bytes: Uint8Array }[]): number[] =>
  received.map(({ bytes }) => new DataView(bytes.buffer).getUint32(0))

describe('bandwidth', () => {
  test('measures what two paths carry and fills them', () => {
    const bonded = new Bonded([{ transit_stream: { bonding_delay: 150 } }], measured(TWO_PATHS))
    // 44 Mbit/s into paths that deliver 29.
    const seconds = 10
    flow(bonded, seconds * 4000, 0.25 * MS, 1376)
    const { bench } = bonded
    const received = bench.take('b out 0')
    const half = received
      .filter(({ time }) => time > 5e9 && time < 10e9)
      .reduce((sum, { bytes }) => sum + bytes.length, 0)
    expect((half * 8) / 5e6).toBeGreaterThan(0.9 * 29 * (1376 / 1412))
    bench.stop()
  })

  test('measures a path soon whose reports come by a shorter one', () => {
    const bonded = new Bonded(
      [{ transit_stream: { bonding_delay: 150 } }],
      measured([
        { delay: 15, rate: 20 },
        { delay: 60, rate: 10 },
      ]),
    )
    flow(bonded, 8000, 0.25 * MS, 1376)
    const { carriers_0_estimate, carriers_1_estimate, carriers_1_lost_packets } = bonded.metrics('a')
    expect(carriers_0_estimate / 20e6).toBeGreaterThan(0.9)
    expect(carriers_1_estimate / 10e6).toBeGreaterThan(0.9)
    // Nor is more in flight meanwhile than its queue takes.
    expect(carriers_1_lost_packets).toBe(0)
    bonded.bench.stop()
  })

  test('a queue that has become too long is drained before it takes more: what comes after a hole waits no longer for it', () => {
    // 12 Mbit/s into a path that takes 8.
    const bonded = new Bonded(
      [{ transit_stream: { bonding_delay: 50 } }],
      [{ delay: 20, carrier: { max_bandwidth_mbps: 8 } }],
    )
    flow(bonded, 3000, MS, 1500)
    const received = bonded.bench.take('b out 0')
    const numbers = numbersOf(received)
    const holes = numbers.flatMap((n, i) => (i > 0 && n > numbers[i - 1] + 1 ? [i] : []))
    // One hole for each time that it was too long.
    expect(holes.length).toBeGreaterThan(3)
    expect(holes.length).toBeLessThan(20)
    for (const i of holes) expect(received[i].time - numbers[i] * MS).toBeLessThan((20 + 35) * MS)
    bonded.bench.stop()
  })
})

/** The longest time between two packets, ns. */
function longestGap(received: readonly { time: number }[]): number {
  let gap = 0
  for (let i = 1; i < received.length; i++) gap = Math.max(gap, received[i].time - received[i - 1].time)
  return gap
}

const REALTIME = { realtime_stream: { timeout: 200 } }
const inOrder = (numbers: readonly number[]) => numbers.every((number, i) => i === 0 || number > numbers[i - 1])

describe('a realtime stream', () => {
  test('loses nothing and never waits 200 ms while one of two paths dies for 5 s and comes back', () => {
    const bonded = new Bonded([REALTIME], TWO_PATHS)
    flow(bonded, 12_000, MS, 1000, (n) => {
      if (n === 3000) bonded.cut(0)
      if (n === 3200) expect(bonded.metrics('a').carriers_0_used).toBe(0)
      if (n === 8000) bonded.cut(0, false)
      if (n === 8600) expect(bonded.metrics('a').carriers_0_used).toBe(1)
    })
    const received = bonded.bench.take('b out 0')
    expect(numbersOf(received)).toEqual(Array.from({ length: 12_000 }, (_, n) => n))
    expect(longestGap(received)).toBeLessThan(200 * MS)
    const { streams_0_repaired_pieces: repaired, streams_0_resent_pieces: resent } = bonded.metrics('b')
    expect(repaired).toBeGreaterThan(0)
    expect(resent).toBeGreaterThan(0)
    expect(bonded.bench.log.map(({ message }) => message)).toContain('carrier 7 is used again')
    bonded.bench.stop()
  })

  test('over two paths that lose one in twenty waits for repairs hardly ever longer than a round trip', () => {
    const path = { delay: 25, loss: 0.05 }
    const bonded = new Bonded([{ realtime_stream: { timeout: 100 } }], [path, path])
    flow(bonded, 30_000, MS, 500)
    const received = bonded.bench.take('b out 0')
    expect(received).toHaveLength(30_000)
    const delays = received.map(({ time }, n) => time - n * MS).sort((one, other) => one - other)
    expect(delays[0.5 * 30_000]).toBeLessThan(26 * MS)
    expect(delays[0.99 * 30_000]).toBeLessThan(55 * MS)
    bonded.bench.stop()
  })

  test('is repaired by repair packets alone where there is no time to send again', () => {
    const bonded = new Bonded([{ realtime_stream: { timeout: 40 } }], [{ delay: 40, loss: 0.03 }])
    flow(bonded, 20_000, 0.5 * MS, 400)
    const { streams_0_repaired_pieces: repaired, streams_0_delivered_packets: delivered } = bonded.metrics('b')
    expect(repaired).toBeGreaterThan(200)
    // The first second is without repairs: nothing was lost yet.
    expect(delivered).toBeGreaterThan(20_000 * 0.997)
    expect(bonded.metrics('a').streams_0_repair_rate).toBeGreaterThan(0.03)
    bonded.bench.stop()
  })

  test('with ON_TIMEOUT every packet leaves when its time is over, in order', () => {
    const stream = { realtime_stream: { timeout: 80, delivery_policy: 'ON_TIMEOUT' } }
    const bonded = new Bonded([stream], [{ delay: 20, jitter: 15, loss: 0.02 }])
    flow(bonded, 2000, 5 * MS, 200)
    const received = bonded.bench.take('b out 0')
    expect(inOrder(numbersOf(received))).toBe(true)
    // Least one-way delay is 5 ms: what is sent every 5 ms comes out 85 ms later, give or take the microseconds of the wire.
    for (const { bytes, time } of received.slice(200)) {
      const sent = new DataView(bytes.buffer).getUint32(0) * 5 * MS
      expect(Math.abs(time - sent - 85 * MS)).toBeLessThan(MS)
    }
    expect(received.length).toBeGreaterThan(1990)
    bonded.bench.stop()
  })

  test('is repaired by what was sent again too, which repairs cover', () => {
    const path = { delay: 25, loss: 0.2 }
    const bonded = new Bonded([{ realtime_stream: { timeout: 150 } }], [path, path])
    flow(bonded, 20_000, MS, 500)
    expect(bonded.bench.take('b out 0')).toHaveLength(20_000)
    bonded.bench.stop()
  })

  test('of more pieces than are held hands the oldest over before their time, and loses none', () => {
    const stream = { realtime_stream: { timeout: 1000, delivery_policy: 'ON_TIMEOUT' } }
    const bonded = new Bonded([stream], [{ delay: 10 }])
    flow(bonded, 20_000, 0.1 * MS, 100)
    const received = bonded.bench.take('b out 0')
    expect(numbersOf(received)).toEqual(Array.from({ length: 20_000 }, (_, n) => n))
    expect(bonded.metrics('b')).toMatchObject({ reset_packets: 0, out_of_window_packets: 0, streams_0_lost_pieces: 0 })
    // 8,192 of them are held, one each 0.1 ms, until they come to an end.
    for (const { bytes, time } of received.slice(0, 10_000)) {
      const sent = new DataView(bytes.buffer).getUint32(0) * 0.1 * MS
      expect(Math.abs(time - sent - 829 * MS)).toBeLessThan(3 * MS)
    }
    bonded.bench.stop()
  })

  test('with more behind a missing piece than is held gives up that one alone', () => {
    const stream = { realtime_stream: { timeout: 1000, extension: { fixed_replication: {} } } }
    const bonded = new Bonded([stream], [{ delay: 10 }])
    flow(bonded, 20_000, 0.1 * MS, 100, (n) => {
      if (n === 5000) bonded.cut(0)
      if (n === 5002) bonded.cut(0, false)
    })
    const lost = bonded.metrics('b').streams_0_lost_pieces as number
    expect(lost).toBeGreaterThan(0)
    expect(lost).toBeLessThan(4)
    expect(bonded.bench.take('b out 0')).toHaveLength(20_000 - lost)
    expect(bonded.metrics('b').reset_packets).toBe(0)
    bonded.bench.stop()
  })

  test('with fixed replication goes out on every carrier, without repairs, and is delivered once', () => {
    const stream = { realtime_stream: { timeout: 100, extension: { fixed_replication: {} } } }
    const bonded = new Bonded([stream], [{ loss: 0.1 }, { loss: 0.1, delay: 30 }])
    flow(bonded, 5000, MS, 300)
    const numbers = numbersOf(bonded.bench.take('b out 0'))
    expect(new Set(numbers).size).toBe(numbers.length)
    expect(inOrder(numbers)).toBe(true)
    // Lost on both: 1 %.
    expect(numbers.length).toBeGreaterThan(5000 * 0.985)
    expect(numbers.length).toBeLessThan(5000)
    const { streams_0_repeated_pieces, streams_0_repair_packets, carriers_0_sent_packets } = bonded.metrics('a')
    expect([streams_0_repeated_pieces, streams_0_repair_packets]).toEqual([0, 0])
    expect(carriers_0_sent_packets).toBeGreaterThan(5000)
    bonded.bench.stop()
  })

  test('drops what is past its timeout before it is sent', () => {
    const bonded = new Bonded([{ realtime_stream: { timeout: 50 } }], [{ carrier: { max_bandwidth_mbps: 1 } }])
    flow(bonded, 2000, MS, 1000)
    expect(bonded.metrics('a').queue_dropped_packets).toBeGreaterThan(1500)
    for (const { time, bytes } of bonded.bench.take('b out 0')) {
      expect(time - new DataView(bytes.buffer).getUint32(0) * MS).toBeLessThan(90 * MS)
    }
    bonded.bench.stop()
  })

  test.each(['ON_TIMEOUT', 'ON_ORDERED'])(
    'with %s counts as lost what comes when its time is over, before its turn',
    (delivery_policy) => {
      const bonded = new Bonded([{ realtime_stream: { timeout: 20, delivery_policy } }], [{ delay: 5 }])
      flow(bonded, 50, 10 * MS, 100)
      bonded.delay('ab0', 40)
      flow(bonded, 100, 10 * MS, 500)
      expect(bonded.bench.take('b out 0')).toHaveLength(50)
      expect(bonded.metrics('b')).toMatchObject({ streams_0_received_pieces: 50, streams_0_lost_pieces: 100 })
      bonded.bench.stop()
    },
  )
})

describe('a transit stream', () => {
  test('is in order again over two paths of different length', () => {
    const bonded = new Bonded([{ transit_stream: { bonding_delay: 100 } }], [{ delay: 5 }, { delay: 45 }])
    flow(bonded, 4000, MS, 500)
    expect(numbersOf(bonded.bench.take('b out 0'))).toEqual(Array.from({ length: 4000 }, (_, n) => n))
    bonded.bench.stop()
  })

  test('holds nothing longer than its bonding delay, and hands over what comes after that out of order', () => {
    const bonded = new Bonded([{ transit_stream: { bonding_delay: 10 } }], [{ delay: 5 }, { delay: 60 }])
    flow(bonded, 2000, MS, 500)
    const received = bonded.bench.take('b out 0')
    const numbers = numbersOf(received)
    expect(new Set(numbers).size).toBe(2000)
    expect(inOrder(numbers)).toBe(false)
    expect(bonded.metrics('b').streams_0_late_pieces).toBeGreaterThan(500)
    bonded.bench.stop()
  })

  test.each([0, 20])(
    'with ON_TIMEOUT and a bonding delay of %i hands over what comes when its time is over, in order',
    (bonding_delay) => {
      const bonded = new Bonded([{ transit_stream: { bonding_delay, delivery_policy: 'ON_TIMEOUT' } }], [{ delay: 5 }])
      flow(bonded, 50, 10 * MS, 100)
      bonded.delay('ab0', 40)
      flow(bonded, 100, 10 * MS, 500)
      const received = bonded.bench.take('b out 0')
      expect(numbersOf(received)).toEqual([...Array(50).keys(), ...Array(100).keys()])
      expect(bonded.metrics('b')).toMatchObject({ late_packets: 0, streams_0_late_pieces: 100 })
      bonded.bench.stop()
    },
  )

  test('waits for next to nothing in vain where a path loses what goes again as well: what was lost twice goes on all', () => {
    const bonded = new Bonded([{ transit_stream: { bonding_delay: 150 } }], [{ loss: 0.3 }, { delay: 40 }])
    flow(bonded, 10_000, MS, 500)
    expect(new Set(numbersOf(bonded.bench.take('b out 0'))).size).toBe(10_000)
    // On the first path alone twenty and more come too late for their turn.
    expect(bonded.metrics('b').streams_0_lost_pieces).toBeLessThan(5)
    bonded.bench.stop()
  })

  describe('over a path that loses one in twenty', () => {
    const lossy = { delay: 25, loss: 0.05, rate: 20 }
    /** Sends this many packets a second for 10 s; gives the share of repairs, and the delay that one packet in a hundred exceeds, ms. */
    const sent = (rate: number, carrier: Record<string, unknown>): [number, number] => {
      const bonded = new Bonded([{ transit_stream: { bonding_delay: 200 } }], [{ ...lossy, carrier }])
      flow(bonded, rate * 10, 1e9 / rate, 1376)
      const { streams_0_repair_packets, streams_0_sent_pieces } = bonded.metrics('a')
      const delays = bonded.bench
        .take('b out 0')
        .map(({ time, bytes }) => time - new DataView(bytes.buffer).getUint32(0) * (1e9 / rate))
        .sort((one, other) => one - other)
      bonded.bench.stop()
      return [
        streams_0_repair_packets / streams_0_sent_pieces,
        (delays[Math.floor(0.99 * delays.length)] as number) / MS,
      ]
    }

    test('waits for repairs, not for what goes again, while there is room to spare', () => {
      const [share, delay] = sent(500, { auto_bandwidth_estimation: true })
      expect(share).toBeGreaterThan(0.05)
      expect(delay).toBeLessThan(75)
    })

    test('has next to no repairs while there is none, or nobody knows', () => {
      const [full] = sent(2200, { auto_bandwidth_estimation: true })
      expect(full).toBeLessThan(0.01)
      expect(sent(500, {})[0]).toBe(0)
    })
  })

  test('long packets go in pieces and come whole', () => {
    const bonded = new Bonded([{ transit_stream: { bonding_delay: 150 } }], [{ loss: 0.03 }, { delay: 30 }], {
      mtu: 9000,
    })
    flow(bonded, 500, 5 * MS, 8000)
    const received = bonded.bench.take('b out 0')
    expect(received.map(({ bytes }) => Buffer.from(bytes).toString('latin1'))).toEqual(
      Array.from({ length: 500 }, (_, n) => Buffer.from(numbered(8000, n)).toString('latin1')),
    )
    expect(bonded.metrics('b').streams_0_received_pieces).toBe(500 * 6)
    bonded.bench.stop()
  })
})

describe('load', () => {
  const shares = (bonded: Bonded): [number, number] => {
    const { carriers_0_sent_bytes, carriers_1_sent_bytes } = bonded.metrics('a')
    return [carriers_0_sent_bytes, carriers_1_sent_bytes]
  }

  test('goes to the higher priority, and what has no room there to the next', () => {
    const paths = [
      { carrier: { max_bandwidth_mbps: 10 } },
      { carrier: { bandwidth_priority: 5, max_bandwidth_mbps: 4 } },
    ]
    const little = new Bonded([REALTIME], paths)
    flow(little, 1000, 4 * MS, 1000)
    const [low, high] = shares(little)
    expect(low).toBeLessThan(high / 20)
    little.bench.stop()
    const much = new Bonded([REALTIME], paths)
    // 8 Mbit/s and headers: 4 go on the one, the rest on the other.
    flow(much, 4000, MS, 1000)
    const [spilt, full] = shares(much)
    expect(spilt / full).toBeGreaterThan(0.9)
    expect(spilt / full).toBeLessThan(1.3)
    expect(much.metrics('b').streams_0_delivered_packets).toBe(4000)
    much.bench.stop()
  })

  test('is shared by equal priorities in proportion to their room, live', () => {
    const paths = [{ carrier: { max_bandwidth_mbps: 20 } }, { carrier: { max_bandwidth_mbps: 10 } }]
    const bonded = new Bonded([REALTIME], paths)
    flow(bonded, 4000, MS, 1000)
    const [first, second] = shares(bonded)
    expect(first / second).toBeGreaterThan(1.7)
    expect(first / second).toBeLessThan(2.3)
    bonded.bench.stop()
  })
})

describe('bad paths and ends', () => {
  test('what the network duplicates and reorders is delivered once and in order', () => {
    const bonded = new Bonded(
      [REALTIME],
      [
        { delay: 30, jitter: 25, loss: 0.02 },
        { delay: 10, jitter: 8 },
      ],
    )
    flow(bonded, 5000, MS, 300)
    const numbers = numbersOf(bonded.bench.take('b out 0'))
    expect(new Set(numbers).size).toBe(numbers.length)
    expect(inOrder(numbers)).toBe(true)
    expect(numbers.length).toBe(5000)
    bonded.bench.stop()
  })
})

test('repairs of more pieces than a batch, that go on one carrier at once, give back what was sent', () => {
  const end = (name: string, input: string, output: string) => ({
    raft: {
      streams: [{ input: `${name} in`, output: `${name} out`, stream_handle: 1, realtime_stream: { timeout: 15 } }],
      carriers: [{ input, output, carrier_handle: 1 }],
    },
  })
  const cipher = { aes_128_gcm_sha_256: { key: '000102030405060708090a0b0c0d0e0f' } }
  const bench = drive({
    a: end('a', 'back', 'go'),
    b: end('b', 'come', 'return'),
    // Changes the packets where they lie, at once.
    encrypt: { ssl_encrypt: { input: 'go', output: 'secret', ...cipher } },
    loss: { uniform_loss: { input: 'secret', output: 'lossy', loss_prob: 0.02, seed: 1 } },
    delay: { delay_constant: { flows: [{ input: 'lossy', output: 'late' }], delay: 10 } },
    decrypt: { ssl_decrypt: { input: 'late', output: 'come', ...cipher } },
    back: { delay_constant: { flows: [{ input: 'return', output: 'back' }], delay: 10 } },
  })
  const sent = new Set<string>()
  for (let n = 0; n < 1500; n++) {
    const packets = Array.from({ length: n % 250 === 249 ? 700 : 1 }, (_, i) => numbered(300, n * 1000 + i))
    for (const bytes of packets) sent.add(Buffer.from(bytes).toString('latin1'))
    bench.send('a in', packets)
    bench.advance(MS)
  }
  const wrong = bench.take('b out').filter(({ bytes }) => !sent.has(Buffer.from(bytes).toString('latin1')))
  const { malformed_packets, streams_0_repaired_pieces: repaired } = bench.metrics().b as Record<string, number>
  expect({ wrong: wrong.length, malformed_packets }).toEqual({ wrong: 0, malformed_packets: 0 })
  expect(repaired).toBeGreaterThan(30)
  bench.stop()
})

test('what is recovered has the annotations of the packet that completed it', () => {
  const end = (name: string, input: string, output: string) => ({
    raft: {
      streams: [{ input: `${name} in`, output: `${name} out`, stream_handle: 1, realtime_stream: { timeout: 15 } }],
      carriers: [{ input, output, carrier_handle: 1 }],
    },
  })
  const remote_address = '192.0.2.1:7'
  const bench = drive({
    a: end('a', 'return', 'go'),
    b: end('b', 'come', 'return'),
    loss: { uniform_loss: { input: 'go', output: 'lossy', loss_prob: 0.05, seed: 1 } },
    delay: { delay_constant: { flows: [{ input: 'lossy', output: 'late' }], delay: 10 } },
    from: { peer_writer: { input: 'late', output: 'come', remote_address } },
  })
  for (let n = 0; n < 1000; n++) {
    bench.send('a in', numbered(100, n))
    bench.advance(MS)
  }
  expect(bench.metrics().b?.streams_0_repaired_pieces).toBeGreaterThan(10)
  const remotes = bench.take('b out').map(({ remote }) => remote)
  expect(new Set(remotes)).toEqual(new Set([remote_address]))
  bench.stop()
})
