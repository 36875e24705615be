import { expect, it } from 'vitest'
import { components } from '../components/registry.ts'
import { checkPipelineConfig } from './check.ts'
import type { PipelineConfig } from './config.ts'
import { connect } from './ports.ts'
import { growsFrom, roomOf } from './room.ts'

const KEY = { aes_128_gcm_sha_256: { key: '01'.repeat(16) } }
const ENCODER = { symbols: 4, repair: 2 }
const DEVICE = { interface_name: 'tun0', ip: '10.0.0.1' }
const TUNNEL = {
  device: { tun: { ...DEVICE, output: 'leaving', input: 'arriving' } },
  copy: { splitter: { input: 'leaving', outputs: ['counted', 'read'] } },
  reader: { traffic_sink: { input: 'read' } },
  seal: { ssl_encrypt: { ...KEY, input: 'counted', output: 'sealed' } },
  network: { udp: { remote_address: '127.0.0.1:9', input: 'sealed', output: 'received' } },
  open: { ssl_decrypt: { ...KEY, input: 'received', output: 'arriving' } },
}

const CODED = {
  ...TUNNEL,
  encoder: { reed_solomon_encoder: { ...ENCODER, input: 'sealed', output: 'coded' } },
  network: { udp: { remote_address: '127.0.0.1:9', input: 'coded', output: 'received' } },
}
const SIGNED = {
  ...TUNNEL,
  seal: { ssl_poly1305_signer: { shared_secret: '01'.repeat(32), input: 'counted', output: 'sealed' } },
}

/** So many in a row that nobody waits for each of them to be asked twice. */
const IN_ROW = 64
const MANY = {
  ...TUNNEL,
  ...Object.fromEntries(
    Array.from({ length: IN_ROW }, (_, i) => [
      `seal ${i}`,
      { ssl_encrypt: { ...KEY, input: i === 0 ? 'sealed' : `sealed ${i}`, output: `sealed ${i + 1}` } },
    ]),
  ),
  network: { udp: { remote_address: '127.0.0.1:9', input: `sealed ${IN_ROW}`, output: 'received' } },
}

it.each([
  ['what a device reads is sealed further on, which moves it', TUNNEL, 'device', false],
  ['what a socket receives is only opened, and does not go through it again', TUNNEL, 'network', false],
  ['behind what seals it, it grows', CODED, 'device', true],
  ['what is sealed grows', CODED, 'seal', true],
  ['what comes in beside what grows on its way out does not', CODED, 'network', false],
  ['what is sealed many times', MANY, 'device', false],
  ['what signs moves nothing', SIGNED, 'device', true],
])('%s', (_, pipeline, component, grows) => {
  const { config, problems } = checkPipelineConfig(
    JSON.stringify({ version: 1, engine_config: { pipeline } }),
    components,
  )
  expect(problems).toEqual([])
  const { components: checked } = config as PipelineConfig
  expect(growsFrom(component, checked, components, connect(checked, components).onward)).toBe(grows)
})

const SOURCE = { udp: { local_address: '127.0.0.1:0', output: 'in' } }

/** Room around the packets of these components. */
function roomAround(pipeline: Record<string, unknown>): { front: number; back: number } {
  const { config, problems } = checkPipelineConfig(
    JSON.stringify({ version: 1, engine_config: { pipeline } }),
    components,
  )
  expect(problems).toEqual([])
  const { components: checked } = config as PipelineConfig
  return roomOf(checked, components, connect(checked, components).onward)
}

it.each([
  ['nothing that computes', {}, 'in', 128],
  [
    'an encoder: two bytes in front of a packet',
    { encoder: { rlnc_encoder: { ...ENCODER, input: 'in', output: 'coded' } } },
    'coded',
    130,
  ],
  [
    'an encoder behind what writes four bytes',
    {
      writer: { client_id_writer: { input: 'in', output: 'written', client_id: 7 } },
      encoder: { reed_solomon_encoder: { ...ENCODER, input: 'written', output: 'coded' } },
    },
    'coded',
    134,
  ],
  [
    'a decoder: behind the header of its packets',
    { decoder: { rlnc_decoder: { input: 'in', output: 'plain' } } },
    'plain',
    180,
  ],
])('a cache line begins where most is computed: %s', (_, between, last, front) => {
  const sink = { traffic_sink: { input: last } }
  expect(roomAround({ source: SOURCE, ...between, sink }).front).toBe(front)
})

it('where two ways join there is room for what either writes, whichever comes first', () => {
  const TAG_BYTES = 16
  const seals = (input: string, count: number, output: string) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, i) => [
        `${input} ${i}`,
        {
          ssl_encrypt: {
            ...KEY,
            input: i === 0 ? input : `${input} ${i}`,
            output: i === count - 1 ? output : `${input} ${i + 1}`,
          },
        },
      ]),
    )
  for (const inputs of [
    ['short', 'sealed'],
    ['sealed', 'short'],
  ]) {
    const joined = {
      source: SOURCE,
      copy: { splitter: { input: 'in', outputs: ['short', 'long'] } },
      ...seals('long', 4, 'sealed'),
      join: { flow_combiner: { inputs, output: 'both' } },
      ...seals('both', 3, 'out'),
      sink: { traffic_sink: { input: 'out' } },
    }
    expect(roomAround(joined).back).toBe(7 * TAG_BYTES)
  }
})
