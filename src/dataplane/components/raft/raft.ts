/** raft: carries streams of packets over several paths at once, repairs what they lose, and survives the loss of one. */
import type { Static } from '@sinclair/typebox'
import type { Batch } from '../../engine/batch.ts'
import { defineComponent } from '../../engine/component.ts'
import { CARRIER_METRICS, RAFT_METRICS, STREAM_METRICS } from './metrics.ts'
import { REPAIR_HEADER_BYTES, SYMBOL_HEADER_BYTES } from './packet.ts'
import {
  carrierSettings,
  MAX_JOINED_PACKET,
  packetBytes,
  pieceBytes,
  RaftConfig,
  raftFaults,
  raftWarnings,
  streamSettings,
} from './settings.ts'
import { Transport, type TransportSettings } from './transport.ts'

const settingsOf = (config: Static<typeof RaftConfig>, bytes: number): TransportSettings => ({
  streams: config.streams.map(streamSettings),
  carriers: config.carriers.map(carrierSettings),
  packetBytes: bytes,
  pieceBytes: pieceBytes(bytes),
})

export const raft = defineComponent({
  key: 'raft',
  family: 'multipath',
  summary: 'Carries packets over several paths at once, as one that loses less and does not end when one of them does.',
  details:
    'Both ends have the same streams and carriers, known by their handles (see wire formats). A packet of a stream goes on one carrier: of those ' +
    'with room the one of the highest priority, of equal ones in proportion to their room; a carrier without max_bandwidth_mbps and ' +
    'auto_bandwidth_estimation always has room. What is lost is repaired by sliding-window repair packets, as many as the loss measured asks for (of a transit stream that has time to send again twice only while the carriers, which must have a limit or be measured, have room left), ' +
    'and sent again while there is time, of equal carriers on the one where it is there soonest on average, what was lost twice on all of them: it is little, and much waits for it. What has no time for either is given up. A stream with ' +
    'fixed_replication has neither: every packet of it goes on every carrier. Payloads longer than max_packet_bytes less 36 go in pieces.\n\n' +
    'A realtime packet is useful for its timeout, counted from when it came in, on top of the least time that any packet took in the last minute. ' +
    'When the machine of the other end was suspended, its clock stood still and all seems late: that is found out within 5 s of packets where it was for more than a second, a round trip and the timeout, at once after more than 70 s, else in a minute. A transit ' +
    'stream holds packets that came out of order until those before them are there, but for bonding_delay at most; what comes after ' +
    'that is handed over as it is. When one would wait to be sent for longer than 100 ms, by what the carriers are measured to deliver, it and all that come until the queue has drained to 30 ms are ' +
    'dropped: TCP slows down, learns of it within a round trip, and what it sends again finds room. In a burst that has not lasted ' +
    '200 ms yet that is 200 ms: when a packet that was missing comes, all that it held up is acknowledged at once, and TCP sends as much. When a carrier is left the queue is longer than before for ' +
    'the others; nothing in it is dropped before it has waited for 400 ms.\n\n' +
    'A carrier is left when what was sent on it is not reported for 1.5 round trips (of one that has not answered yet 200 ms each) and a report interval, 60 ms at least, though a report came since that should tell of it (60 ms ' +
    'later if none did), and that is more than is hardly ever lost in a row; what is unreported goes again on others. Every 100 ms a probe asks whether it is back; after three answers it is ' +
    'used again. The last one in use is not left, since nothing is known to be better, nor is any before the other end is heard.\n\n' +
    'Nothing is authenticated: put ssl_encrypt and ssl_decrypt on each carrier where others can write to the path. Unless max_packet_bytes is set, room is left for what they add.\n\n' +
    'Endpoints drop what is longer than their own MTU in both directions: a path has to have the same at both ends, or both a max_packet_bytes of the lesser.',
  config: RaftConfig,
  metrics: RAFT_METRICS,
  entryMetrics: { carriers: CARRIER_METRICS, streams: STREAM_METRICS },
  live: ['streams', 'carriers'],
  fixed: ['streams[].stream_handle', 'carriers[].carrier_handle'],
  decoupled: true,
  alters: true,
  room: () => ({ front: REPAIR_HEADER_BYTES + SYMBOL_HEADER_BYTES, back: 0 }),
  mtu: ({ max_packet_bytes = 0 }) => Math.max(MAX_JOINED_PACKET, max_packet_bytes),
  check: raftFaults,
  warn: (config, { longestFrom }) => raftWarnings(config, longestFrom),
  create(config, context) {
    const { outlets, metrics, entryMetrics } = context
    const bytes = packetBytes(config, (output) => context.longestFrom(output))
    const transport = new Transport(
      {
        packets: context.packets,
        clock: context.clock,
        metrics,
        log: context.log,
        streamOutlets: config.streams.map((_, i) => outlets.streams?.[i]?.output ?? null),
        carrierOutlets: outlets.carriers.map(({ output }) => output),
        streamMetrics: entryMetrics.streams,
        carrierMetrics: entryMetrics.carriers,
        entropy: (bytes) => context.entropy(bytes),
        memory: () => context.memory(),
        timer: (fire) => context.timer(fire),
      },
      settingsOf(config, bytes),
    )
    return {
      streams: config.streams.map((_, i) => ({ input: (batch: Batch) => transport.takeStream(batch, i) })),
      carriers: config.carriers.map((_, i) => ({ input: (batch: Batch) => transport.takeCarrier(batch, i) })),
      reconfigure: (next) => transport.reconfigure(settingsOf(next, bytes)),
      observe() {
        transport.observe()
        metrics.held_packets.set(transport.held)
      },
      stop() {
        metrics.held_at_end_packets.add(transport.stop())
        metrics.held_packets.set(0)
      },
    }
  },
})
