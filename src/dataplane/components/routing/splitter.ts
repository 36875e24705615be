/** splitter: every packet to every output. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { counter, created } from '../../engine/metrics.ts'
import { Input, List, Output } from '../../engine/schema.ts'

export const splitter = defineComponent({
  key: 'splitter',
  family: 'routing',
  summary: 'Sends every packet to every output.',
  config: Type.Object({
    input: Input(),
    outputs: List(Output(), 'Connection points that each get every packet.'),
  }),
  metrics: {
    copied_packets: created('Copies made for the second and further outputs.'),
    uncopied_packets: counter('Copies that could not be made because no packet slot was free.', 'packets'),
  },
  passes: true,
  create(_config, { packets, outlets, metrics }) {
    const [first, ...others] = outlets.outputs
    return {
      input(batch) {
        for (const outlet of others) {
          for (let i = 0; i < batch.length; i++) {
            const copy = packets.clone(batch.handles[i])
            if (copy < 0) {
              metrics.uncopied_packets.add(1)
              continue
            }
            metrics.copied_packets.add(1)
            outlet.push(copy)
          }
          outlet.flush()
        }
        first.send(batch)
      },
    }
  },
})
