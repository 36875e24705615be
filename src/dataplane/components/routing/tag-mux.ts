/** tag_mux: joins flows into one and writes on each packet which it was of. */
import { Type } from '@sinclair/typebox'
import type { Batch } from '../../engine/batch.ts'
import { defineComponent } from '../../engine/component.ts'
import { Input, List, Output } from '../../engine/schema.ts'
import { Tag, tagFaults } from './tags.ts'
import { WORD_BYTES, writeWord } from './word-header.ts'

export const tagMux = defineComponent({
  key: 'tag_mux',
  family: 'routing',
  summary: 'Joins flows into one and writes the tag of its flow in front of every packet, for tag_demux to part them.',
  details:
    'Packets grow by the 4 bytes of the tag (see wire formats). A notification of any input goes on to the output.',
  config: Type.Object({
    inputs: List(Type.Object({ name: Input(), tag: Tag() }), 'Connection points to read from, each with its tag.'),
    output: Output(),
  }),
  metrics: {},
  live: ['inputs'],
  alters: true,
  room: () => ({ front: WORD_BYTES, back: 0 }),
  check: ({ inputs }) => tagFaults('inputs', inputs),
  create(config, { packets, outlets }) {
    let { inputs } = config
    return {
      inputs: inputs.map((_, i) => ({
        name(batch: Batch) {
          writeWord(packets, batch, inputs[i].tag)
          outlets.output.send(batch)
        },
      })),
      reconfigure(next) {
        inputs = next.inputs
      },
    }
  },
})
