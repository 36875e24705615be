/** How long the packets of raft are where max_packet_bytes leaves it open: as the MTU behind its carriers has it. */
import { describe, expect, test } from 'vitest'
import { examples } from '../../../../test/contract-suite/examples.ts'
import { drive, type Pipeline, payload } from '../../../../test/harness/component.ts'
import { checkPipelineConfig } from '../../engine/check.ts'
import { connect } from '../../engine/ports.ts'
import { longestPackets } from '../../engine/room.ts'
import { components } from '../registry.ts'

const raft = (carriers: number, settings: object = {}) => ({
  raft: {
    streams: [{ input: 'in', stream_handle: 1, transit_stream: { bonding_delay: 10 } }],
    carriers: Array.from({ length: carriers }, (_, i) => ({
      input: `come ${i}`,
      output: `go ${i}`,
      carrier_handle: i,
    })),
    ...settings,
  },
})

const whole = (pipeline: Pipeline) => JSON.stringify({ version: 1, engine_config: { pipeline } })

/** Where carrier `i` leads to: a network that others take all packets from. */
const network = (i: number, mtu: number, input = `go ${i}`): Pipeline => ({
  [`near ${i}`]: { simulated_network: { network_name: `${i}`, input, output: `come ${i}`, mtu } },
  [`far ${i}`]: { simulated_network: { network_name: `${i}`, output: `arrived ${i}`, mtu: 65_535 } },
})

/** The longest packet that arrives on each network when long payloads are sent. */
function longestOf(pipeline: Pipeline, networks: number): number[] {
  const bench = drive(pipeline, { mtu: 9216 })
  for (let n = 0; n < 200; n++) {
    bench.send('in', payload(9216, n))
    bench.advance(1e6)
  }
  const metrics = bench.metrics()
  const longest = Array.from({ length: networks }, (_, i) => {
    return Math.max(...bench.take(`arrived ${i}`).map(({ bytes }) => bytes.length))
  })
  bench.stop()
  for (let i = 0; i < networks; i++) expect(metrics[`near ${i}`].oversize_packets).toBe(0)
  return longest
}

/** A repair, 4 bytes longer than the longest data packet, is only sent after losses. */
const REPAIR = 4

describe('packets are as long', () => {
  test.each([600, 1400, 1500, 9216])('as the MTU of %i bytes behind the carrier has it', (mtu) => {
    expect(longestOf({ it: raft(1), ...network(0, mtu) }, 1)).toEqual([mtu - REPAIR])
  })

  test('as the least of several has it', () => {
    const pipeline = { it: raft(2), ...network(0, 1400), ...network(1, 1000) }
    expect(longestOf(pipeline, 2)).toEqual([1000 - REPAIR, 1000 - REPAIR])
  })

  test('as a datagram of IPv4 has it where the MTU is that of no path', () => {
    expect(longestOf({ it: raft(1), ...network(0, 65_535) }, 1)).toEqual([1472 - REPAIR])
  })

  test('as is said', () => {
    expect(longestOf({ it: raft(1, { max_packet_bytes: 700 }), ...network(0, 1400) }, 1)).toEqual([700 - REPAIR])
  })

  test('as datagrams of IPv6 have it, to wherever the family is not known', () => {
    const longest = (udp: Record<string, unknown>): number | undefined => {
      const pipeline = {
        it: { key: 'raft', config: raft(1).raft },
        net: { key: 'udp', config: { input: 'go 0', output: 'come 0', ...udp } },
      }
      return longestPackets(pipeline, components, connect(pipeline, components).onward).get('go 0')
    }
    expect(longest({ remote_address: '192.0.2.1:9' })).toBe(1472)
    expect(longest({ remote_address: '[2001:db8::1]:9' })).toBe(1452)
    expect(longest({ remote_address: 'relay.example:9' })).toBe(1452)
    expect(longest({ local_address: '0.0.0.0:9' })).toBe(1472)
    expect(longest({ local_address: '[::]:9' })).toBe(1452)
    expect(longest({})).toBe(1452)
    expect(longest({ mtu: 8972 })).toBe(8972)
  })

  // Every component that has one input and one output and makes packets longer.
  const wrappers = Object.entries(examples).filter(([key, { config }]) => {
    const isChain = typeof config.input === 'string' && typeof config.output === 'string'
    return isChain && components.get(key)?.room !== undefined
  })
  test('so with what makes them longer, of which there is much', () => expect(wrappers.length).toBeGreaterThan(10))
  test.each(wrappers)('as leaves room for what %s adds', (key, { config }) => {
    const wrapper = { [key]: { ...config, input: 'go 0', output: 'wrapped' } }
    const [longest] = longestOf({ it: raft(1), wrapper, ...network(0, 1400, 'wrapped') }, 1)
    expect(longest).toBe(key === 'fragmentizer' ? config.fragment_size : 1400 - REPAIR)
  })
})

test('nothing is too long where packets are lost and repaired', () => {
  const end = (side: string, stream: object): Pipeline => ({
    [side]: {
      raft: {
        streams: [{ ...stream, stream_handle: 1, realtime_stream: { timeout: 100 } }],
        carriers: [{ input: `${side} heard`, output: `${side} lossy`, carrier_handle: 1 }],
      },
    },
    [`${side} loss`]: { uniform_loss: { input: `${side} lossy`, output: `${side} sent`, loss_prob: 0.1 } },
    [`${side} net`]: {
      simulated_network: { network_name: 'n', input: `${side} sent`, output: `${side} heard`, mtu: 1400 },
    },
  })
  const bench = drive({ ...end('a', { input: 'in' }), ...end('b', { output: 'out' }) })
  for (let n = 0; n < 5000; n++) {
    bench.send('in', payload(1400, n))
    bench.advance(1e6)
  }
  bench.advance(1e9)
  const metrics = bench.metrics()
  expect([metrics['a net'].oversize_packets, metrics['b net'].oversize_packets]).toEqual([0, 0])
  expect(metrics.b.streams_0_repaired_pieces).toBeGreaterThan(0)
  expect(bench.take('out').length).toBeGreaterThan(4990)
  bench.stop()
})

/** Two ends over networks; that of `b` takes packets of `mtuThere` bytes from `a`, and it sends such of `mtuBack`. */
function ends(
  paths: number,
  mtuThere: number,
  mtuBack: number,
  { lost = 0, delay = 0, jitter = 0, timeout = 300 } = {},
): Pipeline {
  const pipeline: Pipeline = {}
  for (const [side, stream, mtu] of [
    ['a', { input: 'in' }, mtuThere],
    ['b', { output: 'out' }, mtuBack],
  ] as const) {
    const carriers = Array.from({ length: paths }, (_, i) => i)
    pipeline[side] = {
      raft: {
        streams: [{ ...stream, stream_handle: 1, realtime_stream: { timeout } }],
        carriers: carriers.map((i) => ({ input: `${side} come ${i}`, output: `${side} go ${i}`, carrier_handle: i })),
      },
    }
    for (const i of carriers) {
      pipeline[`${side} loss ${i}`] = {
        uniform_loss: { input: `${side} go ${i}`, output: `${side} left ${i}`, loss_prob: lost },
      }
      pipeline[`${side} delay ${i}`] = {
        delay_constant: {
          flows: [{ input: `${side} left ${i}`, output: `${side} sent ${i}` }],
          delay,
          jitter,
          allow_reordering: true,
        },
      }
      const network = (direction: string) => ({ network_name: `${direction} ${i}` })
      const [there, back] = side === 'a' ? ['ab', 'ba'] : ['ba', 'ab']
      pipeline[`${side} to ${i}`] = { simulated_network: { ...network(there), input: `${side} sent ${i}`, mtu } }
      pipeline[`${side} from ${i}`] = {
        simulated_network: { ...network(back), output: `${side} come ${i}`, mtu: side === 'a' ? mtuBack : mtuThere },
      }
    }
  }
  return pipeline
}

test('what repairs cover may be longer than what this end sends', () => {
  const bench = drive(ends(1, 9000, 1500, { lost: 0.05, delay: 40, timeout: 100 }), { mtu: 9216 })
  for (let n = 0; n < 5000; n++) {
    bench.send('in', payload(8000, n))
    bench.advance(1e6)
  }
  bench.advance(1e9)
  const { b } = bench.metrics()
  expect(b.streams_0_repaired_pieces).toBeGreaterThan(100)
  expect(b.malformed_packets).toBe(0)
  expect(bench.take('out').length).toBeGreaterThan(4950)
  bench.stop()
})

test.each([0, 0.03])('what is recovered is what was sent, however pieces overtake each other, with loss %d', (lost) => {
  const bench = drive(ends(1, 1500, 1500, { lost, delay: 20, jitter: 10 }), { mtu: 9216 })
  for (let n = 0; n < 3000; n++) {
    bench.send('in', payload(32 + ((n * 977) % 8900), n))
    bench.advance(3e6)
  }
  bench.advance(1e9)
  const { b } = bench.metrics()
  expect(b.malformed_packets).toBe(0)
  if (lost > 0) expect(b.streams_0_repaired_pieces).toBeGreaterThan(10)
  const sent = new Map(Array.from({ length: 3000 }, (_, n) => [n, payload(32 + ((n * 977) % 8900), n)] as const))
  const received = bench.take('out')
  expect(received.length).toBeGreaterThan(2990)
  for (const { bytes } of received) {
    const known = [...sent].find(([, packet]) => Buffer.compare(packet, bytes) === 0)
    expect(known).toBeDefined()
    sent.delete(known?.[0] as number)
  }
  bench.stop()
})

test('long packets that never arrive, where short ones do, are sent again in bounds', () => {
  const paths = [0, 1]
  const streams = (stream: object) => [{ ...stream, stream_handle: 1, realtime_stream: { timeout: 300 } }]
  const carriers = (side: string) =>
    paths.map((i) => ({ input: `${side} come ${i}`, output: `${side} go ${i}`, carrier_handle: i }))
  const pipeline: Pipeline = {
    source: {
      uniform_traffic_source: {
        output: 'in',
        interval: 2,
        min_packet_size: 32,
        max_packet_size: 9000,
        total_packets: 0,
      },
    },
    far: { raft: { streams: streams({ input: 'in' }), carriers: carriers('far') } },
    near: { raft: { streams: streams({ output: 'out' }), carriers: carriers('near') } },
  }
  // What the near end sends is as long as it takes; the far end knows nothing of that.
  for (const side of ['far', 'near']) {
    for (const i of paths) {
      const mtu = side === 'far' ? 1500 : 600
      pipeline[`${side} net ${i}`] = {
        simulated_network: { network_name: `${i}`, input: `${side} go ${i}`, output: `${side} come ${i}`, mtu },
      }
    }
  }
  const bench = drive(pipeline, { mtu: 9216 })
  bench.advance(3e9)
  const { far } = bench.metrics()
  // Each path may have each piece once in a round trip, which takes a report, until its time is over.
  expect(far.streams_0_repeated_pieces).toBeLessThan(60 * far.streams_0_sent_pieces)
  expect(bench.take('out').length).toBeGreaterThan(20)
  bench.stop()
})

describe('validation warns', () => {
  const warningsOf = (mtu: number, settings: object = {}) => {
    const { problems, warnings } = checkPipelineConfig(
      whole({
        it: raft(2, settings),
        ...network(0, 1400),
        ...network(1, mtu),
        from: { uniform_traffic_source: { output: 'in', total_packets: 1, interval: 1 } },
        to: { traffic_sink: { input: 'arrived 0' } },
        other: { traffic_sink: { input: 'arrived 1' } },
      }),
      components,
    )
    expect(problems).toEqual([])
    return warnings
  }

  test('of no packets that all carriers take', () => {
    expect(warningsOf(1000)).toEqual([])
    expect(warningsOf(1000, { max_packet_bytes: 1000 })).toEqual([])
  })

  test('of packets longer than what a carrier leads to takes', () => {
    const [warning, ...others] = warningsOf(1000, { max_packet_bytes: 1400 })
    expect(others).toEqual([])
    expect(warning).toMatchObject({
      component: 'it',
      pointer: '/engine_config/pipeline/it/raft/carriers/1/output',
      message: expect.stringMatching(/up to 1400 bytes .* takes 1000 .* max_packet_bytes/),
    })
  })

  test('of none where packets are cut on the way', () => {
    const cut = { fragmentizer: { input: 'go 0', output: 'cut', fragment_size: 1200 } }
    const { problems, warnings } = checkPipelineConfig(
      whole({
        it: raft(1, { max_packet_bytes: 9000 }),
        cut,
        ...network(0, 1400, 'cut'),
        from: { uniform_traffic_source: { output: 'in', total_packets: 1, interval: 1 } },
        to: { traffic_sink: { input: 'arrived 0' } },
      }),
      components,
    )
    expect([problems, warnings]).toEqual([[], []])
  })

  test('of an MTU too short for any packet', () => {
    const [warning, ...others] = warningsOf(100)
    expect(others).toEqual([])
    expect(warning.message).toMatch(/up to 128 bytes .* takes 100 .* MTU/)
  })
})
