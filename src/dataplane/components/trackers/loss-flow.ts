/** One sender's packets at a loss_tracker_receiver: what came, came twice or late, and what counts as lost. */
import type { Counter } from '../../engine/metrics.ts'

/** Later packets after which a missing one counts as lost; a power of two. */
const LOSS_WINDOW = 1024
const MASK = LOSS_WINDOW - 1
/** Packets at most that a single one may say are missing; a longer gap is believed when a second packet says so too. */
const MAX_LEAP = 65_536

const AWAITED = 0
const ARRIVED = 1
const LOST = 2
/** Of before the first packet heard: whether it was ever sent to here is not known. */
const UNHEARD = 3

export interface LossCounters {
  readonly expected_packets: Counter
  readonly lost_packets: Counter
  readonly duplicate_packets: Counter
  readonly reordered_packets: Counter
  readonly late_packets: Counter
}

/** Fixed memory: what is known of the newest 1,024 sequences, which are 32 bits and compared as RFC 1982 says. */
export class LossFlow {
  private readonly counters: LossCounters
  private readonly states = new Uint8Array(LOSS_WINDOW)
  private id = 0
  private open = false
  private newest = 0
  /** Everything before this sequence has arrived or counts as lost. */
  private undecided = 0
  /** How far `newest` has moved since the first packet, which may be more than sequences can tell; also at the ends of the last two intervals. */
  private moved = 0
  private movedBefore = 0
  private movedTwoBefore = 0
  private leapTo = 0
  private leaping = false
  private run = 0
  /** Most packets lost in a row since the last `endInterval`. */
  private longest = 0

  constructor(counters: LossCounters) {
    this.counters = counters
  }

  /** Whether the packets are those of the sender `id`. */
  is(id: number): boolean {
    return this.open && this.id === id
  }

  /** Begins with the sender `id` at the first sequence heard of it; what was awaited of another is forgotten. */
  begin(id: number, sequence: number): void {
    this.id = id
    this.open = true
    this.leaping = false
    this.run = 0
    this.longest = 0
    this.states.fill(UNHEARD)
    this.newest = (sequence - 1) | 0
    this.undecided = sequence
    this.moved = 0
    this.movedBefore = 0
    this.movedTwoBefore = 0
    this.advance(sequence)
  }

  /** Forgets the sender. */
  forget(): void {
    this.open = false
  }

  /** A packet came. */
  take(sequence: number): void {
    const ahead = (sequence - this.newest) | 0
    if (ahead <= 0) this.takeEarlier(sequence, -ahead)
    else if (ahead <= MAX_LEAP || this.confirmsLeap(sequence)) this.advance(sequence)
  }

  /** Two intervals after it was missed a packet counts as lost. Gives the most packets that were lost in a row since it was called last. */
  endInterval(): number {
    if (!this.open) return 0
    const since = this.moved - this.movedTwoBefore
    // What is further back has been decided by the packets since.
    if (since < LOSS_WINDOW) this.decide((this.newest - since + 1) | 0)
    this.settle()
    this.movedTwoBefore = this.movedBefore
    this.movedBefore = this.moved
    const { longest } = this
    this.longest = 0
    return longest
  }

  private advance(sequence: number): void {
    const { states, counters } = this
    const ahead = (sequence - this.newest) | 0
    if (ahead > LOSS_WINDOW) {
      this.decide((this.newest + 1) | 0)
      const beyond = ahead - LOSS_WINDOW
      counters.expected_packets.add(beyond)
      this.lose(beyond)
      this.undecided = (sequence - MASK) | 0
      states.fill(AWAITED)
    } else {
      this.decide((sequence - MASK) | 0)
      for (let missing = this.newest + 1; ((sequence - missing) | 0) > 0; missing++) states[missing & MASK] = AWAITED
    }
    states[sequence & MASK] = ARRIVED
    this.newest = sequence
    this.moved += ahead
    this.settle()
  }

  private takeEarlier(sequence: number, behind: number): void {
    const { states, counters } = this
    if (behind >= LOSS_WINDOW) {
      counters.late_packets.add(1)
      return
    }
    const at = sequence & MASK
    const state = states[at]
    if (state === ARRIVED) {
      counters.duplicate_packets.add(1)
      return
    }
    states[at] = ARRIVED
    counters.reordered_packets.add(1)
    if (state === LOST) counters.late_packets.add(1)
    else this.settle()
  }

  private confirmsLeap(sequence: number): boolean {
    const beyond = (sequence - this.leapTo) | 0
    if (!this.leaping || beyond <= 0 || beyond > LOSS_WINDOW) {
      this.leaping = true
      this.leapTo = sequence
      return false
    }
    this.leaping = false
    this.advance(this.leapTo)
    return true
  }

  /** What is awaited of before `end` counts as lost. */
  private decide(end: number): void {
    while (((this.undecided - end) | 0) < 0) {
      const at = this.undecided & MASK
      if (this.states[at] === AWAITED) {
        this.states[at] = LOST
        this.lose(1)
      } else this.run = 0
      this.undecided = (this.undecided + 1) | 0
      this.counters.expected_packets.add(1)
    }
  }

  /** Goes over what has arrived up to the first that is awaited. */
  private settle(): void {
    while (((this.undecided - this.newest) | 0) <= 0 && this.states[this.undecided & MASK] === ARRIVED) {
      this.run = 0
      this.undecided = (this.undecided + 1) | 0
      this.counters.expected_packets.add(1)
    }
  }

  private lose(packets: number): void {
    this.counters.lost_packets.add(packets)
    this.run += packets
    if (this.run > this.longest) this.longest = this.run
  }
}
