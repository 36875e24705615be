/** splitter and flow_combiner: every packet where it belongs, annotations and order kept, shortage counted. */
import { describe, expect, test } from 'vitest'
import { drive, payload, tagOf } from '../../../../test/harness/component.ts'

const tags = (packets: readonly { bytes: Uint8Array }[]) => packets.map(({ bytes }) => tagOf(bytes))

describe('splitter', () => {
  test('each output gets its own copy of every packet, in order, annotations included', () => {
    const bench = drive({ copy: { splitter: { input: 'in', outputs: ['a', 'b', 'c'] } } })
    bench.send(
      'in',
      Array.from({ length: 300 }, (_, i) => payload(64 + i, i)),
      { remote: '[2001:db8::1]:4000', client: 3 },
    )
    for (const output of ['a', 'b', 'c']) {
      const out = bench.received(output)
      expect(tags(out)).toEqual(Array.from({ length: 300 }, (_, i) => i))
      out.forEach((packet, i) => {
        expect(packet.bytes).toEqual(payload(64 + i, i))
        expect(packet).toMatchObject({ remote: '[2001:db8::1]:4000', client: 3 })
      })
    }
    expect(bench.metrics().copy).toMatchObject({ copied_packets: 600, uncopied_packets: 0, input_packets: 300 })
    bench.stop()
  })

  test('copies are independent: what one branch does to a packet the other does not see', () => {
    const bench = drive({
      copy: { splitter: { input: 'in', outputs: ['a', 'b'] } },
      slow: { delay_constant: { flows: [{ input: 'a', output: 'later' }], delay: 10 } },
    })
    bench.send('in', payload(200, 1))
    bench.send('in', payload(200, 2))
    bench.advance(10e6)
    expect(bench.received('later').map(({ bytes }) => bytes)).toEqual([payload(200, 1), payload(200, 2)])
    bench.stop()
  })

  test('without slots the copies are dropped and counted, the original goes on', () => {
    const bench = drive({ copy: { splitter: { input: 'in', outputs: ['a', 'b', 'c'] } } })
    const taken: number[] = []
    while (bench.packets.available > 3) taken.push(bench.packets.allocate())
    bench.send('in', [payload(64, 1), payload(64, 2)])
    for (const packet of taken) bench.packets.release(packet)
    expect(tags(bench.received('a'))).toEqual([1, 2])
    const copies = bench.received('b').length + bench.received('c').length
    expect(copies).toBeLessThan(4)
    expect(bench.metrics().copy).toMatchObject({ uncopied_packets: 4 - copies, copied_packets: copies })
    bench.stop()
  })

  test('one output is enough', () => {
    const bench = drive({ copy: { splitter: { input: 'in', outputs: ['a'] } } })
    bench.send('in', payload(64, 9))
    expect(tags(bench.received('a'))).toEqual([9])
    bench.stop()
  })
})

describe('flow_combiner', () => {
  test('takes from every input, each in its order', () => {
    const bench = drive({ join: { flow_combiner: { inputs: ['a', 'b', 'c'], output: 'out' } } })
    for (let i = 0; i < 10; i++) {
      bench.send('a', [payload(64, i), payload(64, i)])
      bench.send('c', payload(64, 100 + i))
      bench.send('b', payload(64, 200 + i))
    }
    const got = tags(bench.received('out'))
    expect(got).toHaveLength(40)
    for (const [from, to] of [
      [0, 99],
      [100, 199],
      [200, 299],
    ]) {
      const own = got.filter((tag) => tag >= from && tag <= to)
      expect(own).toEqual([...own].sort((x, y) => x - y))
    }
    expect(bench.metrics().join).toMatchObject({ inputs_0_packets: 20, inputs_1_packets: 10, inputs_2_packets: 10 })
    bench.notify('b', 'FLUSH')
    expect(bench.notifications('out')).toEqual(['FLUSH'])
    bench.stop()
  })
})
