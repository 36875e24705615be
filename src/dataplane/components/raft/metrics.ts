/** What raft counts: packets in all, and what is to be seen of each carrier and stream. */
import { consumed, counter, created, drop, gauge, held, heldAtEnd, type Metrics } from '../../engine/metrics.ts'

export const RAFT_METRICS = {
  created_packets: created(
    'Packets made here: copies kept for repair, pieces of long packets and those joined from them, repairs, reports, probes, answers.',
  ),
  consumed_packets: consumed(
    'Packets that ended here as they should: copies no longer needed, packets cut in pieces and the pieces, repairs, reports, probes, answers.',
  ),
  queue_dropped_packets: drop('Packets of the application dropped because they would have waited too long to be sent.'),
  duplicate_packets: drop('Packets of carriers dropped because what they brought was there.'),
  late_packets: drop('Packets of carriers dropped because their time was over, or what follows had left.'),
  incomplete_packets: drop('Packets of which pieces were missing, and pieces of which the first was.'),
  oversize_packets: drop('Packets of the application too long to be sent or to be put together.'),
  unready_packets: drop('Packets dropped because no packet slot was free, or no room for a header.'),
  out_of_window_packets: drop('Packets of carriers too far ahead of what came before.'),
  other_session_packets: drop('Packets of carriers of a session that is not, or not yet, that of the other end.'),
  reset_packets: drop('Packets that waited when the other end turned out to be a new one.'),
  misrouted_packets: drop(
    'Packets of carriers that have another handle, or that of a stream that is not here or has no output.',
  ),
  malformed_packets: drop('Packets of carriers that no raft made.'),
  uncopied_packets: counter('Packets sent without a copy for repair because no packet slot was free.', 'packets'),
  sessions: counter('Sessions of the other end, the first one included.', 'sessions'),
  held_packets: held('Packets that wait to be sent or delivered, and copies kept for repair.'),
  held_at_end_packets: heldAtEnd(),
}

export const CARRIER_METRICS = {
  sent_packets: counter('Packets sent on it.', 'packets'),
  sent_bytes: counter('Bytes sent on it.', 'bytes'),
  received_packets: counter('Packets that came on it.', 'packets'),
  received_bytes: counter('Bytes that came on it.', 'bytes'),
  reported_packets: counter('Packets sent on it that the other end has reported.', 'packets'),
  lost_packets: counter('Packets sent on it that were lost, as far as reports tell.', 'packets'),
  used: gauge('1 while it is used, 0 while it is left and probed.'),
  times_left: counter('How often it was left because it was silent.', 'times'),
  loss: gauge('Share of its packets that is lost lately.', 'fraction'),
  rtt: gauge('Round trip time, smoothed.', 'ns'),
  least_rtt: gauge('Least round trip time of the last 10 to 20 s.', 'ns'),
  estimate: gauge('What it delivers, as measured; 0 while nothing is known.', 'bit/s'),
  in_flight_bytes: gauge('Bytes sent on it that are neither reported nor lost.', 'bytes'),
}

export const STREAM_METRICS = {
  sent_packets: counter('Packets of the application sent.', 'packets'),
  sent_pieces: counter('Pieces that these packets were sent in.', 'pieces'),
  repeated_pieces: counter('Pieces sent again.', 'pieces'),
  repair_packets: counter('Repair packets sent.', 'packets'),
  repair_rate: gauge('Repair packets for each piece, as they are made now.', 'fraction'),
  queue_dropped_packets: counter('Packets dropped because they would have waited too long to be sent.', 'packets'),
  queued_packets: gauge('Packets that wait to be sent.', 'packets'),
  delivered_packets: counter('Packets handed to the application.', 'packets'),
  received_pieces: counter('Pieces that came, none twice.', 'pieces'),
  lost_pieces: counter('Pieces given up.', 'pieces'),
  repaired_pieces: counter('Pieces recovered by repair packets.', 'pieces'),
  resent_pieces: counter('Pieces recovered by being sent again.', 'pieces'),
  late_pieces: counter('Pieces that came too late.', 'pieces'),
  duplicate_pieces: counter('Pieces that came again.', 'pieces'),
  waiting_pieces: gauge('Pieces that wait for those before them, or for their time.', 'pieces'),
}

export type RaftMetrics = Metrics<typeof RAFT_METRICS>
export type CarrierMetrics = Metrics<typeof CARRIER_METRICS>
export type StreamMetrics = Metrics<typeof STREAM_METRICS>
