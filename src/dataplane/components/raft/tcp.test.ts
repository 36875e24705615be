/** TCP through raft over two paths on the virtual clock: those of examples/bonding, 20 Mbit/s with 5 % loss and 15 ms, 10 Mbit/s and 40 ms. */
import { expect, test } from 'vitest'
import { Bonded, type Path } from '../../../../test/harness/bonded.ts'
import { payload } from '../../../../test/harness/component.ts'
import { TcpFlow } from '../../../../test/harness/tcp-flow.ts'

const MS = 1e6
const SEGMENT = 1436
/** Bytes of TCP's payload in a segment. */
const PAYLOAD = SEGMENT - 52
/** As examples/bonding counts. */
const START_SECONDS = 2
const SECONDS = 22

const TRANSIT = { transit_stream: { bonding_delay: 200 } }
const carrier = { auto_bandwidth_estimation: true }
const PATHS: Path[] = [
  { delay: 15, loss: 0.05, rate: 20, queue: 83, carrier },
  { delay: 40, rate: 10, queue: 41, carrier },
]

test.each([0, 537, 1500])(
  'begun after %i ms it fills both paths, whose loss it does not see',
  (idle) => {
    const bonded = new Bonded([TRANSIT], PATHS)
    const { bench } = bonded
    bench.advance(idle * MS)
    const begin = bench.now
    const flow = new TcpFlow(SEGMENT)
    const taken = (name: string) => bench.take(name).map(({ bytes }) => bytes)
    let atStart = 0
    while (bench.now < begin + SECONDS * 1e9) {
      bench.send('b in 0', flow.receive(taken('b out 0'), bench.now))
      bench.send('a in 0', flow.send(taken('a out 0'), bench.now))
      bench.advance(MS)
      if (bench.now <= begin + START_SECONDS * 1e9) atStart = flow.received
    }
    const goodput = ((flow.received - atStart) * PAYLOAD * 8) / (SECONDS - START_SECONDS) / 1e6
    // The paths deliver 29 Mbit/s after their loss, headers included.
    expect(goodput).toBeGreaterThan(0.88 * 29)
    expect(flow.cuts.filter((at) => at > begin + START_SECONDS * 1e9).length).toBeLessThanOrEqual(4)
    // One that comes too late halves the rate for ten seconds.
    expect(bonded.metrics('b').streams_0_lost_pieces).toBe(0)
    const { carriers_0_times_left, carriers_1_times_left, carriers_0_estimate, carriers_1_estimate } =
      bonded.metrics('a')
    expect([carriers_0_times_left, carriers_1_times_left]).toEqual([0, 0])
    expect(carriers_0_estimate / 20e6).toBeGreaterThan(0.9)
    expect(carriers_0_estimate / 20e6).toBeLessThan(1.05)
    expect(carriers_1_estimate / 10e6).toBeGreaterThan(0.9)
    expect(carriers_1_estimate / 10e6).toBeLessThan(1.05)
    bench.stop()
  },
  120_000,
)

test('beside it a realtime stream loses nothing while the faster path goes for 5 s, which is left once; neither is without delivery for 200 ms', () => {
  const bonded = new Bonded([TRANSIT, { realtime_stream: { timeout: 250 } }], PATHS)
  const { bench } = bonded
  const flow = new TcpFlow(SEGMENT)
  const taken = (name: string) => bench.take(name).map(({ bytes }) => bytes)
  const came: number[] = []
  let sent = 0
  let received = 0
  let receivedAt = 0
  let longest = 0
  for (let ms = 0; ms < 14_000; ms++) {
    if (ms === 5000) bonded.cut(0)
    if (ms === 5150) expect(bonded.metrics('a').carriers_0_used).toBe(0)
    if (ms === 10_000) bonded.cut(0, false)
    bench.send('b in 0', flow.receive(taken('b out 0'), bench.now))
    if (flow.received !== received) {
      if (ms > 1000) longest = Math.max(longest, ms - receivedAt)
      received = flow.received
      receivedAt = ms
    }
    bench.send('a in 0', flow.send(taken('a out 0'), bench.now))
    // 2 Mbit/s.
    if (ms % 4 === 0 && ms < 13_000) bench.send('a in 1', payload(1000, sent++))
    bench.advance(MS)
    came.push(...bench.take('b out 1').map(({ time }) => time))
  }
  expect(came).toHaveLength(sent)
  expect(Math.max(...came.slice(1).map((time, i) => time - (came[i] as number)))).toBeLessThan(200 * MS)
  expect(longest).toBeLessThan(200)
  const { carriers_0_times_left, carriers_1_times_left, carriers_0_used } = bonded.metrics('a')
  expect([carriers_0_times_left, carriers_1_times_left, carriers_0_used]).toEqual([1, 0, 1])
  bench.stop()
}, 120_000)
