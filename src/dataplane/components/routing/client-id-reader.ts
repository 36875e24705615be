/** client_id_reader: takes the packets of one client. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { drop } from '../../engine/metrics.ts'
import { Input, Output, Uint32 } from '../../engine/schema.ts'
import { WORD_BYTES } from './word-header.ts'

export const clientIdReader = defineComponent({
  key: 'client_id_reader',
  family: 'routing',
  summary: 'Takes the client id off every packet and drops the packets of other clients.',
  details: 'Ids prove nothing: where packets may be forged, put an authenticating component around it.',
  config: Type.Object({ input: Input(), output: Output(), client_id: Uint32('Id of the client.') }),
  metrics: {
    other_client_packets: drop('Packets dropped because their client id is another.'),
    malformed_packets: drop('Packets dropped because they are too short for a client id.'),
  },
  live: ['client_id'],
  alters: true,
  create(config, { packets, outlets, metrics }) {
    let id = config.client_id
    return {
      input(batch) {
        const { handles, length } = batch
        let kept = 0
        for (let i = 0; i < length; i++) {
          const packet = handles[i]
          const isWhole = packets.length[packet] >= WORD_BYTES
          if (isWhole && packets.view.getUint32(packets.trimFront(packet, WORD_BYTES)) === id) handles[kept++] = packet
          else {
            packets.release(packet)
            const reason = isWhole ? metrics.other_client_packets : metrics.malformed_packets
            reason.add(1)
          }
        }
        batch.length = kept
        outlets.output.send(batch)
      },
      reconfigure(next) {
        id = next.client_id
      },
    }
  },
})
