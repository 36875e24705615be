/** uniform_traffic_source: one packet every interval, or as fast as the graph takes them. */
import { Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { Milliseconds, Optional, Output, Seed, Uint32 } from '../../engine/schema.ts'
import { checkSizes, Flood, Paced, sizeFields, sizesOf, sourceMetrics } from './generator.ts'

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
  mtu: (config) => sizesOf(config).largest,
  check: checkSizes,
  create(config, context) {
    const random = context.random(config.seed)
    const { total_packets: total, interval } = config
    const generator =
      interval === 0
        ? new Flood(context, random, sizesOf(config), total)
        : new Paced(context, random, sizesOf(config), total, {
            perPacket: interval * NS_PER_MS,
            perByte: 0,
            group: 1,
            duration: 0,
          })
    return { active: () => generator.active, stop: () => generator.stop() }
  },
})
