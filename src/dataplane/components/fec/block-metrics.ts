/** The metrics that encoders and decoders of block codes declare. */
import { consumed, counter, created, drop, gauge, held, heldAtEnd } from '../../engine/metrics.ts'

export const blockEncoderMetrics = {
  source_packets: counter('Source packets sent on.', 'packets'),
  repair_packets: created('Repair packets sent.'),
  no_room_packets: drop('Packets that had no room for the header.'),
  unsent_repair_packets: counter('Repair packets not made because no packet slot was free.', 'packets'),
  unprotected_packets: counter('Source packets left without repairs because no packet slot was free.', 'packets'),
} as const

/** Of the decoder of the encoder `encoder`. */
export const blockDecoderMetrics = (encoder: string) =>
  ({
    recovered_packets: created('Lost packets recovered.'),
    unrecovered_packets: counter(
      'Source packets still missing when their block was given up, those of blocks that an outage took whole among them.',
      'packets',
    ),
    late_packets: drop('Packets that came after they had been recovered, or after their block had been given up.'),
    duplicate_packets: drop('Packets that had come before.'),
    wrong_recoveries: counter(
      'Packets recovered with a repair that, as their source showed when it came, was wrong.',
      'packets',
    ),
    redundant_packets: consumed('Repair packets of blocks that were complete without them.'),
    spent_packets: consumed('Repair packets of blocks that were completed with them, or given up.'),
    malformed_packets: drop(
      `Packets that are none of ${encoder}, and repair packets that contradict what came of their block.`,
    ),
    unfollowed_packets: counter('Source packets passed on of sessions that there was no place to follow.', 'packets'),
    unfollowed_repair_packets: consumed('Repair packets of such sessions, or of blocks far ahead of any source.'),
    followed_sessions: gauge('Sessions followed.', 'sessions'),
    held_packets: held('Repair packets of unfinished blocks.'),
    held_at_end_packets: heldAtEnd(),
    unkept_packets: counter('Source packets passed on without a copy because no packet slot was free.', 'packets'),
    measured_loss: gauge('Share of packets lost on the way here, over about the last 10,000.', 'ratio'),
  }) as const
