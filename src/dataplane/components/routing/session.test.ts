/** session_writer and session_reader: a sender that begins anew is recognised, its former self is not heard any more. */
import { expect, test } from 'vitest'
import { drive, payload, tagOf } from '../../../../test/harness/component.ts'

const reader = { reader: { session_reader: { input: 'in', output: 'out' } } }

/** Packets of one run of a writer. */
function written(seed: number, count: number): Uint8Array[] {
  const bench = drive({ writer: { session_writer: { input: 'in', output: 'out' } } }, { seed })
  for (let i = 0; i < count; i++) bench.send('in', payload(40, seed * 100 + i))
  const packets = bench.take('out').map(({ bytes }) => bytes)
  bench.stop()
  return packets
}
const numbers = (packets: readonly { bytes: Uint8Array }[]) => packets.map(({ bytes }) => tagOf(bytes))

test('a writer has one id for all its packets, and another run another', () => {
  const [one, two] = [written(1, 2), written(2, 1)]
  expect(one[0]).toHaveLength(48)
  expect(one[0].subarray(0, 8)).toEqual(one[1].subarray(0, 8))
  expect(one[0].subarray(0, 8)).not.toEqual(two[0].subarray(0, 8))
  expect(one[1].subarray(8)).toEqual(payload(40, 101))
})

test('RESET goes ahead of the first packet of a session, also in the middle of a batch', () => {
  const bench = drive(reader)
  bench.send('in', written(1, 2))
  expect(numbers(bench.received('out'))).toEqual([100, 101])
  expect(bench.notifications('out')).toEqual(['RESET'])
  bench.send('in', [...written(1, 1), ...written(2, 2)])
  expect(numbers(bench.received('out'))).toEqual([100, 101, 100, 200, 201])
  expect(bench.notifications('out')).toEqual(['RESET', 'RESET'])
  expect(bench.metrics().reader).toMatchObject({ sessions: 2, stale_session_packets: 0 })
  bench.stop()
})

test('the RESET parts the packets of both sessions: a decoder behind forgets the former one’s block only', () => {
  const fragment = (index: number) => Uint8Array.of(0, 1, 0, 0, 0, 1, index, 2, 50 + index)
  const [one, two] = [written(1, 1)[0].subarray(0, 8), written(2, 1)[0].subarray(0, 8)]
  const of = (session: Uint8Array, bytes: Uint8Array) => Uint8Array.of(...session, ...bytes)
  const bench = drive({ ...reader, join: { defragmentizer: { input: 'out', output: 'whole' } } })
  bench.send('in', [of(one, fragment(0)), of(two, fragment(1)), of(two, fragment(0))])
  expect(bench.received('whole').map(({ bytes }) => [...bytes])).toEqual([[50, 51]])
  expect(bench.metrics().join).toMatchObject({ incomplete_packets: 1, reassembled_packets: 1 })
  bench.stop()
})

test('packets of the last 16 sessions are stale; an older one is as good as new', () => {
  const bench = drive(reader)
  for (let seed = 1; seed <= 18; seed++) bench.send('in', written(seed, 1))
  bench.take('out')
  // 18 is current, 2 to 17 are remembered, 1 is forgotten.
  for (let seed = 2; seed <= 17; seed++) bench.send('in', written(seed, 1))
  expect(bench.received('out')).toEqual([])
  expect(bench.metrics().reader).toMatchObject({ sessions: 18, stale_session_packets: 16 })
  bench.send('in', written(18, 1))
  bench.send('in', written(1, 1))
  expect(numbers(bench.received('out'))).toEqual([1800, 100])
  expect(bench.notifications('out')).toHaveLength(19)
  bench.send('in', written(18, 1))
  expect(bench.metrics().reader.stale_session_packets).toBe(17)
  bench.stop()
})

test('ids that have one half in common are two', () => {
  const bench = drive(reader)
  const ids = [
    [1, 1],
    [1, 2],
    [2, 2],
    [2, 1],
  ].map(([high, low]) => Uint8Array.of(0, 0, 0, high, 0, 0, 0, low))
  bench.send('in', ids)
  bench.send('in', ids)
  expect(bench.metrics().reader).toMatchObject({ sessions: 4, stale_session_packets: 3 })
  bench.stop()
})

test('what is too short for an id is malformed, an empty payload is not', () => {
  const bench = drive(reader)
  bench.send('in', [new Uint8Array(7), new Uint8Array(0), new Uint8Array(8)])
  expect(bench.received('out').map(({ bytes }) => bytes.length)).toEqual([0])
  expect(bench.metrics().reader.malformed_packets).toBe(2)
  bench.stop()
})
