/** loss_tracker_sender: numbers packets for a loss_tracker_receiver. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { Input, Output } from '../../engine/schema.ts'

/** Sender id and sequence (docs/wire-formats.md). */
export const LOSS_HEADER_BYTES = 8

export const lossTrackerSender = defineComponent({
  key: 'loss_tracker_sender',
  family: 'trackers',
  summary: 'Numbers packets, so that a loss_tracker_receiver sees which are missing.',
  details: 'Packets leave 8 bytes longer. Each start of the sender draws an id of its own and counts from 0.',
  config: Type.Object({ input: Input(), output: Output() }),
  metrics: {},
  alters: true,
  room: () => ({ front: LOSS_HEADER_BYTES, back: 0 }),
  create(_config, { packets, outlets, entropy }) {
    const [a, b, c, d] = entropy(4)
    const id = (a << 24) | (b << 16) | (c << 8) | d
    let sequence = 0
    return {
      input(batch) {
        const { view } = packets
        const { handles, length } = batch
        for (let i = 0; i < length; i++) {
          const at = packets.prepend(handles[i], LOSS_HEADER_BYTES)
          view.setInt32(at, id)
          view.setInt32(at + 4, sequence)
          sequence = (sequence + 1) | 0
        }
        outlets.output.send(batch)
      },
    }
  },
})
