/** What a rely_decoder knows of one encoder's session: its sliding window, since when sources are missing, and what waits for them. */
import { SlidingDecoder } from '../../codes/sliding-decoder.ts'
import { MAX_WINDOW, type SlidingWindowOptions } from '../../codes/sliding-window.ts'
import type { LossShare } from './block-counters.ts'
import { ELSEWHERE, FOLLOWED, MAX_LEAP, OPEN, RelyLeap, SOURCES_TO_FOLLOW } from './rely-leap.ts'

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
  /** New sources that came, and those out of reach since the last that was not, near each other; which these are. */
  sources = 0
  private outOfReach = 0
  private readonly farOff = new Int32Array(SOURCES_TO_FOLLOW)
  /** The leap ahead that is not decided. */
  private readonly leap = new RelyLeap()
  /** Since when, and up to which number, packets wait for their turn that came beyond a leap; Infinity where none does. */
  aheadSince = Number.POSITIVE_INFINITY
  aheadEnd = 0
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
    this.leap.end()
    this.aheadSince = Number.POSITIVE_INFINITY
  }

  /** The newest source that the session has surely come to. */
  get settled(): number {
    return this.leap.pending ? this.leap.from : this.decoder.newest
  }

  /** A source `ahead` of the newest is about to be taken: one far beyond a leap makes another one, from where that began. */
  expect(ahead: number, now: number): void {
    if (ahead > MAX_LEAP) this.takeBack(now)
  }

  /** A source has been taken that had not come before, at `now`; `newest` was the newest before it. */
  hear(sequence: number, newest: number, now: number): void {
    const { leap, decoder } = this
    this.sources++
    this.outOfReach = 0
    if (!leap.pending) {
      this.goOn(sequence, newest, now)
      return
    }
    this.showUpTo(sequence, newest, now)
    const said = leap.hear(sequence)
    if (said === FOLLOWED) {
      this.show((leap.from + 1) | 0, leap.to, leap.since)
      leap.end()
      if (((this.aheadEnd - decoder.newest) | 0) <= 0) this.aheadSince = Number.POSITIVE_INFINITY
    } else if (said !== OPEN) {
      this.takeBack(now)
      if (said !== ELSEWHERE) return
      const { newest: before } = decoder
      decoder.follow(sequence)
      this.goOn(sequence, before, now)
    }
  }

  /** A source was recovered, at `now`: where it is ahead of all that came it shows, as one that comes would, that those before it are missing. */
  hearRecovered(sequence: number, now: number): void {
    const { leap, decoder } = this
    const { newest } = decoder
    if (leap.pending || ((sequence - newest) | 0) <= 0) return
    decoder.follow(sequence)
    this.goOn(sequence, newest, now)
    this.show(sequence, (sequence + 1) | 0, now)
  }

  private goOn(sequence: number, newest: number, now: number): void {
    if (((sequence - newest) | 0) > MAX_LEAP) this.leap.begin(newest, sequence, now)
    else this.showUpTo(sequence, newest, now)
  }

  /** A leap that is not decided was none. */
  takeBack(now: number): void {
    const { leap } = this
    if (!leap.pending) return
    this.show((leap.from + 1) | 0, leap.newest, now)
    this.decoder.retreat(leap.newest)
    leap.end()
  }

  /** Whether a source that is out of reach is one of those noted. */
  knowsFarOff(sequence: number): boolean {
    for (let n = 0; n < this.outOfReach; n++) if (this.farOff[n] === sequence) return true
    return false
  }

  /** Notes a source that is out of reach. Whether so many in a row were near each other that they are followed. */
  hearFarOff(sequence: number): boolean {
    const { farOff } = this
    if (this.outOfReach > 0 && Math.abs((sequence - farOff[this.outOfReach - 1]) | 0) > MAX_WINDOW) this.outOfReach = 0
    farOff[this.outOfReach++] = sequence
    return this.outOfReach === SOURCES_TO_FOLLOW
  }

  /** The session has gone on where those out of reach are, with the last of them: the others have passed. */
  followFarOff(sequence: number): void {
    this.restart(sequence)
    for (const passed of this.farOff) if (passed !== sequence) this.decoder.notePassed(passed)
  }

  /** Those between `newest`, which was the newest, and `sequence`, where that is ahead of it, are missing. */
  showUpTo(sequence: number, newest: number, now: number): void {
    if (((sequence - newest) | 0) > 1) this.show((newest + 1) | 0, sequence, now)
  }

  /** Notes that sources from `first` up to, not including, `end` have been shown to be missing at `now`. */
  private show(first: number, end: number, now: number): void {
    for (let sequence = first; ((end - sequence) | 0) > 0; sequence = (sequence + 1) | 0) {
      this.shownAt[sequence & (STREAM_PLACES - 1)] = now
    }
  }

  /** When the oldest missing source was shown to be; Infinity when none is, but for those that a leap that is not decided leaves out. */
  get missingSince(): number {
    const { decoder } = this
    if (decoder.missing === 0) return Number.POSITIVE_INFINITY
    const oldest = decoder.firstOpen()
    if (((oldest - this.settled) | 0) > 0) return Number.POSITIVE_INFINITY
    return this.shownAt[oldest & (STREAM_PLACES - 1)]
  }

  /**
   * Decides of the sources up to the first that may still come: `loss` is told which came and which were lost, having been shown to be
   * missing at `overdue` or before.
   */
  decide(loss: LossShare, overdue: number): void {
    const { decoder, shownAt } = this
    for (let ahead = (this.settled - this.undecided) | 0; ahead >= 0; ahead--) {
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
    if (!this.leap.pending || ((sequence - this.leap.from) | 0) <= 0) return
    const isFirst = this.aheadSince === Number.POSITIVE_INFINITY
    if (isFirst) this.aheadSince = this.leap.since
    if (isFirst || ((sequence - this.aheadEnd) | 0) > 0) this.aheadEnd = sequence
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
