/** What a rely_decoder knows of one encoder's session: its sliding window, since when sources are missing, and what waits for them. */
import { SlidingDecoder } from '../../codes/sliding-decoder.ts'
import type { SlidingWindowOptions } from '../../codes/sliding-window.ts'
import type { LossShare } from './block-counters.ts'

/** Numbers that are told apart: as many as a window and what a repair may be ahead of it have. A power of two. */
export const STREAM_PLACES = 16_384
/** A session that is heard so soon after its start is followed from its start. */
const FIRST_SOURCES = 64

/** Whether the number of a source is near the very first one. */
export function isNearStart(sequence: number): boolean {
  return sequence >= 0 && sequence < FIRST_SOURCES
}

export class RelyStream {
  readonly decoder: SlidingDecoder
  /** In use. */
  active = false
  session = 0
  /** When its last packet came, by the count of packets. */
  used = 0
  /** Where its window began. */
  start = 0
  /** New sources that came, and those out of reach since the last that was not. */
  sources = 0
  outOfReach = 0
  /** The first number of which it is not decided whether it came or was lost. */
  undecided = 0
  /** The first number whose turn has not come, where packets wait for their turn. */
  next = 0
  /** How many wait. */
  waiting = 0
  private readonly packets = new Int32Array(STREAM_PLACES)
  private readonly shownAt = new Float64Array(STREAM_PLACES)

  constructor(options: SlidingWindowOptions) {
    this.decoder = new SlidingDecoder(options)
  }

  /** Takes up a session of which `sequence` is the first source that is known of. Where it is near the very first one, that is waited for too. */
  begin(session: number, sequence: number): void {
    this.active = true
    this.session = session
    this.restart(isNearStart(sequence) ? 0 : sequence)
  }

  /** Forgets everything: the next source is to be `sequence`. */
  restart(sequence: number): void {
    this.decoder.reset(sequence)
    this.start = sequence
    this.next = sequence
    this.undecided = sequence
    this.sources = 0
    this.outOfReach = 0
  }

  /** Notes that sources from `first` up to, not including, `end` have been shown to be missing at `now`. */
  show(first: number, end: number, now: number): void {
    for (let sequence = first; sequence !== end; sequence = (sequence + 1) | 0) {
      this.shownAt[sequence & (STREAM_PLACES - 1)] = now
    }
  }

  /** When the oldest missing source was shown to be; Infinity when none is missing. */
  get missingSince(): number {
    const { decoder } = this
    if (decoder.missing === 0) return Number.POSITIVE_INFINITY
    return this.shownAt[decoder.firstOpen() & (STREAM_PLACES - 1)]
  }

  /**
   * Decides of the sources up to the first that may still come: `loss` is told which came and which were lost, having been shown to be
   * missing at `overdue` or before.
   */
  decide(loss: LossShare, overdue: number): void {
    const { decoder, shownAt } = this
    const { newest } = decoder
    for (let ahead = (newest - this.undecided) | 0; ahead >= 0; ahead--) {
      const came = decoder.came(this.undecided)
      // What is far behind is not waited for: its place is needed.
      if (!came && shownAt[this.undecided & (STREAM_PLACES - 1)] > overdue && ahead < STREAM_PLACES / 2) return
      loss.add(1, came ? 0 : 1)
      this.undecided = (this.undecided + 1) | 0
    }
  }

  /** Keeps a packet until its turn. */
  hold(sequence: number, packet: number): void {
    this.packets[sequence & (STREAM_PLACES - 1)] = packet + 1
    this.waiting++
  }

  /** The packet that waits with this number, which is the caller's then, or -1. */
  unhold(sequence: number): number {
    const place = sequence & (STREAM_PLACES - 1)
    const packet = this.packets[place] - 1
    if (packet < 0) return -1
    this.packets[place] = 0
    this.waiting--
    return packet
  }
}
