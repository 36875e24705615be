/** What a running raft takes over: each field that is live, changed between two stretches of the same traffic. */
import { expect, test } from 'vitest'
import { Bonded, type Path } from '../../../../test/harness/bonded.ts'
import { drive, payload } from '../../../../test/harness/component.ts'

const MS = 1e6
const PACKETS = 1000

type Fields = Record<string, unknown>

/** What one stretch of traffic, a packet of 1,000 bytes each millisecond, did at end a and left at end b. */
interface Stretch {
  /** Time from in to out of each packet that came, ms, in the order in which they came out. */
  delays: number[]
  isInOrder: boolean
  /** Bytes that went on each carrier. */
  sent: [number, number]
  lost: number
  queueDropped: number
}

function stretch(bonded: Bonded): Stretch {
  const { bench } = bonded
  const before = bonded.metrics('a')
  const begin = bench.now
  for (let n = 0; n < PACKETS; n++) {
    const packet = payload(1000, n)
    new DataView(packet.buffer).setUint32(0, n)
    bench.send('a in 0', packet)
    bench.advance(MS)
  }
  bench.advance(1000 * MS)
  const out = bench.take('b out 0').map(({ bytes, time }) => ({ n: new DataView(bytes.buffer).getUint32(0), time }))
  const after = bonded.metrics('a')
  const since = (name: string) => (after[name] as number) - (before[name] as number)
  return {
    delays: out.map(({ n, time }) => (time - begin) / MS - n),
    isInOrder: out.every(({ n }, i) => i === 0 || n > (out[i - 1] as { n: number }).n),
    sent: [since('carriers_0_sent_bytes'), since('carriers_1_sent_bytes')],
    lost: since('carriers_0_lost_packets') + since('carriers_1_lost_packets'),
    queueDropped: since('queue_dropped_packets'),
  }
}

/** One stretch before the change, one after it. */
function around(paths: readonly Path[], stream: Fields, nextStream: Fields, nextCarriers?: Fields[]): Stretch[] {
  const bonded = new Bonded([stream], paths)
  const first = stretch(bonded)
  bonded.reconfigure([nextStream], nextCarriers ?? paths.map(({ carrier = {} }) => carrier))
  const second = stretch(bonded)
  bonded.bench.stop()
  return [first, second]
}

const realtime = (timeout: number, more: Fields = {}): Fields => ({ realtime_stream: { timeout, ...more } })
const EQUAL: Path[] = [{ delay: 10 }, { delay: 10 }]
const longest = ({ delays }: Stretch) => Math.max(...delays)
const shortest = ({ delays }: Stretch) => Math.min(...delays)
const onFirst = ({ sent: [first, second] }: Stretch) => first / (first + second)

test('timeout, and delivery_policy of a realtime stream', () => {
  const onTimeout = { delivery_policy: 'ON_TIMEOUT' }
  const [asTheyCome, held] = around(EQUAL, realtime(50), realtime(50, onTimeout))
  expect(longest(asTheyCome)).toBeLessThan(15)
  expect(shortest(held)).toBeGreaterThan(55)
  const [short, long] = around(EQUAL, realtime(50, onTimeout), realtime(80, onTimeout))
  expect(longest(short)).toBeLessThan(65)
  expect(shortest(long)).toBeGreaterThan(85)
})

test('fixed_replication', () => {
  const replicated = realtime(50, { extension: { fixed_replication: {} } })
  const [once, twice] = around(EQUAL, realtime(50), replicated)
  expect(once.sent[0] + once.sent[1]).toBeLessThan(1.1 * PACKETS * 1032)
  for (const bytes of twice.sent) expect(bytes).toBeGreaterThan(0.99 * PACKETS * 1032)
})

test('bonding_delay, and delivery_policy of a transit stream', () => {
  const paths = [{ delay: 5 }, { delay: 60 }]
  const [short, long] = around(
    paths,
    { transit_stream: { bonding_delay: 10 } },
    { transit_stream: { bonding_delay: 100 } },
  )
  expect([short.isInOrder, long.isInOrder]).toEqual([false, true])
  const [asTheyCome, held] = around(
    EQUAL,
    { transit_stream: { bonding_delay: 40 } },
    { transit_stream: { bonding_delay: 40, delivery_policy: 'ON_TIMEOUT' } },
  )
  expect(longest(asTheyCome)).toBeLessThan(15)
  expect(shortest(held)).toBeGreaterThan(45)
})

test('bandwidth_priority', () => {
  const [equal, preferred] = around(EQUAL, realtime(50), realtime(50), [{ bandwidth_priority: 1 }, {}])
  expect(onFirst(equal)).toBeCloseTo(0.5, 1)
  expect(onFirst(preferred)).toBeGreaterThan(0.98)
})

test('max_bandwidth_mbps', () => {
  const limits = (first: number, second: number) => [{ max_bandwidth_mbps: first }, { max_bandwidth_mbps: second }]
  const paths = limits(20, 20).map((carrier) => ({ delay: 10, carrier }))
  const [equal, other] = around(paths, realtime(50), realtime(50), limits(30, 10))
  expect(onFirst(equal)).toBeCloseTo(0.5, 1)
  expect(onFirst(other)).toBeGreaterThan(0.7)
})

test('auto_bandwidth_estimation', () => {
  // 8 Mbit/s and headers into paths of 5: without an estimate the paths lose it, with one what is too much never goes.
  const path = { delay: 10, rate: 2.5 }
  const estimated = { auto_bandwidth_estimation: true }
  const [blind, measured] = around([path, path], realtime(50), realtime(50), [estimated, estimated])
  expect(blind.queueDropped).toBe(0)
  expect(blind.lost).toBeGreaterThan(200)
  expect(measured.queueDropped).toBeGreaterThan(200)
  expect(measured.lost).toBeLessThan(blind.lost / 2)
})

test('an end of which no stream has an output sends', () => {
  const bench = drive({
    it: {
      raft: {
        streams: [{ input: 'in', stream_handle: 1, transit_stream: { bonding_delay: 100 } }],
        carriers: [{ input: 'come', output: 'go', carrier_handle: 1 }],
      },
    },
  })
  bench.send('in', payload(100, 1))
  expect(bench.take('go').some(({ bytes }) => bytes[0] === 0xd0)).toBe(true)
  bench.stop()
})

test('a carrier whose limit is taken away owes nothing any more: what waits for another one is not asked for without a pause', () => {
  const limits = [{ bandwidth_priority: 1, max_bandwidth_mbps: 1 }, { max_bandwidth_mbps: 1 }]
  const stream = { transit_stream: { bonding_delay: 100 } }
  const bonded = new Bonded(
    [stream],
    limits.map((carrier) => ({ loss: 0.2, carrier })),
  )
  const { bench } = bonded
  const load = (ms: number) => {
    for (let n = 0; n < ms; n++) {
      bench.send('a in 0', payload(1000, n))
      bench.advance(MS)
    }
  }
  load(100)
  bonded.reconfigure([stream], [limits[0], {}])
  const { breaths } = bench.simulation
  load(200)
  expect(bench.simulation.breaths - breaths).toBeLessThan(5000)
  bench.stop()
})
