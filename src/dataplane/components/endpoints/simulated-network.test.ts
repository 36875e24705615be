/** simulated_network on the virtual clock: within one run, and between runs that are simulated together. */
import { describe, expect, it } from 'vitest'
import { advanceAll, type Bench, drive, payload, Refused, tagOf } from '../../../../test/harness/component.ts'
import { SimulatedWorld } from '../../engine/simulate.ts'

const port = (name: string, more: Record<string, unknown> = {}) => ({
  simulated_network: { network_name: 'lan', input: `${name}-in`, output: `${name}-out`, ...more },
})

/** The metrics that warnings in the log are about. */
const warnedOf = ({ log }: Bench) => log.filter(({ level }) => level === 'WARN').map(({ fields }) => fields.metric)

const tags = (bench: Bench, name: string) => bench.take(`${name}-out`).map(({ bytes }) => tagOf(bytes))

describe('within one run', () => {
  it('a packet goes to all others of its network, never back, and carries its bytes only', () => {
    const bench = drive({ a: port('a'), b: port('b'), c: port('c'), far: port('far', { network_name: 'wan' }) })
    bench.advance(5e6)
    const sizes = [
      payload(0),
      payload(1, 9),
      payload(2, 9),
      payload(3, 9),
      payload(64, 4),
      payload(1499, 5),
      payload(1500, 6),
    ]
    bench.send('a-in', sizes, { remote: '192.0.2.1:9', client: 4, arrival: 17 })
    bench.advance(0)
    for (const name of ['b', 'c']) {
      const got = bench.take(`${name}-out`)
      expect(got.map(({ bytes }) => bytes)).toEqual(sizes)
      for (const { remote, client, arrival, time } of got) {
        expect({ remote, client, arrival, time }).toEqual({ remote: '', client: -1, arrival: 5e6, time: 5e6 })
      }
    }
    expect([...tags(bench, 'a'), ...tags(bench, 'far')]).toEqual([])
    bench.check()
    expect(bench.metrics()).toMatchObject({
      a: { sent_packets: 7, received_packets: 0, members: 2 },
      b: { received_packets: 7 },
      far: { received_packets: 0, members: 0 },
    })
    bench.stop()
  })

  it('packets that go round without taking any time end the simulation, which says what to do', () => {
    const echo = (name: string) => ({ simulated_network: { network_name: 'lan', input: name, output: name } })
    const bench = drive({ a: port('a'), one: echo('one'), other: echo('other') })
    const send = () => bench.send('a-in', payload(0))
    expect(send).toThrow(/stands still at 0 s: packets go round .*: put a delay or a bandwidth limit into their circle/)
  })

  it('with receivers, to those only; a change of them is live', () => {
    const bench = drive({ a: port('a', { receivers: ['c', 'nobody', 'a'] }), b: port('b'), c: port('c') })
    bench.send('a-in', payload(10, 1))
    bench.advance(0)
    expect([tags(bench, 'a'), tags(bench, 'b'), tags(bench, 'c')]).toEqual([[], [], [1]])
    bench.reconfigure({ a: port('a', { receivers: ['b'] }) })
    bench.send('a-in', payload(10, 2))
    bench.advance(0)
    expect([tags(bench, 'b'), tags(bench, 'c')]).toEqual([[2], []])
    bench.reconfigure({ a: port('a', { receivers: [] }) })
    bench.send('a-in', payload(10, 3))
    bench.advance(0)
    expect([tags(bench, 'b'), tags(bench, 'c')]).toEqual([[3], [3]])
    bench.stop()
  })

  it('1,024 packets wait for a member; what comes on top is counted where it was sent and where it was missed', () => {
    const bench = drive({
      a: port('a', { output: undefined }),
      b: port('b', { input: undefined }),
      c: port('c', { input: undefined }),
    })
    const many = Array.from({ length: 1500 }, (_, i) => payload(40, i))
    for (let round = 0; round < 5; round++) {
      bench.send('a-in', many)
      bench.advance(0)
      for (const name of ['b', 'c']) expect(tags(bench, name)).toEqual(Array.from({ length: 1024 }, (_, i) => i))
    }
    bench.check()
    expect(bench.metrics()).toMatchObject({
      a: { sent_packets: 7500, ring_full_packets: 2 * 5 * 476 },
      b: { received_packets: 7500, missed_packets: 5 * 476 },
      c: { received_packets: 7500, missed_packets: 5 * 476 },
    })
    expect(warnedOf(bench)).toEqual(['missed_packets', 'missed_packets'])
    bench.stop()
  })

  it('packets over the MTU of the sender are dropped, over that of a receiver not taken', () => {
    const bench = drive({ a: port('a', { mtu: 200 }), b: port('b', { mtu: 100 }), c: port('c') })
    bench.send('a-in', [payload(100, 1), payload(101, 2), payload(200, 3), payload(201, 4)])
    bench.advance(0)
    expect([tags(bench, 'b'), tags(bench, 'c')]).toEqual([[1], [1, 2, 3]])
    bench.check()
    expect(bench.metrics()).toMatchObject({
      a: { sent_packets: 3, oversize_packets: 1 },
      b: { received_packets: 3, received_oversize_packets: 2 },
    })
    expect(warnedOf(bench)).toEqual(['received_oversize_packets'])
    bench.stop()
  })

  it.each([
    [{ input: undefined, output: undefined }, '', 'neither input nor output is set'],
    [{ network_name: '' }, '/network_name', ''],
    [{ mtu: 67 }, '/mtu', ''],
    [{ mtu: 65_536 }, '/mtu', ''],
    [{ receivers: [''] }, '/receivers/0', ''],
  ])('%j is refused', (more, pointer, message) => {
    let problems: { pointer: string; message: string }[] = []
    try {
      drive({ a: port('a', more) })
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      problems = error.problems
    }
    expect(problems).toEqual([
      { pointer: `/engine_config/pipeline/a/simulated_network${pointer}`, message: expect.stringContaining(message) },
    ])
  })
})

describe('between runs simulated together', () => {
  it('packets cross at the same instant, members come and go, and one that is over is none', () => {
    const world = new SimulatedWorld()
    const first = drive({ node: port('x'), other: port('y') }, { world })
    const second = drive({ node: port('x') }, { world })
    first.send('x-in', payload(10, 1))
    advanceAll([first, second], 1e6)
    // A component of the same name in another run is another member.
    expect([tags(first, 'x'), tags(first, 'y'), tags(second, 'x')]).toEqual([[], [1], [1]])
    const third = drive({ late: port('z') }, { world })
    second.send('x-in', payload(10, 2))
    advanceAll([first, second, third], 1e6)
    expect([tags(first, 'x'), tags(first, 'y'), tags(second, 'x'), tags(third, 'z')]).toEqual([[2], [2], [], [2]])
    third.send('z-in', payload(10, 3))
    first.stop()
    expect(second.metrics().node).toMatchObject({ members: 1 })
    advanceAll([second, third], 1e6)
    expect(tags(second, 'x')).toEqual([3])
    for (const bench of [second, third]) {
      bench.check()
      bench.stop()
    }
  })

  it('packets that no slot is free for are lost and counted, and the next arrive', () => {
    const world = new SimulatedWorld()
    const sender = drive({ a: port('a') }, { world })
    const receiver = drive({ b: port('b') }, { world })
    const taken: number[] = []
    while (receiver.packets.available > 3) taken.push(receiver.packets.allocate())
    sender.send(
      'a-in',
      Array.from({ length: 10 }, (_, i) => payload(20, i)),
    )
    advanceAll([sender, receiver], 0)
    expect(tags(receiver, 'b')).toEqual([0, 1, 2])
    sender.send('a-in', payload(20, 10))
    advanceAll([sender, receiver], 0)
    expect(tags(receiver, 'b')).toEqual([10])
    expect(receiver.metrics().b).toMatchObject({ received_packets: 11, received_without_slot_packets: 7 })
    expect(warnedOf(receiver)).toEqual(['received_without_slot_packets'])
    for (const packet of taken) receiver.packets.release(packet)
    for (const bench of [sender, receiver]) bench.stop()
  })

  it('a stream between two runs arrives whole, in order and with the delay of the emulated path', () => {
    const world = new SimulatedWorld()
    const sender = drive(
      {
        source: { uniform_traffic_source: { output: 'a', interval: 1, total_packets: 2000, seed: 1 } },
        path: { delay_constant: { flows: [{ input: 'a', output: 'b' }], delay: 25 } },
        out: { simulated_network: { network_name: 'lan', input: 'b' } },
      },
      { world },
    )
    const receiver = drive(
      {
        in: { simulated_network: { network_name: 'lan', output: 'c' } },
        sink: { traffic_sink: { input: 'c' } },
      },
      { world },
    )
    advanceAll([sender, receiver], 10e9)
    expect(receiver.metrics().sink).toMatchObject({
      probe_packets: 2000,
      lost_packets: 0,
      reordered_packets: 0,
      delay_min: 25e6,
      delay_max: 25e6,
    })
    expect([sender.over, receiver.over]).toEqual([true, false])
    expect(sender.stop()).toEqual({ outcome: 'COMPLETED' })
    receiver.check()
    expect(receiver.stop()).toEqual({ outcome: 'STOPPED' })
  })
})
