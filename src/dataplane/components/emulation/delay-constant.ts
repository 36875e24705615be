/** delay_constant: holds every packet for a delay, with jitter when asked. */
import { Type } from '@sinclair/typebox'
import type { Batch } from '../../engine/batch.ts'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { Bool, Milliseconds, Optional, Seed } from '../../engine/schema.ts'
import { DelayLines, type DelayModel, delayMetrics, NEVER_EARLY } from './delay-line.ts'
import { Flows } from './flows.ts'

export const delayConstant = defineComponent({
  key: 'delay_constant',
  family: 'emulation',
  summary: 'Holds every packet for a delay, give or take a jitter.',
  details:
    'Jitter is uniform in ± its value, the sum never below zero. Within a flow order is kept, a packet waiting for the ' +
    'one before it, unless allow_reordering is set. When the delay is lowered while packets wait, these keep their time, and ' +
    'later ones wait behind them; set with it, also while the run is on, allow_reordering lets those pass. ' +
    `${NEVER_EARLY} Packets held take slots of the run.`,
  config: Type.Object({
    flows: Flows(),
    delay: Milliseconds('Time that every packet is held.'),
    jitter: Milliseconds('Largest deviation from the delay, either way.', { default: 0 }),
    allow_reordering: Bool('Let a packet overtake one that jitter holds longer.', { default: false }),
    seed: Optional(Seed()),
  }),
  fromArrival: true,
  metrics: delayMetrics,
  live: ['delay', 'jitter', 'allow_reordering'],
  create(config, context) {
    const { outlets, metrics } = context
    const model: DelayModel = { delay: config.delay * NS_PER_MS, jitter: config.jitter * NS_PER_MS }
    const lines = new DelayLines(
      context,
      model,
      outlets.flows.map(({ output }) => output),
      { random: context.random(config.seed), lag: metrics.lag, reorder: config.allow_reordering },
    )
    return {
      flows: config.flows.map((_, flow) => ({ input: (batch: Batch) => lines.take(batch, flow) })),
      notify: (notification, input) => lines.notify(notification, input[1] as number),
      observe: () => metrics.held_packets.set(lines.held),
      reconfigure(next) {
        model.delay = next.delay * NS_PER_MS
        model.jitter = next.jitter * NS_PER_MS
        lines.reorder = next.allow_reordering
      },
      stop: () => metrics.held_at_end_packets.add(lines.stop()),
    }
  },
})
