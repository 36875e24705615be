/** delay_jitter: holds every packet for a time of its own, which may reorder them. */
import { Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { Input, Int32Milliseconds, Optional, Output, Seed } from '../../engine/schema.ts'
import { DelayLines, type DelayModel, delayMetrics, NEVER_EARLY } from './delay-line.ts'

export const delayJitter = defineComponent({
  key: 'delay_jitter',
  family: 'emulation',
  summary: 'Holds every packet for a delay of its own, which may reorder them.',
  details:
    'Each delay is uniform in `delay` ± `jitter`, never below zero. A packet overtakes those before it that are held longer; ' +
    `delay_constant keeps the order. ${NEVER_EARLY} Packets held take slots of the run.`,
  config: Type.Object({
    input: Input(),
    output: Output(),
    delay: Int32Milliseconds('Time that a packet is held on average.'),
    jitter: Int32Milliseconds('Largest deviation from the delay, either way.'),
    seed: Optional(Seed()),
  }),
  fromArrival: true,
  metrics: delayMetrics,
  live: ['delay', 'jitter'],
  create(config, context) {
    const { outlets, metrics } = context
    const model: DelayModel = { delay: config.delay * NS_PER_MS, jitter: config.jitter * NS_PER_MS }
    const random = context.random(config.seed)
    const lines = new DelayLines(context, model, [outlets.output], { random, lag: metrics.lag, reorder: true })
    return {
      input: (batch) => lines.take(batch, 0),
      notify: (notification) => lines.notify(notification, 0),
      observe: () => metrics.held_packets.set(lines.held),
      reconfigure(next) {
        model.delay = next.delay * NS_PER_MS
        model.jitter = next.jitter * NS_PER_MS
      },
      stop: () => metrics.held_at_end_packets.add(lines.stop()),
    }
  },
})
