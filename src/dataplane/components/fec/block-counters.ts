/** What encoders and decoders of blocks count, and the share of packets that it measures as lost. */
import type { Counter, Gauge } from '../../engine/metrics.ts'

export interface BlockEncoderCounters {
  readonly source_packets: Counter
  readonly repair_packets: Counter
  readonly no_room_packets: Counter
  readonly unsent_repair_packets: Counter
  readonly unprotected_packets: Counter
}

export interface BlockDecoderCounters {
  readonly recovered_packets: Counter
  readonly unrecovered_packets: Counter
  readonly late_packets: Counter
  readonly duplicate_packets: Counter
  readonly wrong_recoveries: Counter
  readonly redundant_packets: Counter
  readonly spent_packets: Counter
  readonly malformed_packets: Counter
  readonly unfollowed_packets: Counter
  readonly unfollowed_repair_packets: Counter
  readonly held_packets: Gauge
  readonly held_at_end_packets: Counter
  readonly unkept_packets: Counter
}

/** The measured loss looks back over about as many packets. */
const LOSS_MEMORY = 10_000
/** Sources that an outage costs at most. A leap over more is none: an encoder that begins anew elsewhere has lost nothing. */
const LONGEST_OUTAGE = 16_777_216

/** How many sources an outage has cost whose next number is so far ahead; 0 where it is too far to be one. */
export function lostInOutage(sources: number): number {
  return sources > 0 && sources <= LONGEST_OUTAGE ? sources : 0
}

/** Share of packets lost, the older ones counting for less. */
export class LossShare {
  private lost = 0
  private expected = 0

  get value(): number {
    return this.expected === 0 ? 0 : this.lost / this.expected
  }

  add(expected: number, lost: number): void {
    this.lost += lost
    this.expected += expected
    while (this.expected > LOSS_MEMORY) {
      this.lost /= 2
      this.expected /= 2
    }
  }
}
