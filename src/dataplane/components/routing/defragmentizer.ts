/** defragmentizer: joins the fragments of a fragmentizer. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { consumed, counter, drop, held, heldAtEnd } from '../../engine/metrics.ts'
import { Input, Output } from '../../engine/schema.ts'
import { MAX_ASSEMBLIES } from './assemblies.ts'
import { Joiner, MAX_JOINED_PACKET } from './joiner.ts'

export const defragmentizer = defineComponent({
  key: 'defragmentizer',
  family: 'routing',
  summary: 'Joins the fragments of a fragmentizer to the packets they were.',
  details:
    `A packet leaves when its last missing fragment has come, in whatever order they do. Up to ${MAX_ASSEMBLIES.toLocaleString('en')} packets, and 4 MiB of fragments, wait to ` +
    'become whole; the oldest gives way, and each is given up a second after its first fragment. Fragments that contradict each other (in the ' +
    'number of fragments, in their length, or the same one with other bytes) cost the packet. Up to 64 fragmentizers are told apart by the id in the header; of further ones only ' +
    'packets that are in one piece pass, until one of the 64 has been silent while a newcomer sent 8 fragments. A RESET makes it forget what is not whole. ' +
    `A packet of ${MAX_JOINED_PACKET.toLocaleString('en')} bytes must have room: a run with this component has some 16,000 packet slots.`,
  config: Type.Object({ input: Input(), output: Output() }),
  metrics: {
    reassembled_packets: counter('Packets put together from several fragments.', 'packets'),
    joined_fragments: consumed('Fragments that went into a packet which another fragment began.'),
    incomplete_packets: drop(
      'Packets given up because fragments were missing after a second, there were too many, or at a RESET.',
    ),
    contradictory_packets: drop(
      'Packets dropped because of fragments that contradict each other, and the fragments that showed it.',
    ),
    duplicate_packets: drop('Fragments dropped because they had come before, or their packet was over.'),
    oversize_packets: drop(
      `Fragments dropped because their packet would have more than ${MAX_JOINED_PACKET} bytes, and what was there of it.`,
    ),
    unfollowed_packets: drop('Fragments dropped because there are too many fragmentizers.'),
    malformed_packets: drop('Packets dropped because they are no fragments.'),
    held_packets: held('Packets that are not whole yet.'),
    held_at_end_packets: heldAtEnd(),
  },
  alters: true,
  mtu: () => MAX_JOINED_PACKET,
  create(_config, context) {
    const { outlets, metrics } = context
    const joiner = new Joiner(context)
    return {
      input(batch) {
        const { handles, length } = batch
        for (let i = 0; i < length; i++) joiner.take(handles[i])
        outlets.output.flush()
      },
      notify(notification) {
        if (notification === 'RESET') joiner.reset()
        outlets.output.notify(notification)
      },
      observe: () => metrics.held_packets.set(joiner.held),
      stop: () => metrics.held_at_end_packets.add(joiner.stop()),
    }
  },
})
