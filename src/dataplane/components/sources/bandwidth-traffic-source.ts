/** bandwidth_traffic_source: packets of random sizes, paced so that their bytes give a constant rate. */
import { Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { Megabits, Milliseconds, Optional, Output, Seed } from '../../engine/schema.ts'
import { checkSizes, sizeFields, sizesOf, sourceMetrics } from './generator.ts'
import { nsPerByte, type Pace, Paced, RATES } from './paced.ts'

const paceOf = ({ bandwidth_mbit, duration_ms }: { bandwidth_mbit: number; duration_ms: number }): Pace => ({
  perPacket: 0,
  perByte: nsPerByte(bandwidth_mbit),
  group: 1,
  duration: duration_ms * NS_PER_MS,
})

export const bandwidthTrafficSource = defineComponent({
  key: 'bandwidth_traffic_source',
  family: 'sources',
  summary: 'Sends probe packets of random sizes, paced smoothly to a bandwidth.',
  details: `After each packet comes the time that its bytes take at the bandwidth asked for. ${RATES}`,
  config: Type.Object({
    output: Output(),
    bandwidth_mbit: Megabits('Bandwidth to send at.'),
    duration_ms: Milliseconds('How long to send; 0: no limit.', { default: 0 }),
    ...sizeFields,
    seed: Optional(Seed('u32')),
  }),
  metrics: sourceMetrics,
  live: ['bandwidth_mbit', 'duration_ms', 'min_packet_size', 'max_packet_size'],
  mtu: (config) => sizesOf(config).largest,
  check: checkSizes,
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
