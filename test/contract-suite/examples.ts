/** One working configuration for every available component, which the contract suite drives. */
import { fileURLToPath } from 'node:url'
import type { Pipeline } from '../harness/component.ts'

export interface Example {
  /** The component's configuration. Ends that nobody else reads or writes are fed and collected. */
  config: Record<string, unknown>
  /** What makes the packets that it expects, its encoder for one, or what stands at the other end of a socket. */
  others?: Pipeline
  /** Other values for live fields of which the suite can think of none itself, such as addresses. */
  live?: Readonly<Record<string, readonly unknown[]>>
  /** Live fields that mean something to the system's sockets only: the traffic of a simulation does not show them. */
  unseen?: readonly string[]
  /** What has to change along with a live field, by its name, where a rule joins it to others. */
  along?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** A value of a live field may end its run, by an exception too. */
  ends?: true
  /** No packet ever comes to it. */
  packetless?: true
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

const RAFT_STREAMS = [
  { stream_handle: 1, realtime_stream: { timeout: 60, delivery_policy: 'ON_ORDERED' } },
  { stream_handle: 2, transit_stream: { bonding_delay: 40, delivery_policy: 'ON_ORDERED' } },
]
const raftStreams = (name: string, changes: readonly object[] = [{}, {}]) =>
  RAFT_STREAMS.map((stream, i) => ({ input: `${name}in${i}`, output: `${name}out${i}`, ...stream, ...changes[i] }))
const raftCarriers = (inputs: string, outputs: string, changes: readonly object[] = [{}, {}]) =>
  [4, 9].map((carrier_handle, i) => ({
    input: `${inputs}${i}`,
    output: `${outputs}${i}`,
    carrier_handle,
    max_bandwidth_mbps: 3 - i,
    ...changes[i],
  }))

export const examples: Readonly<Record<string, Example>> = {
  bandwidth_constrictor: { config: { input: 'in', output: 'out', bandwidth_limit_mbit: 1, max_queue_size: 12 } },
  bandwidth_constrictor_sequencer: {
    config: {
      input: 'in',
      output: 'out',
      bandwidth_limits_mbit: [5, 1, 20],
      max_queue_sizes: [20, 4, 8],
      intervals: [120, 250, 90],
    },
    live: { max_queue_sizes: [[4, 8, 20], []] },
  },
  bandwidth_limit_constant: { config: { flows, bandwidth_limit_mbit: 5, max_queue_size: 20 } },
  bandwidth_limit_dynamic: {
    config: {
      flows,
      phases: [
        { duration: 120, bandwidth_limit_mbit: 5 },
        { duration: 250, bandwidth_limit_mbit: 1 },
      ],
      max_queue_size: 20,
    },
  },
  bandwidth_tracker: { config: { input: 'in', output: 'out', window_ms: 100, buckets: 4 } },
  bandwidth_traffic_source: {
    config: { output: 'out', bandwidth_mbit: 4, duration_ms: 900, seed: 1 },
    live: { min_packet_size: [100], max_packet_size: [1000] },
  },
  bomb: { config: { delay: 1500, poison: 'NONE' }, live: { delay: [1000, 1900] }, ends: true, packetless: true },
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
  client_id_reader: {
    config: { input: 'wire', output: 'out', client_id: 4294967295 },
    others: { writer: { client_id_writer: { input: 'in', output: 'wire', client_id: 4294967295 } } },
    live: { client_id: [0] },
  },
  client_id_writer: { config: { input: 'in', output: 'out', client_id: 7 } },
  defragmentizer: {
    config: { input: 'wire', output: 'out' },
    others: { cut: { fragmentizer: { input: 'in', output: 'wire', fragment_size: 400 } } },
  },
  delay_constant: { config: { flows, delay: 30, jitter: 20, allow_reordering: true, seed: 1 } },
  delay_dynamic: {
    config: {
      flows,
      phases: [
        { duration: 120, delay: 60, jitter: 20 },
        { duration: 250, delay: 5, jitter: 5 },
      ],
      seed: 1,
    },
  },
  delay_fixed: { config: { input: 'in', output: 'out', delay: 30 } },
  delay_fixed_sequencer: { config: { input: 'in', output: 'out', delays: [60, 5, 20], intervals: [120, 250, 90] } },
  delay_jitter: { config: { input: 'in', output: 'out', delay: 30, jitter: 20, seed: 1 } },
  flow_combiner: { config: { inputs: ['in', 'in2', 'in3'], output: 'out' } },
  flow_filter: {
    config: {
      input: 'in',
      match_output: 'out',
      mismatch_output: 'out2',
      filters: [{ conditions: [{ layer3_protocol: 'TCP' }] }],
    },
    live: {
      filters: [
        [{ conditions: [{ layer3_source_ip: '0.0.0.0/1' }] }],
        [{ conditions: [{ layer3_source_ip: '128.0.0.0/1' }, { layer3_destination_ip: '0.0.0.0/0' }] }],
        [],
      ],
    },
  },
  fragmentizer: { config: { input: 'in', output: 'out', fragment_size: 600 } },
  gate: { config: { flows, closed: false } },
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
  kodok_decoder: {
    config: { input: 'wire', output: 'out' },
    others: {
      encoder: {
        kodok_encoder: {
          input: 'in',
          output: 'wire',
          repair_configs: [
            { source_packets: 3, repair_packets: 1 },
            { source_packets: 6, repair_packets: 2 },
          ],
          timeout: 100,
        },
      },
    },
  },
  kodok_encoder: {
    config: {
      input: 'in',
      output: 'out',
      repair_configs: [
        { source_packets: 3, repair_packets: 1 },
        { source_packets: 6, repair_packets: 2 },
      ],
      timeout: 100,
    },
  },
  latency_tracker_receiver: {
    config: { input: 'wire', output: 'out', sampling_interval_ms: 100, latency_budget: 40 },
    others: {
      sender: { latency_tracker_sender: { input: 'in', output: 'sent' } },
      way: { delay_jitter: { input: 'sent', output: 'wire', delay: 30, jitter: 30, seed: 1 } },
    },
  },
  latency_tracker_sender: { config: { input: 'in', output: 'out' } },
  loss_constant: { config: { flows, loss_probability: 0.2, seed: 1 } },
  loss_dynamic: {
    config: {
      flows,
      phases: [
        { duration: 120, loss_probability: 0.1 },
        { duration: 250, loss_probability: 0.5 },
      ],
      seed: 1,
    },
  },
  loss_gilbert_elliot: {
    config: {
      flows,
      good_loss_probability: 0.01,
      bad_loss_probability: 0.7,
      good_to_bad_probability: 0.1,
      bad_to_good_probability: 0.2,
      seed: 1,
    },
  },
  loss_tracker_receiver: {
    config: { input: 'wire', output: 'out', sampling_interval_ms: 100 },
    others: {
      sender: { loss_tracker_sender: { input: 'in', output: 'sent' } },
      way: { delay_jitter: { input: 'sent', output: 'late', delay: 30, jitter: 30, seed: 1 } },
      loss: { uniform_loss: { input: 'late', output: 'wire', loss_prob: 0.1, seed: 2 } },
    },
  },
  loss_tracker_sender: { config: { input: 'in', output: 'out' } },
  notification_injector: {
    config: { flows, notification: { type: 'FLUSH', interval_ms: 100 } },
    live: { notification: [{ type: 'FLUSH', interval_ms: 70 }, { type: 'RESET' }] },
  },
  observer: { config: { input: 'in', output: 'out' } },
  parity_2d_decoder: {
    config: { input: 'wire', output: 'out' },
    others: { encoder: { parity_2d_encoder: { input: 'in', output: 'wire', columns: 3, rows: 2 } } },
  },
  parity_2d_encoder: { config: { input: 'in', output: 'out', columns: 3, rows: 2, flush_after_ms: 50 } },
  peer_router: {
    config: { ingress: { input: 'in', output: 'out' }, egress: { input: 'in2', output: 'out2' } },
  },
  peer_writer: {
    config: { input: 'in', output: 'out', remote_address: LEFT },
    live: { remote_address: [RIGHT, '[2001:db8::1]:9'] },
  },
  periodic_burst_loss: { config: { input: 'in', output: 'out', interval: 10, burst: 3 } },
  raft: {
    config: { streams: raftStreams(''), carriers: raftCarriers('come', 'go'), max_packet_bytes: 1200 },
    live: {
      streams: [
        raftStreams('', [{ realtime_stream: { timeout: 30, delivery_policy: 'ON_TIMEOUT' } }, {}]),
        raftStreams('', [{ realtime_stream: { timeout: 30 } }, {}]),
        raftStreams('', [{ realtime_stream: { timeout: 60, extension: { fixed_replication: {} } } }, {}]),
        raftStreams('', [{}, { transit_stream: { bonding_delay: 5, delivery_policy: 'ON_TIMEOUT' } }]),
        raftStreams('', [{}, { transit_stream: { bonding_delay: 5 } }]),
      ],
      carriers: [
        raftCarriers('come', 'go', [{ bandwidth_priority: 3 }, {}]),
        raftCarriers('come', 'go', [{}, { max_bandwidth_mbps: 1 }]),
        raftCarriers('come', 'go', [{}, { auto_bandwidth_estimation: true }]),
      ],
    },
    others: {
      far: { raft: { streams: raftStreams('far '), carriers: raftCarriers('to', 'from'), max_packet_bytes: 1200 } },
      to: {
        delay_constant: {
          flows: [0, 1].map((i) => ({ input: `go${i}`, output: `slow${i}` })),
          delay: 10,
          jitter: 8,
          allow_reordering: true,
          seed: 1,
        },
      },
      loss: {
        loss_constant: {
          flows: [0, 1].map((i) => ({ input: `slow${i}`, output: `to${i}` })),
          loss_probability: 0.1,
          seed: 2,
        },
      },
      from: { delay_constant: { flows: [0, 1].map((i) => ({ input: `from${i}`, output: `come${i}` })), delay: 10 } },
    },
  },
  random_burst_loss: { config: { input: 'in', output: 'out', loss_prob: 0.1, burst: 3, seed: 1 } },
  reed_solomon_decoder: {
    config: { input: 'wire', output: 'out', max_sessions: 2 },
    others: {
      encoder1: { reed_solomon_encoder: { input: 'in1', output: 'wire1', symbols: 4, repair: 2 } },
      encoder2: { reed_solomon_encoder: { input: 'in2', output: 'wire2', symbols: 4, repair: 2 } },
      together: { flow_combiner: { inputs: ['wire1', 'wire2'], output: 'wire' } },
    },
    live: { max_sessions: [1, 3] },
  },
  reed_solomon_encoder: { config: { input: 'in', output: 'out', symbols: 4, repair: 2, flush_after_ms: 50 } },
  relay_network_lookup: {
    config: { network: { input: 'wire', output: 'out' }, client: { input: 'in2', output: 'out2' }, client_id: [4, 5] },
    others: { writer: { client_id_writer: { input: 'in', output: 'wire', client_id: 5 } } },
    live: { client_id: [[5], [4], []] },
  },
  relay_routing_fabric: {
    config: { input: 'in', output: 'out', fabric_type: 'IP', routes: [{ client_id: 4294967295, route: '0.0.0.0/0' }] },
    live: {
      routes: [
        [
          { client_id: 1, route: '0.0.0.0/0' },
          { client_id: 2, route: '64.0.0.0/2' },
        ],
        [{ client_id: 3, route: '::/0' }],
        [],
      ],
    },
  },
  rlnc_decoder: {
    config: { input: 'wire', output: 'out' },
    others: { encoder: { rlnc_encoder: { input: 'in', output: 'wire', symbols: 4, repair: 2 } } },
  },
  rlnc_encoder: { config: { input: 'in', output: 'out', symbols: 4, repair: 2, flush_after_ms: 50 } },
  rely_decoder: {
    config: { input: 'wire', output: 'out', timeout: 150, release_in_order: true },
    others: {
      encoder: { rely_encoder: { input: 'in', output: 'lossy', repair_target_rate: 0.2 } },
      loss: { uniform_loss: { input: 'lossy', output: 'wire', loss_prob: 0.15 } },
    },
  },
  rely_encoder: { config: { input: 'in', output: 'out', repair_target_rate: 0.3, flush_after_ms: 30 } },
  rtp_observer: { config: { input: 'in', output: 'out' }, live: { force_offset: [0, 4] } },
  session_reader: {
    config: { input: 'wire', output: 'out' },
    others: { writer: { session_writer: { input: 'in', output: 'wire' } } },
  },
  session_writer: { config: { input: 'in', output: 'out' } },
  simulated_network: {
    endless: true,
    config: { input: 'in', output: 'out', network_name: 'lan', mtu: 1000 },
    live: { receivers: [['far'], ['near', 'far'], []] },
    others: {
      near: { simulated_network: { input: 'in2', output: 'out2', network_name: 'lan' } },
      far: { simulated_network: { input: 'in3', output: 'out3', network_name: 'lan', receivers: ['it'] } },
    },
  },
  splitter: { config: { input: 'in', outputs: ['out', 'out2', 'out3'] } },
  sporadic_traffic_source: {
    config: {
      output: 'out',
      total_packets: 300,
      min_packets: 2,
      max_packets: 6,
      min_idle: 5,
      max_idle: 20,
      min_packet_size: 40,
      max_packet_size: 60,
      seed: 1,
    },
  },
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
  tag_demux: {
    config: {
      input: 'wire',
      outputs: [
        { name: 'out', tag: -2147483648 },
        { name: 'out2', tag: 2147483647 },
      ],
    },
    others: {
      mux: {
        tag_mux: {
          inputs: [
            { name: 'in', tag: -2147483648 },
            { name: 'in2', tag: 2147483647 },
            { name: 'in3', tag: 0 },
          ],
          output: 'wire',
        },
      },
    },
    live: {
      outputs: [
        [
          { name: 'out', tag: 0 },
          { name: 'out2', tag: 2147483647 },
        ],
      ],
    },
  },
  tag_mux: {
    config: {
      inputs: [
        { name: 'in', tag: 1 },
        { name: 'in2', tag: 2 },
      ],
      output: 'out',
    },
    live: {
      inputs: [
        [
          { name: 'in', tag: 2 },
          { name: 'in2', tag: 1 },
        ],
        [
          { name: 'in', tag: 1 },
          { name: 'in2', tag: -1 },
        ],
      ],
    },
  },
  tap: {
    config: { input: 'in', output: 'out', interface_name: 'penstock9', ip: '198.51.100.1', netmask: '24' },
    endless: true,
  },
  tcp: {
    endless: true,
    config: { input: 'back', output: 'heard', listen_address: LEFT },
    others: {
      echo: { observer: { input: 'heard', output: 'back' } },
      peer: { tcp: { input: 'in', output: 'out', remote_address: LEFT } },
    },
  },
  throughput_tracker: { config: { input: 'in', output: 'out', interval_ms: 50 } },
  throughput_traffic_source: {
    config: { output: 'out', throughput_mbit: 0.4, duration_ms: 900, payload_size: 60, batch_size: 3, seed: 1 },
  },
  timed_burst_loss: {
    config: { input: 'in', output: 'out', interval_ms: 80, burst_packets: 40, cancel_timer_ms: 100 },
    live: { burst_duration_ms: [30, 200] },
    along: { burst_duration_ms: { burst_packets: 0, cancel_timer_ms: 0 } },
  },
  trace_traffic_source: {
    config: {
      output: 'out',
      trace_file: fileURLToPath(new URL('trace.csv', import.meta.url)),
      loops: 3,
      loop_delay: 100,
      seed: 1,
    },
    live: { loops: [1, 2, 4], loop_delay: [0, 40] },
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
    config: { input: 'back', output: 'heard', local_address: LEFT },
    others: {
      echo: { observer: { input: 'heard', output: 'back' } },
      peer: { udp: { input: 'in', output: 'out', local_address: RIGHT, remote_address: LEFT } },
      other: { udp: { input: 'in2', output: 'out2', local_address: '192.0.2.3:5000', remote_address: LEFT } },
    },
    live: { socket_buffer_size: [65_536], multicast_ttl: [3] },
    unseen: ['socket_buffer_size', 'multicast_ttl'],
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
  uniform_loss: { config: { input: 'in', output: 'out', loss_prob: 0.2, seed: 1 } },
  uniform_loss_sequencer: {
    config: { input: 'in', output: 'out', loss_probs: [0.1, 0.5, 0], intervals: [120, 250, 90], seed: 1 },
  },
  unix_socket: {
    endless: true,
    config: { input: 'back', output: 'heard', server: { listen_address: '@penstock.example' } },
    others: {
      echo: { observer: { input: 'heard', output: 'back' } },
      peer: {
        unix_socket: {
          input: 'in',
          output: 'out',
          client: { server_address: '@penstock.example', bind_address: 7 },
        },
      },
    },
  },
  uniform_traffic_source: {
    config: { output: 'out', interval: 5, total_packets: 300, seed: 1 },
    live: { min_packet_size: [100], max_packet_size: [1000] },
  },
  video_traffic_source: {
    config: {
      output: 'out',
      fps: 50,
      p_frames: 4,
      total_packets: 300,
      min_packet_size: 40,
      max_packet_size: 60,
      seed: 1,
    },
  },
}
