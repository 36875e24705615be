/** What tcp and unix_socket count of their connections. */
import { consumed, counter, created, drop, gauge, held, heldAtEnd } from '../../engine/metrics.ts'
import { UNTAKEN_METRICS } from './untaken.ts'

export const CONNECTION_METRICS = {
  received_packets: created('Packets that came over connections, those that were not taken among them.'),
  received_without_slot_packets: UNTAKEN_METRICS.received_without_slot_packets,
  ignored_packets: drop('Packets received with no output to go to.'),
  sent_packets: consumed('Packets handed to the kernel.'),
  unconnected_packets: drop('Packets to send that had no connection to go to.'),
  empty_packets: drop('Packets of no bytes, which cannot be sent.'),
  send_queue_drops: drop('Packets dropped because the queue of their connection was full.'),
  unsent_packets: drop('Packets that waited for a connection when it ended.'),
  broken_stream_packets: drop('Packets of a stream of which some had been lost, discarded until it ends.'),
  refused_packets: drop('Packets that the kernel refused for good: too long.'),
  send_blocked: counter('Times the kernel took no more packets for now.'),
  queued_packets: held('Packets waiting to be sent.'),
  held_at_end_packets: heldAtEnd(),
  connections: gauge('Connections there are now.'),
  opened_connections: counter('Connections that came about.'),
  reset_connections: counter('Connections broken off, by the other end or because bytes would have been missing.'),
  refused_connections: counter('Connections closed at once: too many, or of somebody who may not.'),
  socket_errors: counter('Errors of connecting, accepting, receiving and sending.'),
} as const
