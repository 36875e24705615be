/** What was sent on a carrier and is not reported yet, by carrier sequence, with what BBR's delivery rate needs of each. */
import { ahead, following } from './serial.ts'

/** Packets of a carrier that may be unreported; beyond it the oldest counts as lost. */
const MAX_IN_FLIGHT = 16_384
const MASK = MAX_IN_FLIGHT - 1
/** Later packets that have been reported when a packet counts as lost. */
const LATER_REPORTED = 3

const FLYING = 1
const REPORTED = 2
const LOST = 3

/** Told what became of a packet: that of `stream` (-1: a repair) with `sequence`. */
export interface Fates {
  reported(stream: number, sequence: number): void
  lost(stream: number, sequence: number): void
}

export class InFlight {
  /** Bytes and packets not reported and not lost. */
  bytes = 0
  packets = 0
  /** Bytes reported so far. */
  delivered = 0
  deliveredAt = 0
  /** Of the newest packet that the last report told of: when it was sent and what had been delivered then. */
  readonly newest = { sentAt: 0, firstSentAt: 0, delivered: 0, deliveredAt: 0, idle: false }
  /** The carrier sequence of the next packet. */
  next = 0
  /** Everything before it is reported or lost. */
  private oldest = 0
  private highest = 0
  private told = false
  private firstSentAt = 0
  private dryUntil = 1
  /** When there was nothing more to send, ns. */
  dryAt = Number.NEGATIVE_INFINITY
  private readonly state = new Uint8Array(MAX_IN_FLIGHT)
  private readonly streams = new Int32Array(MAX_IN_FLIGHT)
  private readonly sequences = new Int32Array(MAX_IN_FLIGHT)
  private readonly sizes = new Int32Array(MAX_IN_FLIGHT)
  private readonly sentAt = new Float64Array(MAX_IN_FLIGHT)
  private readonly firstSent = new Float64Array(MAX_IN_FLIGHT)
  private readonly deliveredThen = new Float64Array(MAX_IN_FLIGHT)
  private readonly deliveredThenAt = new Float64Array(MAX_IN_FLIGHT)
  private readonly idle = new Uint8Array(MAX_IN_FLIGHT)
  private readonly fates: Fates

  constructor(fates: Fates) {
    this.fates = fates
  }

  /** There is nothing more to send: until what is in flight now is delivered, deliveries say little of what the path could deliver. */
  runDry(now: number): void {
    this.dryAt = now
    this.dryUntil = this.delivered + Math.max(this.bytes, 1)
  }

  /** Takes the next carrier sequence for a packet that is sent now. Returns the sequence. */
  add(stream: number, sequence: number, size: number, now: number): number {
    if (ahead(this.next, this.oldest) >= MAX_IN_FLIGHT) this.loseBefore(following(this.oldest))
    if (this.packets === 0) {
      this.firstSentAt = now
      this.deliveredAt = now
    }
    const number = this.next
    const at = number & MASK
    this.state[at] = FLYING
    this.streams[at] = stream
    this.sequences[at] = sequence
    this.sizes[at] = size
    this.sentAt[at] = now
    this.firstSent[at] = this.firstSentAt
    this.deliveredThen[at] = this.delivered
    this.deliveredThenAt[at] = this.deliveredAt
    this.idle[at] = this.delivered < this.dryUntil ? 1 : 0
    this.bytes += size
    this.packets++
    this.next = following(number)
    return number
  }

  /** When the oldest unreported packet was sent; Infinity: there is none. */
  get oldestSentAt(): number {
    return this.packets === 0 ? Number.POSITIVE_INFINITY : this.sentAt[this.oldest & MASK]
  }

  /** Whether there was too little to send when the oldest unreported packet, of which there must be one, was sent. */
  get isOldestIdle(): boolean {
    return this.idle[this.oldest & MASK] === 1
  }

  /** Whether a packet sent before one that was reported is still out. */
  get overtaken(): boolean {
    return this.packets > 0 && this.told && ahead(this.highest, this.oldest) > 0
  }

  /** Whether `number` was sent, and so long ago at most that it is still known. */
  knows(number: number): boolean {
    return ahead(this.next, number) > 0 && ahead(this.next, number) <= MAX_IN_FLIGHT
  }

  /**
   * `number` has come, at `at` as far as this end can tell (when its report would have come without the wait of the other end).
   * True: it is news.
   */
  report(number: number, at: number): boolean {
    const place = number & MASK
    if (!this.knows(number)) return false
    if (this.state[place] === LOST) this.found(place)
    if (this.state[place] !== FLYING) return false
    this.state[place] = REPORTED
    this.bytes -= this.sizes[place]
    this.packets--
    this.delivered += this.sizes[place]
    this.deliveredAt = at
    this.firstSentAt = this.sentAt[place]
    if (!this.told || ahead(number, this.highest) > 0) {
      this.highest = number
      this.told = true
      const { newest } = this
      newest.sentAt = this.sentAt[place]
      newest.firstSentAt = this.firstSent[place]
      newest.delivered = this.deliveredThen[place]
      newest.deliveredAt = this.deliveredThenAt[place]
      newest.idle = this.idle[place] === 1
    }
    this.fates.reported(this.streams[place], this.sequences[place])
    this.pass()
    return true
  }

  /** What counted as lost has come after all. */
  private found(place: number): void {
    this.state[place] = REPORTED
    this.delivered += this.sizes[place]
    this.fates.reported(this.streams[place], this.sequences[place])
  }

  /** The highest sequence that was reported; meaningful while something is overtaken. */
  get highestReported(): number {
    return this.highest
  }

  /** When `number`, which is known, was sent. */
  sentAtOf(number: number): number {
    return this.sentAt[number & MASK]
  }

  /** Counts as lost what three later ones that were reported have overtaken; how many. */
  loseOvertaken(): number {
    if (!this.told) return 0
    let later = 0
    let bound = this.highest
    for (; ahead(bound, this.oldest) > 0 && later < LATER_REPORTED; bound = (bound - 1) | 0) {
      if (this.state[bound & MASK] === REPORTED) later++
    }
    return later < LATER_REPORTED ? 0 : this.loseBefore(following(bound))
  }

  /** Counts as lost what has a sequence before `bound` and is not reported; how many. */
  loseBefore(bound: number): number {
    let lost = 0
    for (
      let number = this.oldest;
      ahead(bound, number) > 0 && ahead(this.next, number) > 0;
      number = following(number)
    ) {
      const at = number & MASK
      if (this.state[at] !== FLYING) continue
      this.state[at] = LOST
      this.bytes -= this.sizes[at]
      this.packets--
      lost++
      this.fates.lost(this.streams[at], this.sequences[at])
    }
    this.pass()
    return lost
  }

  /** Counts as lost what was sent at `time` or before and is not reported; how many. */
  loseSentUntil(time: number): number {
    let bound = this.oldest
    while (ahead(this.next, bound) > 0 && this.sentAt[bound & MASK] <= time) bound = following(bound)
    return this.loseBefore(bound)
  }

  private pass(): void {
    let { oldest } = this
    while (ahead(this.next, oldest) > 0 && this.state[oldest & MASK] !== FLYING) oldest = following(oldest)
    this.oldest = oldest
  }
}
