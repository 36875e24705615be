/** tag_mux and tag_demux: flows joined and parted again, each with its packets in order. */
import { expect, test } from 'vitest'
import { drive, payload, Refused, tagOf } from '../../../../test/harness/component.ts'

const numbers = (packets: readonly { bytes: Uint8Array }[]) => packets.map(({ bytes }) => tagOf(bytes))
const TAGS = [-2147483648, -1, 0, 2147483647]
const points = (prefix: string, tags = TAGS) => tags.map((tag, i) => ({ name: `${prefix}${i}`, tag }))
const mux = { mux: { tag_mux: { inputs: points('in'), output: 'wire' } } }

function refusal(pipeline: Parameters<typeof drive>[0]): string {
  try {
    drive(pipeline).stop()
  } catch (error) {
    if (error instanceof Refused) return error.message
    throw error
  }
  throw new Error('it was taken')
}

test('the tag stands in front, big-endian, in two’s complement', () => {
  const bench = drive(mux)
  TAGS.forEach((_, i) => {
    bench.send(`in${i}`, Uint8Array.of(9, 8, 7), { remote: '192.0.2.1:5', client: 3 })
  })
  expect(bench.received('wire').map(({ bytes }) => [...bytes])).toEqual([
    [0x80, 0, 0, 0, 9, 8, 7],
    [0xff, 0xff, 0xff, 0xff, 9, 8, 7],
    [0, 0, 0, 0, 9, 8, 7],
    [0x7f, 0xff, 0xff, 0xff, 9, 8, 7],
  ])
  expect(bench.received('wire')[0]).toMatchObject({ remote: '192.0.2.1:5', client: 3 })
  bench.stop()
})

test('what was joined comes out where it belongs, byte for byte and in order, however it is mixed', () => {
  const bench = drive({ ...mux, demux: { tag_demux: { input: 'wire', outputs: points('out') } } })
  for (let i = 0; i < 400; i++) bench.send(`in${i % 4}`, payload(64 + i, i))
  TAGS.forEach((_, place) => {
    const out = bench.received(`out${place}`)
    expect(numbers(out)).toEqual(Array.from({ length: 100 }, (_, i) => i * 4 + place))
    for (const { bytes } of out) expect(bytes).toEqual(payload(64 + tagOf(bytes), tagOf(bytes)))
  })
  bench.notify('in2', 'RESET')
  expect(bench.notifications('out0')).toEqual(['RESET'])
  expect(bench.notifications('out3')).toEqual(['RESET'])
  bench.stop()
})

test('one batch for several outputs, with packets of unknown tags and none among them', () => {
  const bench = drive({ demux: { tag_demux: { input: 'in', outputs: points('out', [1, 2]) } } })
  const tagged = (tag: number, number: number) => Uint8Array.of(0, 0, 0, tag, 0, 0, 0, number)
  bench.send('in', [
    tagged(2, 1),
    tagged(3, 2),
    tagged(1, 3),
    new Uint8Array(3),
    tagged(2, 4),
    new Uint8Array(0),
    Uint8Array.of(0, 0, 0, 1),
  ])
  expect(numbers(bench.received('out1'))).toEqual([1, 4])
  expect(bench.received('out0').map(({ bytes }) => [...bytes])).toEqual([[0, 0, 0, 3], []])
  expect(bench.metrics().demux).toMatchObject({ unknown_tag_packets: 1, malformed_packets: 2 })
  bench.send('in', tagged(1, 5))
  expect(bench.received('out0')).toHaveLength(3)
  bench.stop()
})

test('a tag given twice is refused, with both places', () => {
  expect(refusal({ mux: { tag_mux: { inputs: points('in', [4, 5, 4]), output: 'wire' } } })).toBe(
    '/engine_config/pipeline/mux/tag_mux/inputs/2/tag: 4 is the tag of /inputs/0 too; give each a tag of its own',
  )
  expect(refusal({ demux: { tag_demux: { input: 'in', outputs: points('out', [0, 0]) } } })).toContain(
    '/outputs/1/tag: 0 is the tag of /outputs/0 too',
  )
})

test('there may be 4,096 of them', () => {
  const tags = Array.from({ length: 4096 }, (_, i) => i)
  const bench = drive({
    demux: { tag_demux: { input: 'in', outputs: points('flow', tags) } },
    mux: { tag_mux: { inputs: points('flow', tags), output: 'out' } },
  })
  const packets = [4095, 0, 256].map((tag) => Uint8Array.of(0, 0, tag >> 8, tag, 1, 2))
  bench.send('in', packets)
  expect(bench.received('out').map(({ bytes }) => bytes)).toEqual(packets)
  bench.stop()
})
