/** A configuration for each component that shows it at work: in the component reference, and of `penstock components KEY --example`. */
import { components } from '../dataplane/components/registry.ts'
import type { AnyComponent } from '../dataplane/engine/component.ts'
import { portsOf } from '../dataplane/engine/ports.ts'
import type { SchemaNode } from '../dataplane/engine/schema.ts'

const KEY_16 = '000102030405060708090a0b0c0d0e0f'
const CHACHA = { magic_constant: 'expand 32-byte k', nonce: '000102030405060708090a0b', rounds: 20 }

/** Values in examples that say more than what the schema alone would give. */
const VALUES: Record<string, Record<string, unknown>> = {
  raft: {
    streams: [
      { input: 'stream_1_in', output: 'stream_1_out', stream_handle: 1, realtime_stream: { timeout: 100 } },
      { input: 'stream_2_in', output: 'stream_2_out', stream_handle: 2, transit_stream: { bonding_delay: 50 } },
    ],
    carriers: [
      { input: 'carrier_1_in', output: 'carrier_1_out', carrier_handle: 1, bandwidth_priority: 1 },
      { input: 'carrier_2_in', output: 'carrier_2_out', carrier_handle: 2, max_bandwidth_mbps: 10 },
    ],
  },
  bandwidth_constrictor: { bandwidth_limit_mbit: 10, max_queue_size: 100 },
  bandwidth_constrictor_sequencer: {
    bandwidth_limits_mbit: [10, 2],
    max_queue_sizes: [100, 20],
    intervals: [5000, 1000],
  },
  bandwidth_limit_dynamic: {
    phases: [
      { duration: 5000, bandwidth_limit_mbit: 10 },
      { duration: 1000, bandwidth_limit_mbit: 2 },
    ],
    max_queue_size: 100,
  },
  bandwidth_limit_constant: { bandwidth_limit_mbit: 10, max_queue_size: 100 },
  chacha20_decrypt: CHACHA,
  chacha20_encrypt: CHACHA,
  constant_auth_sign: { constant: '17279655951921914625' },
  constant_auth_verify: { constant: '17279655951921914625' },
  bomb: { delay: 5000, poison: 'THROW_EXCEPTION' },
  client_id_reader: { client_id: 1 },
  client_id_writer: { client_id: 1 },
  delay_constant: { delay: 40 },
  delay_dynamic: {
    phases: [
      { duration: 5000, delay: 40, jitter: 5 },
      { duration: 1000, delay: 250, jitter: 50 },
    ],
  },
  delay_fixed: { delay: 40 },
  delay_fixed_sequencer: { delays: [40, 250], intervals: [5000, 1000] },
  delay_jitter: { delay: 40, jitter: 10 },
  flow_filter: { filters: [{ conditions: [{ layer3_protocol: 'UDP', layer4_destination_port: 5004 }] }] },
  gilbert_elliot_loss: {
    good_loss_prob: 0.001,
    bad_loss_prob: 0.5,
    good_to_bad_prob: 0.01,
    bad_to_good_prob: 0.2,
    seed: 7,
  },
  kodok_encoder: {
    repair_configs: [
      { source_packets: 4, repair_packets: 1 },
      { source_packets: 12, repair_packets: 2 },
    ],
    timeout: 30,
  },
  latency_tracker_receiver: { input: 'stamped' },
  latency_tracker_sender: { output: 'stamped' },
  loss_constant: { loss_probability: 0.05 },
  loss_dynamic: {
    phases: [
      { duration: 5000, loss_probability: 0.01 },
      { duration: 1000, loss_probability: 0.3 },
    ],
  },
  loss_gilbert_elliot: {
    good_loss_probability: 0.001,
    bad_loss_probability: 0.5,
    good_to_bad_probability: 0.01,
    bad_to_good_probability: 0.2,
  },
  notification_injector: { notification: { type: 'FLUSH', interval_ms: 100 } },
  parity_2d_encoder: { columns: 8, rows: 4, flush_after_ms: 8 },
  peer_writer: { remote_address: '192.0.2.1:5000' },
  periodic_burst_loss: { interval: 100, burst: 5 },
  random_burst_loss: { loss_prob: 0.01, burst: 5 },
  reed_solomon_encoder: { symbols: 8, repair: 2 },
  rely_encoder: { repair_target_rate: 0.1 },
  relay_network_lookup: { client_id: [1, 2] },
  relay_routing_fabric: {
    routes: [
      { client_id: 1, route: '10.1.0.0/16' },
      { client_id: 2, route: '2001:db8:2::/48' },
    ],
  },
  rlnc_encoder: { symbols: 16, repair: 4, flush_after_ms: 8 },
  simulated_network: { network_name: 'lan' },
  sporadic_traffic_source: { min_packets: 2, max_packets: 20, min_idle: 10, max_idle: 500 },
  ssl_decrypt: { aes_128_gcm_sha_256: { key: KEY_16 } },
  ssl_encrypt: { aes_128_gcm_sha_256: { key: KEY_16 } },
  timed_burst_loss: { interval_ms: 2000, burst_packets: 10, cancel_timer_ms: 500 },
  tag_demux: {
    outputs: [
      { name: 'voice', tag: 1 },
      { name: 'data', tag: 2 },
    ],
  },
  tag_mux: {
    inputs: [
      { name: 'voice', tag: 1 },
      { name: 'data', tag: 2 },
    ],
  },
  trace_traffic_source: { trace_file: 'capture.pcap' },
  tap: { interface_name: 'pen0', ip: '10.9.0.1', netmask: '255.255.255.0' },
  tcp: { listen_address: '127.0.0.1:8080', application_facing: true },
  tun: { interface_name: 'pen0', ip: '10.9.0.1', netmask: '255.255.255.0' },
  udp: { local_address: '0.0.0.0:5000', remote_address: '192.0.2.1:5000' },
  udp_local: { address: '0.0.0.0:5000' },
  unix_socket: { server: { listen_address: '/tmp/penstock-packets.sock' } },
  uniform_loss: { loss_prob: 0.05 },
  uniform_loss_sequencer: { loss_probs: [0.01, 0.3], intervals: [5000, 1000] },
  uniform_traffic_source: { total_packets: 1000, interval: 10, min_packet_size: 64, max_packet_size: 1200 },
  video_traffic_source: { fps: 30, p_frames: 29 },
}

/** What a component does nothing without. */
const OTHERS: Record<string, Record<string, Record<string, object>>> = {
  latency_tracker_receiver: { sender: { latency_tracker_sender: { input: 'in', output: 'stamped' } } },
  latency_tracker_sender: { receiver: { latency_tracker_receiver: { input: 'stamped', output: 'out' } } },
}

/** A plausible value of a required field. */
function sample(node: SchemaNode, port: string): unknown {
  if (node.port) return port
  if (node.properties) return sampleObject(node, port)
  if (node.type === 'array') return [1, 2].map((i) => sample(node.items as SchemaNode, `${port}_${i}`))
  if (node.enumeration) return Object.keys(node.enumeration)[0]
  if (node.type === 'boolean') return false
  if (node.type === 'string') {
    const texts: Record<string, string> = {
      'socket-address': '192.0.2.1:5000',
      ip: '192.0.2.1',
      'key-16': '00'.repeat(16),
      'key-32': '00'.repeat(32),
    }
    return texts[node.format ?? ''] ?? 'text'
  }
  const typical: Record<string, number> = { probability: 0.05, ms: 10, bytes: 1500, 'Mbit/s': 10 }
  const value = typical[node.unit ?? ''] ?? 8
  return Math.min(Math.max(value, node.minimum ?? value), node.maximum ?? value)
}

function containsPort(node: SchemaNode): boolean {
  return Boolean(
    node.port || Object.values(node.properties ?? {}).some(containsPort) || (node.items && containsPort(node.items)),
  )
}

function sampleObject(node: SchemaNode, prefix: string): Record<string, unknown> {
  const result: Record<string, unknown> = {}
  for (const [name, child] of Object.entries(node.properties ?? {})) {
    if (!containsPort(child) && !node.required?.includes(name)) continue
    const port = name
      .replace(/^input/, 'in')
      .replace(/^output/, 'out')
      .replace(/s$/, '')
    result[name] = sample(child, prefix ? `${prefix}_${port}` : port)
  }
  return result
}

/**
 * A whole pipeline configuration around one component: a source before every input, a sink behind every output. `files` are values of
 * fields that name a file, where others than made-up ones are wanted.
 */
export function exampleOf(definition: AnyComponent, files: Readonly<Record<string, string>> = {}): unknown {
  const config: Record<string, unknown> = {
    ...sampleObject(definition.config as SchemaNode, ''),
    ...VALUES[definition.key],
  }
  for (const [field, file] of Object.entries(files)) if (field in config) config[field] = file
  const others = OTHERS[definition.key] ?? {}
  const parts = { ...others, [definition.key]: { [definition.key]: config } }
  const before: Record<string, unknown> = {}
  const behind: Record<string, unknown> = {}
  const ports = Object.values(parts).flatMap((part) =>
    Object.entries(part).flatMap(([key, own]) =>
      portsOf(key, (components.get(key) as AnyComponent).config, own as Record<string, unknown>),
    ),
  )
  for (const { kind, name } of ports) {
    if (ports.some((other) => other.name === name && other.kind !== kind)) continue
    if (kind === 'input') {
      before[`source_${name}`] = { uniform_traffic_source: { output: name, total_packets: 1000, interval: 10 } }
    } else behind[`sink_${name}`] = { traffic_sink: { input: name, mtu: 1500 } }
  }
  return { version: 1, engine_config: { pipeline: { ...before, ...parts, ...behind } } }
}
