/** bandwidth_traffic_source: packets of random sizes, paced so that their bytes give a constant rate. */
import { Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { Megabits, Milliseconds, Optional, Output, Seed } from '../../engine/schema.ts'
import { checkSizes, nsPerByte, Paced, RATES, sizeFields, sizesOf, sourceMetrics } from './generator.ts'

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
  live: ['bandwidth_mbit'],
  mtu: (config) => sizesOf(config).largest,
  check: checkSizes,
  create(config, context) {
    const generator = new Paced(context, context.random(config.seed), sizesOf(config), 0, {
      perPacket: 0,
      perByte: nsPerByte(config.bandwidth_mbit),
      group: 1,
      duration: config.duration_ms * NS_PER_MS,
    })
    return {
      active: () => generator.active,
      reconfigure(next) {
        generator.pace.perByte = nsPerByte(next.bandwidth_mbit)
      },
      stop: () => generator.stop(),
    }
  },
})
