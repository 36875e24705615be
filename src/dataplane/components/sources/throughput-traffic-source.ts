/** throughput_traffic_source: packets of one size at a constant rate, in groups. */
import { type Static, Type } from '@sinclair/typebox'
import { BATCH_CAPACITY } from '../../engine/batch.ts'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { Megabits, Milliseconds, Optional, Output, Seed, Uint32, ZERO_UNSET } from '../../engine/schema.ts'
import { MAX_PACKET, type Sizes, sourceMetrics } from './generator.ts'
import { nsPerByte, type Pace, Paced, RATES } from './paced.ts'
import { PROBE_BYTES } from './probe.ts'

const Config = Type.Object({
  output: Output(),
  throughput_mbit: Megabits('Rate to send at.'),
  duration_ms: Milliseconds('How long to send; 0: no limit.', { default: 0 }),
  payload_size: Uint32('Size of every packet, of which the probe header is 32.', {
    minimum: PROBE_BYTES,
    maximum: MAX_PACKET,
    unit: 'bytes',
  }),
  seed: Optional(Seed('u32')),
  batch_size: Uint32('Packets sent back to back, at most as many as the graph takes in one batch.', {
    default: 1,
    minimum: 1,
    maximum: BATCH_CAPACITY,
    unit: 'packets',
    ...ZERO_UNSET,
  }),
})
type ThroughputConfig = Static<typeof Config>

const sizesOf = ({ payload_size: size }: ThroughputConfig): Sizes => ({ smallest: size, largest: size })

const paceOf = (config: ThroughputConfig): Pace => ({
  perPacket: 0,
  perByte: nsPerByte(config.throughput_mbit),
  group: config.batch_size,
  duration: config.duration_ms * NS_PER_MS,
})

export const throughputTrafficSource = defineComponent({
  key: 'throughput_traffic_source',
  family: 'sources',
  summary: 'Sends probe packets of one size, paced to a rate, in groups of batch_size.',
  details:
    'The rate counts the bytes of the packets, not those of headers that later components add. Of the last group goes out what has its ' +
    `turn before duration_ms is over. ${RATES}`,
  config: Config,
  metrics: sourceMetrics,
  live: ['throughput_mbit', 'duration_ms', 'payload_size', 'batch_size'],
  mtu: (config) => config.payload_size,
  create(config, context) {
    const random = context.random(config.seed)
    const generator = new Paced(context, random, sizesOf(config), 0, paceOf(config))
    return {
      active: () => generator.active,
      reconfigure(next) {
        generator.adjust(sizesOf(next), 0)
        generator.changePace(paceOf(next))
      },
      stop: () => generator.stop(),
    }
  },
})
