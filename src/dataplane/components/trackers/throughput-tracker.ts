/** throughput_tracker: passes packets on and measures how many, and how many bits, go by in a second. */
import { Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { counter } from '../../engine/metrics.ts'
import { Input, Milliseconds, Output, ZERO_UNSET } from '../../engine/schema.ts'
import { RateMeter, rateMetrics } from './rate-meter.ts'

export const throughputTracker = defineComponent({
  key: 'throughput_tracker',
  family: 'trackers',
  summary: 'Passes packets on and measures packets and bits per second.',
  details: 'Rates are those of the last whole interval and fall to 0 when nothing passes.',
  config: Type.Object({
    input: Input(),
    output: Output(),
    interval_ms: Milliseconds('Interval that rates are measured over.', { default: 1000, minimum: 1, ...ZERO_UNSET }),
  }),
  metrics: {
    ...rateMetrics,
    total_packets: counter('Packets that passed.', 'packets'),
    total_bytes: counter('Bytes that passed.', 'bytes'),
  },
  live: ['interval_ms'],
  passes: true,
  create(config, context) {
    const { outlets, metrics } = context
    const meter = new RateMeter(context, config.interval_ms * NS_PER_MS)
    return {
      input(batch) {
        meter.add(batch.length, batch.bytes)
        metrics.total_packets.add(batch.length)
        metrics.total_bytes.add(batch.bytes)
        outlets.output.send(batch)
      },
      reconfigure: (next) => meter.setInterval(next.interval_ms * NS_PER_MS),
      stop: () => meter.stop(),
    }
  },
})
