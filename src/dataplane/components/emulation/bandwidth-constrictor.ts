/** bandwidth_constrictor: a link of constant bandwidth with a queue in front, for one flow. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { Input, Int32, Megabits, Optional, Output } from '../../engine/schema.ts'
import { LINK_DETAILS, linkMetrics, QUEUE_TEXT, queueLimit, SerialLink } from './serial-link.ts'

export const bandwidthConstrictor = defineComponent({
  key: 'bandwidth_constrictor',
  family: 'emulation',
  summary: 'Sends packets one after the other at a bandwidth; a queue holds what waits, the rest is dropped.',
  details: LINK_DETAILS,
  config: Type.Object({
    input: Input(),
    output: Output(),
    bandwidth_limit_mbit: Megabits('Bandwidth of the link.', { proto: 'float' }),
    max_queue_size: Optional(Int32(QUEUE_TEXT, { minimum: 0, unit: 'packets' })),
  }),
  metrics: linkMetrics,
  live: ['bandwidth_limit_mbit', 'max_queue_size'],
  create(config, context) {
    const { outlets, metrics, packets } = context
    const link = new SerialLink(
      context,
      [outlets.output],
      metrics.queue_full_packets,
      config.bandwidth_limit_mbit,
      queueLimit(config.max_queue_size, packets),
    )
    return {
      input: (batch) => link.take(batch, 0),
      notify: (notification) => link.notify(notification, 0),
      observe: () => metrics.queued_packets.set(link.held),
      reconfigure(next) {
        link.setBandwidth(next.bandwidth_limit_mbit)
        link.limit = queueLimit(next.max_queue_size, packets)
      },
      stop: () => metrics.held_at_end_packets.add(link.stop()),
    }
  },
})
