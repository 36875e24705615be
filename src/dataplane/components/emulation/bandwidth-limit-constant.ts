/** bandwidth_limit_constant: a link of constant bandwidth with a queue in front. */
import { Type } from '@sinclair/typebox'
import type { Batch } from '../../engine/batch.ts'
import { defineComponent } from '../../engine/component.ts'
import { held, heldAtEnd, queueDrop } from '../../engine/metrics.ts'
import { Megabits, Optional, Uint32 } from '../../engine/schema.ts'
import { Flows } from './flows.ts'
import { SerialLink } from './serial-link.ts'

/** One link that is too slow for what comes takes this part of the run's slots, so that the others are not starved of them. */
const DEFAULT_SHARE = 1 / 4

export const bandwidthLimitConstant = defineComponent({
  key: 'bandwidth_limit_constant',
  family: 'emulation',
  summary: 'Sends packets one after the other at a bandwidth; a queue holds what waits, the rest is dropped.',
  details:
    'A packet leaves when its last bit has crossed the link. All flows share one link and one queue. The rate counts the ' +
    'bytes of the packets as they are here. A run has 131,072 packet slots, fewer where a component brings in packets over some 7,900 bytes.',
  config: Type.Object({
    flows: Flows(),
    bandwidth_limit_mbit: Megabits('Bandwidth of the link.'),
    max_queue_size: Optional(
      Uint32('Packets that wait while one is on the link; 0: none. Unset: a quarter of the packet slots of the run.', {
        unit: 'packets',
      }),
    ),
  }),
  metrics: {
    queued_packets: held('Packets on the link or waiting for it.'),
    queue_full_packets: queueDrop('Packets dropped because the queue was full.'),
    held_at_end_packets: heldAtEnd(),
  },
  live: ['bandwidth_limit_mbit', 'max_queue_size'],
  create(config, context) {
    const { outlets, metrics, packets } = context
    const limitOf = (given: typeof config): number => given.max_queue_size ?? Math.floor(packets.slots * DEFAULT_SHARE)
    const link = new SerialLink(
      context,
      outlets.flows.map(({ output }) => output),
      metrics.queue_full_packets,
      config.bandwidth_limit_mbit,
      limitOf(config),
    )
    return {
      flows: config.flows.map((_, flow) => ({ input: (batch: Batch) => link.take(batch, flow) })),
      notify: (notification, input) => link.notify(notification, input[1] as number),
      observe() {
        metrics.queued_packets.set(link.held)
      },
      reconfigure(next) {
        link.limit = limitOf(next)
        link.setBandwidth(next.bandwidth_limit_mbit)
      },
      stop: () => metrics.held_at_end_packets.add(link.stop()),
    }
  },
})
