/** reed_solomon_decoder: passes on the source packets of a reed_solomon_encoder and recovers missing ones. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { consumed, counter, created, drop, gauge, held, heldAtEnd } from '../../engine/metrics.ts'
import { Input, Output } from '../../engine/schema.ts'
import { BlockDecoder } from './block-decoder.ts'

export const reedSolomonDecoder = defineComponent({
  key: 'reed_solomon_decoder',
  family: 'fec',
  summary: 'Recovers lost packets of a reed_solomon_encoder from its repair packets.',
  details:
    'Sources are passed on as they come, recovered packets as soon as any k packets of their block are there, so out of order. ' +
    'The block size comes with the packets. A block is given up when it is some 1,000 packets behind the newest (at least 4 blocks, at most ' +
    '256). After a restart of the encoder its packets carry a new session number and are followed at once; the packets of up to four ' +
    'sessions are taken side by side, and unknown ones never displace those of the two that have proved themselves.',
  config: Type.Object({ input: Input(), output: Output() }),
  metrics: {
    recovered_packets: created('Lost packets recovered.'),
    unrecovered_packets: counter('Source packets still missing when their block was given up.', 'packets'),
    late_packets: drop('Packets that came after they had been recovered, or after their block had been given up.'),
    duplicate_packets: drop('Packets that had come before.'),
    redundant_packets: consumed('Repair packets of blocks that were complete without them.'),
    spent_packets: consumed('Repair packets of blocks that were completed with them, or given up.'),
    malformed_packets: drop(
      'Packets that are none of a reed_solomon_encoder, or contradict the others of their block.',
    ),
    held_packets: held('Repair packets of unfinished blocks.'),
    held_at_end_packets: heldAtEnd(),
    unkept_packets: counter('Source packets passed on without a copy because no packet slot was free.', 'packets'),
    measured_loss: gauge('Share of packets lost on the way here, over about the last 10,000.', 'ratio'),
  },
  create(_config, { packets, outlets, metrics, memory }) {
    const decoder = new BlockDecoder(packets, memory(), outlets.output, metrics)
    return {
      input: (batch) => decoder.input(batch),
      notify(notification) {
        if (notification === 'RESET') decoder.reset()
        outlets.output.notify(notification)
      },
      observe: () => metrics.measured_loss.set(decoder.loss),
      kept: () => decoder.kept,
      stop: () => decoder.stop(),
    }
  },
})
