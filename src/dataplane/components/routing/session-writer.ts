/** session_writer: writes on every packet which run sent it. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { Input, Output } from '../../engine/schema.ts'

/** The session id in front of a packet. */
export const SESSION_BYTES = 8

export const sessionWriter = defineComponent({
  key: 'session_writer',
  family: 'routing',
  summary: 'Writes a session id in front of every packet that each run draws anew, for session_reader.',
  details: 'Packets grow by the 8 bytes of the id (see wire formats).',
  config: Type.Object({ input: Input(), output: Output() }),
  metrics: {},
  alters: true,
  room: () => ({ front: SESSION_BYTES, back: 0 }),
  create(_config, { packets, outlets, entropy }) {
    const id = new DataView(entropy(SESSION_BYTES).slice().buffer)
    const high = id.getInt32(0)
    const low = id.getInt32(4)
    return {
      input(batch) {
        const { handles, length } = batch
        const { view } = packets
        for (let i = 0; i < length; i++) {
          const at = packets.prepend(handles[i], SESSION_BYTES)
          view.setInt32(at, high)
          view.setInt32(at + 4, low)
        }
        outlets.output.send(batch)
      },
    }
  },
})
