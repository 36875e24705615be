/** raft: carries streams of packets over several paths at once, repairs what they lose, and survives the loss of one. */
import type { Static } from '@sinclair/typebox'
import type { Batch } from '../../engine/batch.ts'
import { defineComponent } from '../../engine/component.ts'
import { CARRIER_METRICS, RAFT_METRICS, STREAM_METRICS } from './metrics.ts'
import { REPAIR_HEADER_BYTES, SYMBOL_HEADER_BYTES } from './packet.ts'
import { carrierSettings, packetBytes, pieceBytes, RaftConfig, raftFaults, streamSettings } from './settings.ts'
import { Transport, type TransportSettings } from './transport.ts'

/** Longest packet that is put together of pieces, bytes, where nothing else in the run has longer ones. */
const MAX_JOINED_PACKET = 9_216

const settingsOf = (config: Static<typeof RaftConfig>): TransportSettings => ({
  streams: config.streams.map(streamSettings),
  carriers: config.carriers.map(carrierSettings),
  packetBytes: packetBytes(config),
  pieceBytes: pieceBytes(config),
})

export const raft = defineComponent({
  key: 'raft',
  family: 'multipath',
  summary: 'Carries packets over several paths at once, as one that loses less and does not end when one of them does.',
  details: 'Both ends number streams and carriers with the same handles.',
  config: RaftConfig,
  metrics: RAFT_METRICS,
  entryMetrics: { carriers: CARRIER_METRICS, streams: STREAM_METRICS },
  live: ['streams', 'carriers'],
  decoupled: true,
  alters: true,
  room: () => ({ front: REPAIR_HEADER_BYTES + SYMBOL_HEADER_BYTES, back: 0 }),
  mtu: (config) => Math.max(MAX_JOINED_PACKET, packetBytes(config)),
  check: raftFaults,
  create(config, context) {
    const { outlets, metrics, entryMetrics } = context
    const transport = new Transport(
      {
        packets: context.packets,
        clock: context.clock,
        metrics,
        log: context.log,
        streamOutlets: config.streams.map((_, i) => outlets.streams[i]?.output ?? null),
        carrierOutlets: outlets.carriers.map(({ output }) => output),
        streamMetrics: entryMetrics.streams,
        carrierMetrics: entryMetrics.carriers,
        entropy: (bytes) => context.entropy(bytes),
        memory: () => context.memory(),
        timer: (fire) => context.timer(fire),
      },
      settingsOf(config),
    )
    return {
      streams: config.streams.map((_, i) => ({ input: (batch: Batch) => transport.takeStream(batch, i) })),
      carriers: config.carriers.map((_, i) => ({ input: (batch: Batch) => transport.takeCarrier(batch, i) })),
      reconfigure: (next) => transport.reconfigure(settingsOf(next)),
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
