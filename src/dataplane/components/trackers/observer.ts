/** observer: passes packets on and shows their sizes, their rate, the gaps between them and how long the run has had them. */
import { Type } from '@sinclair/typebox'
import { NS_PER_S } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { histogram } from '../../engine/metrics.ts'
import { Input, Output } from '../../engine/schema.ts'
import { RateMeter, rateMetrics } from './rate-meter.ts'

/** Longest packet there is, bytes. */
const MAX_LENGTH = 65_535

export const observer = defineComponent({
  key: 'observer',
  family: 'trackers',
  summary:
    'Passes packets on and shows their sizes, their rate, the gaps between them and how long the run has had them.',
  details:
    'Packets that come in one breath of the run loop have come at the same time: the gaps between them are 0. The residence time of a packet ' +
    'begins when it was taken from the kernel or made, and ends here: what delays, links and buffers before this place have added.',
  config: Type.Object({ input: Input(), output: Output() }),
  metrics: {
    ...rateMetrics,
    packet_size: histogram('Sizes of packets.', 'bytes'),
    gap: histogram('Time from one packet to the next.', 'ns'),
    residence: histogram('Time since the run has had the packet.', 'ns'),
  },
  passes: true,
  create(_config, context) {
    const { packets, clock, outlets, metrics } = context
    const meter = new RateMeter(context, NS_PER_S)
    // Sizes are counted one by one here and go into the histogram when somebody looks, which is what makes this cheap.
    const { length: sizes, arrival } = packets
    const counts = new Uint32Array(Math.max(MAX_LENGTH, packets.slotBytes) + 1)
    let lowest = Number.POSITIVE_INFINITY
    let highest = -1
    let before = -1

    function recordSizes(): void {
      for (let size = lowest; size <= highest; size++) {
        if (counts[size] > 0) metrics.packet_size.recordMany(size, counts[size])
        counts[size] = 0
      }
      lowest = Number.POSITIVE_INFINITY
      highest = -1
    }

    /** Packets that came together are recorded together; where the first and the last did, so did those between them. */
    function recordResidence(handles: Int32Array, length: number): void {
      const { now } = clock
      const first = arrival[handles[0]]
      if (first === arrival[handles[length - 1]]) {
        metrics.residence.recordMany(now - first, length)
        return
      }
      let from = 0
      for (let i = 1; i <= length; i++) {
        const came = arrival[handles[from]]
        if (i < length && arrival[handles[i]] === came) continue
        metrics.residence.recordMany(now - came, i - from)
        from = i
      }
    }

    return {
      input(batch) {
        const { handles, length } = batch
        if (length === 0) return
        for (let i = 0; i < length; i++) {
          const size = sizes[handles[i]]
          counts[size]++
          if (size < lowest) lowest = size
          if (size > highest) highest = size
        }
        meter.add(length, batch.bytes)
        const { now } = clock
        if (before >= 0) metrics.gap.record(now - before)
        if (length > 1) metrics.gap.recordMany(0, length - 1)
        before = now
        recordResidence(handles, length)
        outlets.output.send(batch)
      },
      observe: recordSizes,
      stop: () => meter.stop(),
    }
  },
})
