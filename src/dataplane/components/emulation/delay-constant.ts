/** delay_constant: holds every packet for a delay, with jitter when asked. */
import { Type } from '@sinclair/typebox'
import type { Batch } from '../../engine/batch.ts'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { held, heldAtEnd, histogram } from '../../engine/metrics.ts'
import { Bool, Milliseconds, Optional, Seed } from '../../engine/schema.ts'
import { DelayLine, type DelayModel } from './delay-line.ts'
import { Flows } from './flows.ts'

export const delayConstant = defineComponent({
  key: 'delay_constant',
  family: 'emulation',
  summary: 'Holds every packet for a delay, give or take a jitter.',
  details:
    'Jitter is uniform in ± its value, the sum never below zero. Within a flow order is kept, a packet waiting for the ' +
    'one before it, unless allow_reordering is set. No packet leaves early, counted from when it was taken from the kernel. Packets held take slots of the run.',
  config: Type.Object({
    flows: Flows(),
    delay: Milliseconds('Time that every packet is held.'),
    jitter: Milliseconds('Largest deviation from the delay, either way.', { default: 0 }),
    allow_reordering: Bool('Let a packet overtake one that jitter holds longer.', { default: false }),
    seed: Optional(Seed()),
  }),
  metrics: {
    held_packets: held('Packets being held.'),
    held_at_end_packets: heldAtEnd(),
    lag: histogram('How long after it was due a packet left.', 'ns'),
  },
  live: ['delay', 'jitter'],
  create(config, context) {
    const { outlets, metrics } = context
    const model: DelayModel = { delay: config.delay * NS_PER_MS, jitter: config.jitter * NS_PER_MS }
    const random = context.random(config.seed)
    const lines = outlets.flows.map(
      ({ output }) =>
        new DelayLine(context, model, { random, outlet: output, lag: metrics.lag, reorder: config.allow_reordering }),
    )
    return {
      flows: lines.map((line) => ({ input: (batch: Batch) => line.take(batch) })),
      notify: (notification, input) => lines[input[1] as number].notify(notification),
      observe() {
        let packets = 0
        for (const line of lines) packets += line.held
        metrics.held_packets.set(packets)
      },
      reconfigure(next) {
        model.delay = next.delay * NS_PER_MS
        model.jitter = next.jitter * NS_PER_MS
      },
      stop() {
        for (const line of lines) metrics.held_at_end_packets.add(line.stop())
      },
    }
  },
})
