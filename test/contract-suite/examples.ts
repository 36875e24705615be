/** One working configuration for every available component, which the contract suite drives. */
import type { Pipeline } from '../harness/component.ts'

export interface Example {
  /** The component's configuration. Ends that nobody else reads or writes are fed and collected. */
  config: Record<string, unknown>
  /** What makes the packets that it expects, its encoder for one, or what stands at the other end of a socket. */
  others?: Pipeline
  /** Other values for live fields of which the suite can think of none itself, such as addresses. */
  live?: Readonly<Record<string, readonly unknown[]>>
  /**
   * Values of live fields to change from, where they are not those of `config`: what draws random numbers when it is made goes on as
   * if made with other values only where these make it draw none.
   */
  from?: Readonly<Record<string, unknown>>
  /** It has a socket or device that something may come from for ever. */
  endless?: true
}

const KEY_16 = '000102030405060708090a0b0c0d0e0f'
const KEY_32 = `${KEY_16}f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff`
const CHACHA = { key: KEY_32, nonce: '000102030405060708090a0b', rounds: 12 }
const CONSTANT = '17279655951921914625'
const flows = [
  { input: 'in', output: 'out' },
  { input: 'in2', output: 'out2' },
]
const LEFT = '192.0.2.1:5000'
const RIGHT = '192.0.2.2:5000'

export const examples: Readonly<Record<string, Example>> = {
  bandwidth_limit_constant: { config: { flows, bandwidth_limit_mbit: 5, max_queue_size: 20 } },
  bandwidth_traffic_source: { config: { output: 'out', bandwidth_mbit: 4, duration_ms: 900, seed: 1 } },
  chacha20_decrypt: {
    config: { input: 'wire', output: 'out', ...CHACHA },
    others: { encrypt: { chacha20_encrypt: { input: 'in', output: 'wire', ...CHACHA } } },
    live: { magic_constant: ['expand 16-byte k'], rounds: [20, 8] },
  },
  chacha20_encrypt: {
    config: { input: 'in', output: 'out', ...CHACHA },
    live: { magic_constant: ['expand 16-byte k'], rounds: [20, 8] },
  },
  constant_auth_sign: {
    config: { input: 'in', output: 'out', constant: CONSTANT },
    live: { constant: ['1', 2] },
  },
  constant_auth_verify: {
    config: { input: 'wire', output: 'out', constant: CONSTANT },
    others: { sign: { constant_auth_sign: { input: 'in', output: 'wire', constant: CONSTANT } } },
    live: { constant: ['1', 2] },
  },
  delay_constant: { config: { flows, delay: 30, jitter: 20, allow_reordering: true, seed: 1 } },
  flow_combiner: { config: { inputs: ['in', 'in2', 'in3'], output: 'out' } },
  gilbert_elliot_loss: {
    config: {
      input: 'in',
      output: 'out',
      good_loss_prob: 0.01,
      bad_loss_prob: 0.7,
      good_to_bad_prob: 0.1,
      bad_to_good_prob: 0.2,
      seed: 1,
    },
  },
  observer: { config: { input: 'in', output: 'out' } },
  peer_writer: {
    config: { input: 'in', output: 'out', remote_address: LEFT },
    live: { remote_address: [RIGHT, '[2001:db8::1]:9'] },
  },
  reed_solomon_decoder: {
    config: { input: 'wire', output: 'out' },
    others: { encoder: { reed_solomon_encoder: { input: 'in', output: 'wire', symbols: 4, repair: 2 } } },
  },
  reed_solomon_encoder: { config: { input: 'in', output: 'out', symbols: 4, repair: 2 } },
  splitter: { config: { input: 'in', outputs: ['out', 'out2', 'out3'] } },
  ssl_decrypt: {
    config: { input: 'wire', output: 'out', aes_128_gcm_sha_256: { key: KEY_16 } },
    others: { encrypt: { ssl_encrypt: { input: 'in', output: 'wire', aes_128_gcm_sha_256: { key: KEY_16 } } } },
  },
  ssl_encrypt: { config: { input: 'in', output: 'out', aes_128_gcm_sha_256: { key: KEY_16 } } },
  ssl_poly1305_checker: {
    config: { input: 'wire', output: 'out', shared_secret: KEY_32 },
    others: { sign: { ssl_poly1305_signer: { input: 'in', output: 'wire', shared_secret: KEY_32 } } },
  },
  ssl_poly1305_signer: { config: { input: 'in', output: 'out', shared_secret: KEY_32 } },
  throughput_tracker: { config: { input: 'in', output: 'out', interval_ms: 50 } },
  throughput_traffic_source: {
    config: { output: 'out', throughput_mbit: 2, duration_ms: 800, payload_size: 500, batch_size: 3, seed: 1 },
  },
  traffic_sink: {
    config: { input: 'probes', timeout_ms: 300 },
    others: {
      source: { uniform_traffic_source: { output: 'sent', interval: 3, total_packets: 350, seed: 1 } },
      way: { delay_constant: { flows: [{ input: 'sent', output: 'fresh' }], delay: 60, jitter: 50, seed: 1 } },
      join: { flow_combiner: { inputs: ['fresh', 'in'], output: 'probes' } },
    },
  },
  tun: {
    config: { input: 'in', output: 'out', interface_name: 'penstock9', ip: '198.51.100.1', netmask: '24' },
    endless: true,
  },
  udp: {
    endless: true,
    config: { input: 'in', output: 'out', local_address: LEFT, remote_address: RIGHT },
    others: { peer: { udp: { input: 'in2', output: 'out2', local_address: RIGHT, remote_address: LEFT } } },
  },
  udp_local: {
    endless: true,
    config: { input: 'back', output: 'heard', address: LEFT },
    others: {
      echo: { observer: { input: 'heard', output: 'back' } },
      peer: { udp: { input: 'in', output: 'out', local_address: RIGHT, remote_address: LEFT } },
    },
  },
  udp_remote: {
    endless: true,
    config: { input: 'to', output: 'out' },
    others: {
      address: { peer_writer: { input: 'in', output: 'to', remote_address: RIGHT } },
      peer: { udp: { input: 'in2', output: 'out2', local_address: RIGHT } },
    },
  },
  uniform_loss: {
    config: { input: 'in', output: 'out', loss_prob: 0.2, seed: 1 },
    from: { loss_prob: 0 },
    live: { loss_prob: [0.2, 0.5] },
  },
  uniform_traffic_source: { config: { output: 'out', interval: 2, total_packets: 300, seed: 1 } },
}
