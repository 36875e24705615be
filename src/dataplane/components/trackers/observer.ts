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

    function countSize(size: number, times: number): void {
      counts[size] += times
      if (size < lowest) lowest = size
      if (size > highest) highest = size
    }

    return {
      input(batch) {
        const { handles, length } = batch
        if (length === 0) return
        const { now } = clock
        // Neighbours are mostly of one size and came together, so what is counted is how long that lasts.
        let size = sizes[handles[0]]
        let came = arrival[handles[0]]
        let sizeFrom = 0
        let cameFrom = 0
        for (let i = 1; i < length; i++) {
          const packet = handles[i]
          if (sizes[packet] !== size) {
            countSize(size, i - sizeFrom)
            size = sizes[packet]
            sizeFrom = i
          }
          if (arrival[packet] !== came) {
            metrics.residence.recordMany(now - came, i - cameFrom)
            came = arrival[packet]
            cameFrom = i
          }
        }
        countSize(size, length - sizeFrom)
        metrics.residence.recordMany(now - came, length - cameFrom)
        meter.add(length, batch.bytes)
        if (before >= 0) metrics.gap.record(now - before)
        if (length > 1) metrics.gap.recordMany(0, length - 1)
        before = now
        outlets.output.send(batch)
      },
      observe: recordSizes,
      stop: () => meter.stop(),
    }
  },
})
