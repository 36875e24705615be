/** delay_fixed: holds every packet for the same time. */
import { Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { Input, Int32Milliseconds, Output } from '../../engine/schema.ts'
import { DelayLines, type DelayModel, delayMetrics, NEVER_EARLY } from './delay-line.ts'

export const delayFixed = defineComponent({
  key: 'delay_fixed',
  family: 'emulation',
  summary: 'Holds every packet for the same time.',
  details: `Order is kept, also when the delay is lowered while packets wait: these keep their time, and later ones wait behind them. ${NEVER_EARLY} Packets held take slots of the run.`,
  config: Type.Object({
    input: Input(),
    output: Output(),
    delay: Int32Milliseconds('Time that every packet is held.'),
  }),
  fromArrival: true,
  metrics: delayMetrics,
  live: ['delay'],
  create(config, context) {
    const { outlets, metrics } = context
    const model: DelayModel = { delay: config.delay * NS_PER_MS, jitter: 0 }
    const lines = new DelayLines(context, model, [outlets.output], { random: null, lag: metrics.lag, reorder: false })
    return {
      input: (batch) => lines.take(batch, 0),
      notify: (notification) => lines.notify(notification, 0),
      observe: () => metrics.held_packets.set(lines.held),
      reconfigure(next) {
        model.delay = next.delay * NS_PER_MS
      },
      stop: () => metrics.held_at_end_packets.add(lines.stop()),
    }
  },
})
