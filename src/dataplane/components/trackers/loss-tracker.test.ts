/** loss_tracker_sender and loss_tracker_receiver: losses, duplicates and reordering that are known, to the packet. */
import { describe, expect, test } from 'vitest'
import { type Bench, drive, payload, refusal, tagOf } from '../../../../test/harness/component.ts'
import { Counter } from '../../engine/metrics.ts'
import { Random } from '../../engine/random.ts'
import { LossFlow } from './loss-flow.ts'

const SENDER = 0xfedcba98
const SECOND = 1e9
const receiver = (fields = {}) => ({ it: { loss_tracker_receiver: { input: 'in', output: 'out', ...fields } } })

/** What a sender with this id makes of packet `sequence`. */
function numbered(sequence: number, id = SENDER): Uint8Array {
  const bytes = new Uint8Array(12)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, id)
  view.setInt32(4, sequence)
  view.setInt32(8, sequence)
  return bytes
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)
const send = (bench: Bench, sequences: readonly number[], id = SENDER) =>
  bench.send(
    'in',
    sequences.map((sequence) => numbered(sequence, id)),
  )
const figures = (bench: Bench) => bench.metrics().it as Record<string, number>

test('the header: an id drawn at each start, and sequences from 0', () => {
  const headers = [1, 2].map((seed) => {
    const bench = drive({ it: { loss_tracker_sender: { input: 'in', output: 'out' } } }, { seed })
    bench.send('in', [payload(100, 7), payload(0), payload(1400)])
    const [first, second, third] = bench.take('out').map(({ bytes }) => Buffer.from(bytes))
    bench.stop()
    expect([first?.length, second?.length, third?.length]).toEqual([108, 8, 1408])
    expect([first, second, third].map((bytes) => bytes?.readUInt32BE(4))).toEqual([0, 1, 2])
    expect(second?.readUInt32BE(0)).toBe(first?.readUInt32BE(0))
    expect(first?.subarray(8)).toEqual(Buffer.from(payload(100, 7)))
    return first?.readUInt32BE(0)
  })
  expect(headers[0]).not.toBe(headers[1])
})

test('through an emulated loss: what it lost is lost here, exactly, and everything else comes out as it went in', () => {
  const bench = drive({
    sender: { loss_tracker_sender: { input: 'in', output: 'a' } },
    loss: { uniform_loss: { input: 'a', output: 'b', loss_prob: 0.07, seed: 5 } },
    it: { loss_tracker_receiver: { input: 'b', output: 'out' } },
  })
  for (let i = 0; i < 20_000; i++) {
    bench.send('in', payload(64, i))
    bench.advance(1e6)
  }
  bench.advance(3 * SECOND)
  const { it: measured, loss } = bench.metrics()
  const came = bench.received('out').map(({ bytes }) => tagOf(bytes))
  // Those before the first packet that came, and after the last, are not known of.
  const unknown = (came[0] as number) + 19_999 - (came.at(-1) as number)
  expect(measured?.lost_packets).toBe((loss?.emulated_loss as number) - unknown)
  expect(measured?.expected_packets).toBe(20_000 - unknown)
  expect(came).toHaveLength(20_000 - (loss?.emulated_loss as number))
  expect(measured).toMatchObject({ duplicate_packets: 0, reordered_packets: 0, late_packets: 0, followed_senders: 1 })
  bench.stop()
})

describe('figures of an interval', () => {
  test('loss over what was decided in it, losses in a row, duplicates and reordering', () => {
    const bench = drive(receiver({ sampling_interval_ms: 100 }))
    // 10 and 40 to 44 are missing; 50 comes after 51; 7 comes three times.
    const sequences = [...range(0, 10), 7, 7, ...range(11, 40), ...range(45, 50), 51, 50, ...range(52, 100)]
    send(bench, sequences)
    bench.advance(99.9e6)
    expect(figures(bench)).toMatchObject({ loss: 0, interval_duplicates: 0, expected_packets: 10, lost_packets: 0 })
    bench.advance(0.2e6)
    expect(figures(bench)).toMatchObject({ loss: 0, interval_duplicates: 2, interval_reordered: 1, longest_loss: 0 })
    bench.advance(100e6)
    expect(figures(bench)).toMatchObject({ loss: 0, interval_duplicates: 0, interval_reordered: 0, lost_packets: 0 })
    bench.advance(100e6)
    expect(figures(bench)).toMatchObject({ loss: 6 / 90, longest_loss: 5, expected_packets: 100, lost_packets: 6 })
    bench.advance(100e6)
    expect(figures(bench)).toMatchObject({ loss: 0, longest_loss: 0, lost_packets: 6, duplicate_packets: 2 })
    expect(bench.received('out').map(({ bytes }) => tagOf(bytes))).toEqual(sequences)
    bench.stop()
  })

  test('once 1,024 later ones have passed a missing packet counts at once', () => {
    const bench = drive(receiver())
    send(bench, [0, ...range(2, 1025)])
    expect(figures(bench)).toMatchObject({ lost_packets: 0, expected_packets: 1 })
    send(bench, [1025])
    expect(figures(bench)).toMatchObject({ lost_packets: 1, expected_packets: 1026 })
    bench.stop()
  })

  test('what comes after it was counted stays counted, and is late', () => {
    const bench = drive(receiver({ sampling_interval_ms: 10 }))
    send(bench, [0, 3])
    bench.advance(25e6)
    send(bench, [2])
    bench.advance(5.1e6)
    send(bench, [1, 1])
    expect(figures(bench)).toMatchObject({
      lost_packets: 1,
      expected_packets: 4,
      late_packets: 1,
      reordered_packets: 2,
      duplicate_packets: 1,
    })
    send(bench, [...range(4, 3000), 1])
    expect(figures(bench)).toMatchObject({ lost_packets: 1, late_packets: 2, duplicate_packets: 1 })
    bench.stop()
  })

  test('a changed interval ends when it would have', () => {
    const bench = drive(receiver({ sampling_interval_ms: 1000 }))
    send(bench, [0, 0])
    bench.advance(60e6)
    bench.reconfigure(receiver({ sampling_interval_ms: 100 }))
    bench.advance(39e6)
    expect(figures(bench).interval_duplicates).toBe(0)
    bench.advance(2e6)
    expect(figures(bench).interval_duplicates).toBe(1)
    bench.stop()
  })
})

describe('sequences', () => {
  test('go on from 2^32 - 1 to 0 (RFC 1982)', () => {
    const bench = drive(receiver())
    send(bench, [2 ** 32 - 3, 2 ** 32 - 1, 0, 2, 1])
    send(bench, range(3, 2000))
    expect(figures(bench)).toMatchObject({ lost_packets: 1, reordered_packets: 1, expected_packets: 2003 })
    bench.stop()
  })

  test('a gap as long as a second of outage counts whole; one that a single packet claims counts when another confirms it', () => {
    const bench = drive(receiver())
    send(bench, [0, 50_000])
    expect(figures(bench).lost_packets).toBe(50_000 - 1024)
    bench.advance(4 * SECOND)
    expect(figures(bench)).toMatchObject({ lost_packets: 49_999, expected_packets: 50_001 })
    send(bench, [2_000_000_000, 50_001, 50_002])
    expect(figures(bench)).toMatchObject({ lost_packets: 49_999, expected_packets: 50_003 })
    send(bench, [1_000_000, 1_000_001])
    bench.advance(4 * SECOND)
    expect(figures(bench)).toMatchObject({ lost_packets: 49_999 + 949_997, expected_packets: 1_000_002 })
    bench.stop()
  })

  test('that go on by more than 2^31 in one interval count once', () => {
    const bench = drive(receiver())
    const half = 1_200_000_000
    // Each leap is confirmed by the packet behind it.
    send(
      bench,
      [0, half, half + 1, 2 * half + 1, 2 * half + 2].map((sequence) => sequence | 0),
    )
    for (const _ of range(0, 3)) bench.advance(SECOND)
    const { expected_packets, lost_packets } = figures(bench)
    expect(expected_packets).toBe(2 * half + 3)
    expect(lost_packets).toBe(2 * half + 3 - 5)
    bench.stop()
  })

  test('the first one heard is where counting begins; one from before it is neither lost nor expected', () => {
    const bench = drive(receiver())
    send(bench, [500, 499, 501, 503])
    bench.advance(4 * SECOND)
    expect(figures(bench)).toMatchObject({ lost_packets: 1, expected_packets: 4, reordered_packets: 1 })
    bench.stop()
  })
})

describe('senders', () => {
  test('each has its own sequences, and one that starts again is another', () => {
    const bench = drive(receiver())
    for (let i = 0; i < 100; i++) {
      for (let id = 1; id <= 63; id++) if (i % 10 !== id % 10) send(bench, [i], id)
    }
    send(bench, range(0, 5), 1001)
    bench.advance(4 * SECOND)
    expect(figures(bench)).toMatchObject({ followed_senders: 64, unfollowed_packets: 0, duplicate_packets: 0 })
    // Of those that miss their first or their last the missing one is not known of.
    const ids = range(1, 64)
    const lost = ids.reduce((sum, id) => sum + 10 - (id % 10 === 0 || id % 10 === 9 ? 1 : 0), 0)
    expect(figures(bench).lost_packets).toBe(lost)
    bench.stop()
  })

  test('the 65th waits until it has sent 8 packets and one is silent, and is passed on meanwhile', () => {
    const bench = drive(receiver())
    for (let id = 1; id <= 64; id++) send(bench, [0], id)
    for (let id = 2; id <= 64; id++) send(bench, [1], id)
    send(bench, range(0, 7), 65)
    expect(figures(bench)).toMatchObject({ followed_senders: 64, unfollowed_packets: 7 })
    send(bench, [7, 9], 65)
    send(bench, [2], 2)
    bench.advance(4 * SECOND)
    expect(figures(bench)).toMatchObject({ unfollowed_packets: 7, lost_packets: 1 })
    expect(bench.received('out')).toHaveLength(64 + 63 + 10)
    bench.stop()
  })

  test('a RESET makes it forget them', () => {
    const bench = drive(receiver())
    send(bench, [0, 1, 5])
    bench.notify('in', 'RESET')
    expect(figures(bench).followed_senders).toBe(0)
    send(bench, [1, 2])
    bench.advance(4 * SECOND)
    expect(figures(bench)).toMatchObject({ lost_packets: 0, duplicate_packets: 0, expected_packets: 4 })
    expect(bench.notifications('out')).toEqual(['RESET'])
    bench.stop()
  })
})

test('what is too short for the header is dropped and counted', () => {
  const bench = drive(receiver())
  bench.send('in', [new Uint8Array(0), new Uint8Array(7), new Uint8Array(8)])
  expect(figures(bench)).toMatchObject({ malformed_packets: 2, expected_packets: 1 })
  expect(bench.received('out').map(({ bytes }) => bytes.length)).toEqual([0])
  bench.stop()
})

test('an interval below 0 is refused', () => {
  expect(refusal(receiver({ sampling_interval_ms: -1 }))).toEqual({
    pointer: '/engine_config/pipeline/it/loss_tracker_receiver/sampling_interval_ms',
    message: '-1 is below the minimum of 1 ms (0 leaves it unset)',
  })
})

test('figures agree with a plain count of what was sent and came, whatever loss, order and duplicates are', () => {
  for (let seed = 1; seed <= 40; seed++) {
    const random = new Random(seed)
    const values = new Float64Array(5)
    const [expected_packets, lost_packets, duplicate_packets, reordered_packets, late_packets] = [0, 1, 2, 3, 4].map(
      (i) => new Counter(values, i),
    ) as [Counter, Counter, Counter, Counter, Counter]
    const flow = new LossFlow({ expected_packets, lost_packets, duplicate_packets, reordered_packets, late_packets })
    const first = random.bits() | 0
    const count = 1 + random.below(5000)
    const loss = random.chance(0.3) ? 0.9 : 0.1
    // Nothing moves by more than 400 places, so nothing comes after it was decided.
    const arrivals = range(0, count)
      .filter((i) => i === 0 || i === count - 1 || !random.chance(loss))
      .flatMap((i) => (random.chance(0.05) ? [i, i] : [i]))
      .map((i) => ({ i, at: i === 0 ? -1 : i + random.below(400) }))
      .sort((a, b) => a.at - b.at)
    const came = new Set(arrivals.map(({ i }) => i))
    flow.begin(7, first)
    const rest = arrivals.slice(arrivals.findIndex(({ i }) => i === 0) + 1)
    for (const { i } of rest) flow.take((first + i) | 0)
    for (let interval = 0; interval < 4; interval++) flow.endInterval()
    let highest = 0
    const seen = new Set([0])
    let [late, twice] = [0, 0]
    for (const { i } of rest) {
      if (seen.has(i)) twice++
      else if (i < highest) late++
      seen.add(i)
      highest = Math.max(highest, i)
    }
    expect([...values], `seed ${seed}`).toEqual([count, count - came.size, twice, late, 0])
  }
})
