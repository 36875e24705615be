/** The component harness catches what it is there to catch. */
import { describe, expect, test } from 'vitest'
import { drive, payload, Refused, tagOf } from './component.ts'

describe('drive', () => {
  test('feeds open inputs and collects open outputs, bytes and annotations', () => {
    const bench = drive({
      copy: { splitter: { input: 'in', outputs: ['a', 'b', 'left over'] } },
      join: { flow_combiner: { inputs: ['a', 'b'], output: 'out' } },
    })
    expect(bench.inputs).toEqual(['in'])
    expect(bench.outputs.sort()).toEqual(['left over', 'out'])
    bench.advance(1000)
    bench.send('in', [payload(100, 1), payload(60, 2)], { remote: '192.0.2.1:5000', client: 7 })
    const out = bench.take('out')
    expect(out.map(({ bytes }) => tagOf(bytes)).sort()).toEqual([1, 1, 2, 2])
    for (const packet of out) {
      expect(packet).toMatchObject({ time: 1000, arrival: 1000, remote: '192.0.2.1:5000', client: 7 })
      expect(packet.bytes).toEqual(payload(packet.bytes.length, tagOf(packet.bytes)))
    }
    expect(bench.received('out')).toEqual([])
    bench.notify('in', 'RESET')
    expect(bench.notifications('left over')).toEqual(['RESET'])
    expect(bench.notifications('out')).toEqual(['RESET', 'RESET'])
    expect(bench.stop()).toEqual({ outcome: 'STOPPED' })
  })

  test('refuses a bad configuration with its problems', () => {
    expect(() => drive({ copy: { splitter: { input: 'in', output: 'a', outputs: ['b'] } } })).toThrow(Refused)
  })

  test('notices a packet that vanished and a slot that stays taken', () => {
    const bench = drive({ join: { flow_combiner: { inputs: ['in'], output: 'out' } } })
    bench.send('in', payload(10))
    bench.simulation.graph.values.fill(0, 0, 1)
    expect(() => bench.check()).toThrow('not conserved')
    const kept = drive({ join: { flow_combiner: { inputs: ['in'], output: 'out' } } })
    kept.packets.allocate()
    expect(() => kept.stop()).toThrow('still taken')
  })
})
