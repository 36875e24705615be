/** bandwidth_limit_constant: a link of constant bandwidth with a queue in front. */
import { Type } from '@sinclair/typebox'
import type { Batch } from '../../engine/batch.ts'
import { defineComponent } from '../../engine/component.ts'
import { Megabits, Optional, Uint32 } from '../../engine/schema.ts'
import { Flows } from './flows.ts'
import { LINK_DETAILS, linkMetrics, QUEUE_TEXT, queueLimit, SerialLink } from './serial-link.ts'

export const bandwidthLimitConstant = defineComponent({
  key: 'bandwidth_limit_constant',
  family: 'emulation',
  summary: 'Sends packets one after the other at a bandwidth; a queue holds what waits, the rest is dropped.',
  details: `All flows share one link and one queue. ${LINK_DETAILS}`,
  config: Type.Object({
    flows: Flows(),
    bandwidth_limit_mbit: Megabits('Bandwidth of the link.'),
    max_queue_size: Optional(Uint32(QUEUE_TEXT, { unit: 'packets' })),
  }),
  metrics: linkMetrics,
  live: ['bandwidth_limit_mbit', 'max_queue_size'],
  create(config, context) {
    const { outlets, metrics, packets } = context
    const link = new SerialLink(
      context,
      outlets.flows.map(({ output }) => output),
      metrics.queue_full_packets,
      config.bandwidth_limit_mbit,
      queueLimit(config.max_queue_size, packets),
    )
    return {
      flows: config.flows.map((_, flow) => ({ input: (batch: Batch) => link.take(batch, flow) })),
      notify: (notification, input) => link.notify(notification, input[1] as number),
      observe: () => metrics.queued_packets.set(link.held),
      reconfigure(next) {
        link.setBandwidth(next.bandwidth_limit_mbit)
        link.limit = queueLimit(next.max_queue_size, packets)
      },
      stop: () => metrics.held_at_end_packets.add(link.stop()),
    }
  },
})
