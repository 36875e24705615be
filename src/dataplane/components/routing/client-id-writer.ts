/** client_id_writer: writes on every packet which client it is of. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { Input, Output, Uint32 } from '../../engine/schema.ts'
import { WORD_BYTES, writeWord } from './word-header.ts'

export const clientIdWriter = defineComponent({
  key: 'client_id_writer',
  family: 'routing',
  summary: 'Writes a client id in front of every packet, for client_id_reader or relay_network_lookup.',
  details: 'Packets grow by the 4 bytes of the id (see wire formats).',
  config: Type.Object({ input: Input(), output: Output(), client_id: Uint32('Id of the client.') }),
  metrics: {},
  live: ['client_id'],
  alters: true,
  room: () => ({ front: WORD_BYTES, back: 0 }),
  create(config, { packets, outlets }) {
    let id = config.client_id
    return {
      input(batch) {
        writeWord(packets, batch, id)
        outlets.output.send(batch)
      },
      reconfigure(next) {
        id = next.client_id
      },
    }
  },
})
