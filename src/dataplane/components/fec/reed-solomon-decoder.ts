/** reed_solomon_decoder: passes on the source packets of a reed_solomon_encoder and recovers missing ones. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { consumed, counter, created, drop, gauge, held, heldAtEnd } from '../../engine/metrics.ts'
import { Input, Optional, Output, Uint32 } from '../../engine/schema.ts'
import { BlockDecoder } from './block-decoder.ts'

/** Encoders followed side by side where `max_sessions` does not say otherwise. */
const SESSIONS = 64
/** More would be looked through too long for each packet. */
const MAX_SESSIONS = 256

export const reedSolomonDecoder = defineComponent({
  key: 'reed_solomon_decoder',
  family: 'fec',
  summary: 'Recovers lost packets of a reed_solomon_encoder from its repair packets.',
  details:
    'Sources are passed on as they come, recovered packets as soon as any k packets of their block are there, so out of order. ' +
    'The block size comes with the packets. A block is given up when it is some 1,000 packets behind the newest (at least 4 blocks, at most ' +
    '256), or when the blocks kept take a quarter of the packet slots of the run.\n\n' +
    `Each start of an encoder is a session of its own, whatever address it sends from, and up to ${SESSIONS} are followed side by side ` +
    '(max_sessions). When that many are known, a session that has sent nothing while a newcomer sent 8 packets gives way to it, the one ' +
    'silent longest. The sources of sessions that are not followed are passed on as they come, and nothing of them is recovered ' +
    '(unfollowed_packets).\n\n' +
    'A repair packet that contradicts the sources that came, or whose result does, is dropped (malformed_packets), and every source that ' +
    'comes is passed on, once, whatever repairs said of it before. A forged repair that contradicts nothing yet makes a forged packet ' +
    'nevertheless (wrong_recoveries counts those that their source gave away later): where packets may be forged, put an authenticating ' +
    'component around the code.',
  config: Type.Object({
    input: Input(),
    output: Output(),
    max_sessions: Optional(
      Uint32(`Encoders followed side by side (${SESSIONS} when unset or 0).`, { maximum: MAX_SESSIONS }),
    ),
  }),
  metrics: {
    recovered_packets: created('Lost packets recovered.'),
    unrecovered_packets: counter('Source packets still missing when their block was given up.', 'packets'),
    late_packets: drop('Packets that came after they had been recovered, or after their block had been given up.'),
    duplicate_packets: drop('Packets that had come before.'),
    wrong_recoveries: counter(
      'Packets recovered with a repair that, as their source showed when it came, was wrong.',
      'packets',
    ),
    redundant_packets: consumed('Repair packets of blocks that were complete without them.'),
    spent_packets: consumed('Repair packets of blocks that were completed with them, or given up.'),
    malformed_packets: drop(
      'Packets that are none of a reed_solomon_encoder, and repair packets that contradict the others of their block.',
    ),
    unfollowed_packets: counter('Source packets passed on of sessions that there was no place to follow.', 'packets'),
    unfollowed_repair_packets: consumed('Repair packets of such sessions, or of blocks far ahead of any source.'),
    followed_sessions: gauge('Sessions followed.', 'sessions'),
    held_packets: held('Repair packets of unfinished blocks.'),
    held_at_end_packets: heldAtEnd(),
    unkept_packets: counter('Source packets passed on without a copy because no packet slot was free.', 'packets'),
    measured_loss: gauge('Share of packets lost on the way here, over about the last 10,000.', 'ratio'),
  },
  alters: true,
  create({ max_sessions }, { packets, outlets, metrics, memory }) {
    const decoder = new BlockDecoder(packets, memory(), outlets.output, metrics, max_sessions || SESSIONS)
    return {
      input: (batch) => decoder.input(batch),
      notify(notification) {
        if (notification === 'RESET') decoder.reset()
        outlets.output.notify(notification)
      },
      observe() {
        metrics.measured_loss.set(decoder.loss.value)
        metrics.followed_sessions.set(decoder.followed)
      },
      kept: () => decoder.kept,
      stop: () => decoder.stop(),
    }
  },
})
