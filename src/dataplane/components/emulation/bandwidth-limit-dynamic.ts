/** bandwidth_limit_dynamic: a link with a queue in front, whose bandwidth changes in phases. */
import { type Static, Type } from '@sinclair/typebox'
import type { Batch } from '../../engine/batch.ts'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { gauge } from '../../engine/metrics.ts'
import { List, Megabits, Milliseconds, Optional, Uint32 } from '../../engine/schema.ts'
import { Flows } from './flows.ts'
import { type LinkPhase, PhasedLink } from './phased-link.ts'
import { LINK_DETAILS, linkMetrics, QUEUE_TEXT, queueLimit } from './serial-link.ts'

const config = Type.Object({
  flows: Flows(),
  phases: List(
    Type.Object({
      duration: Milliseconds('How long the phase lasts.', { minimum: 1 }),
      bandwidth_limit_mbit: Megabits('Bandwidth of the link in this phase.'),
    }),
    'Phases, in a loop.',
  ),
  max_queue_size: Optional(Uint32(QUEUE_TEXT, { unit: 'packets' })),
})

const phasesOf = (given: Static<typeof config>): LinkPhase[] =>
  given.phases.map(({ duration, bandwidth_limit_mbit }) => ({
    duration: duration * NS_PER_MS,
    mbit: bandwidth_limit_mbit,
  }))

export const bandwidthLimitDynamic = defineComponent({
  key: 'bandwidth_limit_dynamic',
  family: 'emulation',
  summary: 'Sends packets one after the other at a bandwidth that changes in phases; a queue holds what waits.',
  details:
    'The first phase begins when the run does, and after the last comes the first again; changed phases begin at the first. All ' +
    `flows share one link and one queue. ${LINK_DETAILS}`,
  config,
  metrics: { ...linkMetrics, phase: gauge('Index of the phase that holds, from 0.') },
  live: ['phases', 'max_queue_size'],
  create(given, context) {
    const { outlets, metrics, packets } = context
    const outputs = outlets.flows.map(({ output }) => output)
    const limit = queueLimit(given.max_queue_size, packets)
    const phased = new PhasedLink(context, phasesOf(given), true, outputs, metrics.queue_full_packets, limit)
    const { link } = phased
    return {
      flows: given.flows.map((_, flow) => ({ input: (batch: Batch) => phased.take(batch, flow) })),
      notify: (notification, input) => link.notify(notification, input[1] as number),
      observe() {
        metrics.queued_packets.set(link.held)
        metrics.phase.set(phased.index)
      },
      reconfigure(next) {
        phased.change(phasesOf(next), true)
        link.limit = queueLimit(next.max_queue_size, packets)
      },
      stop: () => metrics.held_at_end_packets.add(link.stop()),
    }
  },
})
