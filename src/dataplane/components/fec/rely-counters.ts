/** What the two ends of rely count. */
import type { Counter, Gauge } from '../../engine/metrics.ts'

export interface RelySenderCounters {
  readonly source_packets: Counter
  readonly repair_packets: Counter
  readonly no_room_packets: Counter
  readonly unsent_repair_packets: Counter
}

export interface RelyReceiverCounters {
  readonly recovered_packets: Counter
  readonly unrecovered_packets: Counter
  readonly late_packets: Counter
  readonly duplicate_packets: Counter
  readonly wrong_recoveries: Counter
  readonly used_repair_packets: Counter
  readonly redundant_packets: Counter
  readonly unusable_repair_packets: Counter
  readonly malformed_packets: Counter
  readonly unfollowed_packets: Counter
  readonly unfollowed_repair_packets: Counter
  readonly no_slot_packets: Counter
  readonly replaced_packets: Counter
  readonly held_packets: Gauge
  readonly held_at_end_packets: Counter
}
