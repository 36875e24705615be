/** uniform_traffic_source: one packet every interval, or as fast as the graph takes them. */
import { Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { Milliseconds, Optional, Output, Seed, Uint32 } from '../../engine/schema.ts'
import { checkSizes, sizeFields, sizesOf, sourceMetrics } from './generator.ts'
import { type Pace, Paced } from './paced.ts'

const paceOf = ({ interval }: { interval: number }): Pace => ({
  perPacket: interval * NS_PER_MS,
  perByte: 0,
  group: 1,
  duration: 0,
})

export const uniformTrafficSource = defineComponent({
  key: 'uniform_traffic_source',
  family: 'sources',
  summary: 'Sends one probe packet every interval, or as many as the graph takes.',
  details:
    'Sizes are uniform between the smallest and the largest. Payloads start with a probe header (see wire formats) that ' +
    'traffic_sink measures by.',
  config: Type.Object({
    output: Output(),
    total_packets: Uint32('How many packets to send; 0: no limit.', { default: 0, unit: 'packets' }),
    interval: Milliseconds('Time between packets; 0: as fast as the graph takes them.', { default: 0 }),
    ...sizeFields,
    seed: Optional(Seed('u32')),
  }),
  metrics: sourceMetrics,
  live: ['total_packets', 'interval', 'min_packet_size', 'max_packet_size'],
  mtu: (config) => sizesOf(config).largest,
  check: checkSizes,
  create(config, context) {
    const random = context.random(config.seed)
    const generator = new Paced(context, random, sizesOf(config), config.total_packets, paceOf(config))
    return {
      active: () => generator.active,
      reconfigure(next) {
        generator.adjust(sizesOf(next), next.total_packets)
        generator.changePace(paceOf(next))
      },
      stop: () => generator.stop(),
    }
  },
})
