/** What a change of configuration asks of a run: the plan, with its reasons. */
import { expect, test } from 'vitest'
import { components } from '../components/registry.ts'
import { checkPipelineConfig } from './check.ts'
import { diffConfig } from './diff.ts'

const at = '/engine_config/pipeline'
const configOf = (pipeline: object, around: object = {}) =>
  checkPipelineConfig(JSON.stringify({ engine_config: { pipeline }, ...around }), components).config ??
  expect.fail('the configuration is good')

const chain = (loss: object = {}, sink: object = {}) => ({
  source: { uniform_traffic_source: { output: 'a', total_packets: 1, interval: 1 } },
  loss: { uniform_loss: { input: 'a', output: 'b', loss_prob: 0.1, ...loss } },
  sink: { traffic_sink: { input: 'b', mtu: 1500, ...sink } },
})
const { source, loss, sink } = chain()
const before = configOf(chain())

test('the same configuration, written differently', () => {
  const spelt = { ...chain(), loss: { uniformLoss: { input: 'a', output: 'b', lossProb: 0.1 } } }
  expect(diffConfig(before, configOf(spelt), components)).toEqual({ live: [], restart: [] })
})

test.each([
  ['a live field', configOf(chain({ loss_prob: 0.2 })), 'live', `${at}/loss/uniform_loss/loss_prob`, 'LIVE'],
  ['a field that is not', configOf(chain({ seed: 5 })), 'restart', `${at}/loss/uniform_loss/seed`, 'FIXED'],
  [
    'a component more',
    configOf({
      ...chain(),
      extra: { splitter: { input: 'c', outputs: ['d'] } },
      more: { uniform_traffic_source: { output: 'c', total_packets: 1, interval: 1 } },
      last: { traffic_sink: { input: 'd', mtu: 1500 } },
    }),
    'restart',
    `${at}/extra`,
    'COMPONENT_ADDED',
  ],
  [
    'a component less',
    configOf({ source: { uniform_traffic_source: { ...source.uniform_traffic_source, output: 'b' } }, sink }),
    'restart',
    `${at}/loss`,
    'COMPONENT_REMOVED',
  ],
  [
    'another component under the same name',
    configOf({ source, sink, loss: { delay_fixed: { input: 'a', output: 'b', delay: 1 } } }),
    'restart',
    `${at}/loss`,
    'COMPONENT_REPLACED',
  ],
  [
    'another connection',
    configOf({
      source,
      loss: { uniform_loss: { ...loss.uniform_loss, output: 'x' } },
      sink: { traffic_sink: { input: 'x', mtu: 1500 } },
    }),
    'restart',
    `${at}/loss/uniform_loss/output`,
    'CONNECTIONS',
  ],
  ['meta', configOf(chain(), { meta: { component_display_order: { source: 1 } } }), 'live', '/meta', 'BESIDE_THE_RUN'],
  [
    'variables',
    configOf(chain(), { variables: [{ id: 'loss', paths: [`${at}/loss/uniform_loss/loss_prob`] }] }),
    'live',
    '/variables',
    'BESIDE_THE_RUN',
  ],
] as const)('%s', (_what, next, list, pointer, reason) => {
  const changes = diffConfig(before, next, components)
  expect(changes[list]).toContainEqual({ pointer, reason })
  expect(changes[list === 'live' ? 'restart' : 'live']).toEqual([])
})

test('what is fixed in a list that is live', () => {
  const bonded = (stream_handle: number, timeout: number) =>
    configOf({
      bond: {
        raft: {
          streams: [{ output: 'a', stream_handle, realtime_stream: { timeout } }],
          carriers: [{ input: 'b', output: 'c', carrier_handle: 1 }],
        },
      },
      network: { udp: { local_address: '127.0.0.1:1', remote_address: '127.0.0.1:2', input: 'c', output: 'b' } },
      sink: { traffic_sink: { input: 'a', mtu: 1500 } },
    })
  const pointer = `${at}/bond/raft/streams`
  expect(diffConfig(bonded(1, 50), bonded(1, 60), components)).toEqual({
    live: [{ pointer, reason: 'LIVE' }],
    restart: [],
  })
  expect(diffConfig(bonded(1, 50), bonded(2, 60), components)).toEqual({
    live: [],
    restart: [{ pointer, reason: 'FIXED' }],
  })
})

test('packets larger than the run has room for', () => {
  const sized = (max_packet_size: number) =>
    configOf({
      source: {
        sporadic_traffic_source: {
          output: 'a',
          total_packets: 0,
          min_packets: 1,
          max_packets: 1,
          min_idle: 1,
          max_idle: 1,
          max_packet_size,
        },
      },
      sink: { traffic_sink: { input: 'a' } },
    })
  const field = `${at}/source/sporadic_traffic_source/max_packet_size`
  expect(diffConfig(sized(1000), sized(900), components).live).toEqual([{ pointer: field, reason: 'LIVE' }])
  expect(diffConfig(sized(1000), sized(9000), components).restart).toEqual([{ pointer: field, reason: 'PACKET_SIZE' }])
})

test('a list with connection points in it is live where those stay the same', () => {
  const tagged = (...inputs: [name: string, tag: number][]) =>
    configOf({
      one: { uniform_traffic_source: { output: inputs[0]?.[0], total_packets: 1, interval: 1 } },
      two: { uniform_traffic_source: { output: inputs[1]?.[0], total_packets: 1, interval: 1 } },
      mux: { tag_mux: { inputs: inputs.map(([name, tag]) => ({ name, tag })), output: 'c' } },
      sink: { traffic_sink: { input: 'c', mtu: 1500 } },
    })
  const pointer = `${at}/mux/tag_mux/inputs`
  const first = tagged(['a', 1], ['b', 2])
  expect(diffConfig(first, tagged(['a', 1], ['b', 3]), components)).toEqual({
    restart: [],
    live: [{ pointer, reason: 'LIVE' }],
  })
  const moved = { pointer, reason: 'CONNECTIONS' }
  expect(diffConfig(first, tagged(['a', 1], ['x', 3]), components).restart).toContainEqual(moved)
  expect(diffConfig(first, tagged(['b', 1], ['a', 2]), components).restart).toContainEqual(moved)
})
