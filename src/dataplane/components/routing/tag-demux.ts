/** tag_demux: parts what a tag_mux joined. */
import { type Static, Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { drop } from '../../engine/metrics.ts'
import { Input, List, Output } from '../../engine/schema.ts'
import { Tag, tagFaults } from './tags.ts'
import { WORD_BYTES } from './word-header.ts'

const config = Type.Object({
  input: Input(),
  outputs: List(Type.Object({ name: Output(), tag: Tag() }), 'Connection points to write to, each with its tag.'),
})

const placesOf = ({ outputs }: Static<typeof config>) => new Map(outputs.map(({ tag }, i) => [tag, i]))

export const tagDemux = defineComponent({
  key: 'tag_demux',
  family: 'routing',
  summary: 'Takes the tag of a tag_mux off every packet and sends the packet to the output of that tag.',
  details: 'Order is kept within a flow, not between flows. Notifications go on to all outputs.',
  config,
  metrics: {
    unknown_tag_packets: drop('Packets dropped because no output has their tag.'),
    malformed_packets: drop('Packets dropped because they are too short for a tag.'),
  },
  live: ['outputs'],
  alters: true,
  check: ({ outputs }) => tagFaults('outputs', outputs),
  create(config, { packets, outlets, metrics }) {
    const { outputs } = outlets
    let places = placesOf(config)
    /** The outputs that this batch has packets for. */
    const used = new Int32Array(outputs.length)
    const isUsed = new Uint8Array(outputs.length)
    return {
      input({ handles, length }) {
        let count = 0
        for (let i = 0; i < length; i++) {
          const packet = handles[i]
          const isWhole = packets.length[packet] >= WORD_BYTES
          const place = isWhole ? places.get(packets.view.getInt32(packets.trimFront(packet, WORD_BYTES))) : undefined
          if (place === undefined) {
            packets.release(packet)
            const reason = isWhole ? metrics.unknown_tag_packets : metrics.malformed_packets
            reason.add(1)
            continue
          }
          if (isUsed[place] === 0) used[count++] = place
          isUsed[place] = 1
          outputs[place].name.push(packet)
        }
        for (let i = 0; i < count; i++) {
          isUsed[used[i]] = 0
          outputs[used[i]].name.flush()
        }
      },
      reconfigure(next) {
        places = placesOf(next)
      },
    }
  },
})
