/** gate: lets everything through, or nothing. */
import { Type } from '@sinclair/typebox'
import type { Batch } from '../../engine/batch.ts'
import { defineComponent } from '../../engine/component.ts'
import { intendedDrop } from '../../engine/metrics.ts'
import { Bool } from '../../engine/schema.ts'
import { Flows } from '../emulation/flows.ts'

export const gate = defineComponent({
  key: 'gate',
  family: 'routing',
  summary: 'Passes every packet on while it is open, drops every packet while it is closed.',
  details: 'Notifications pass a closed gate too, so that decoders behind it know when the sender has begun anew.',
  config: Type.Object({
    flows: Flows(),
    closed: Bool('Drop every packet.'),
  }),
  metrics: { gated_packets: intendedDrop('Packets dropped because the gate was closed.') },
  live: ['closed'],
  passes: true,
  create(config, { packets, outlets, metrics }) {
    let { closed } = config
    return {
      flows: outlets.flows.map(({ output }) => ({
        input(batch: Batch) {
          if (closed) {
            metrics.gated_packets.add(batch.length)
            packets.releaseAll(batch)
          } else output.send(batch)
        },
      })),
      reconfigure(next) {
        closed = next.closed
      },
    }
  },
})
