/** observer: passes packets on and shows their sizes, their rate and the gaps between them. */
import { Type } from '@sinclair/typebox'
import { NS_PER_S } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { histogram } from '../../engine/metrics.ts'
import { Input, Output } from '../../engine/schema.ts'
import { RateMeter, rateMetrics } from './rate-meter.ts'

export const observer = defineComponent({
  key: 'observer',
  family: 'trackers',
  summary: 'Passes packets on and shows their sizes, their rate and the gaps between them.',
  details: 'Packets that come in one breath of the run loop have come at the same time: the gaps between them are 0.',
  config: Type.Object({ input: Input(), output: Output() }),
  metrics: {
    ...rateMetrics,
    packet_size: histogram('Sizes of packets.', 'bytes'),
    gap: histogram('Time from one packet to the next.', 'ns'),
  },
  passes: true,
  create(_config, context) {
    const { packets, clock, outlets, metrics } = context
    const meter = new RateMeter(context, NS_PER_S)
    let before = -1
    return {
      input(batch) {
        const { handles, length } = batch
        if (length === 0) return
        const sizes = packets.length
        // Neighbours of equal size, which most are, cost one record together.
        let size = sizes[handles[0]]
        let times = 1
        for (let i = 1; i < length; i++) {
          const next = sizes[handles[i]]
          if (next === size) times++
          else {
            metrics.packet_size.recordMany(size, times)
            size = next
            times = 1
          }
        }
        metrics.packet_size.recordMany(size, times)
        meter.add(length, batch.bytes)
        const { now } = clock
        if (before >= 0) metrics.gap.record(now - before)
        if (length > 1) metrics.gap.recordMany(0, length - 1)
        before = now
        outlets.output.send(batch)
      },
      stop: () => meter.stop(),
    }
  },
})
