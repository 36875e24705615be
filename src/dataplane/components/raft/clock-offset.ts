/** The least difference between the clocks of two ends that was seen lately: clocks apart, and the fastest way between them. */
import { ahead } from './serial.ts'

/** Six parts of 10 s: what is older counts no more. */
const PARTS = 6
const PART_NS = 10e9
/** No clock runs so differently, and no path becomes so much shorter, that the offset falls by more at once, microseconds. */
const MAX_FALL_US = 1_000_000
/** Times in a row that say so are believed. */
const FALLS_TO_BELIEVE = 8
/**
 * Where for this long every packet seems to take so much longer than it can, the other clock has stood still, as that of a machine does that is
 * suspended. A queue on the way is in the round trip too, of which a probe tells in less time.
 */
const RISE_NS = 5_000_000_000

/** Times are microseconds modulo 2^32, so that the offset may be anything. */
export class ClockOffset {
  known = false
  /** Arrival on this clock minus sending on the other's, the least of it; meaningful when known. */
  least = 0
  private readonly parts = new Int32Array(PARTS)
  private readonly filled = new Uint8Array(PARTS)
  private part = 0
  private since = 0
  /** What no time may be far below: the least, that of before a pause or a rise until the next part begins. */
  private trusted = 0
  private falls = 0
  /** Times in a row that are later than can be, and since when, ns. */
  private rises = 0
  private risenAt = 0

  /** Takes what was sent at `sent` on the other clock and came at `arrived`; `now`, and `most`, what it may have taken at most, in ns. False: it cannot be. */
  sample(arrived: number, sent: number, now: number, most: number): boolean {
    const offset = ahead(arrived, sent)
    if (!this.known) this.trust(offset, now)
    // What came first after a pause or a rise may have been long under way, or wrong.
    if (ahead(this.trusted, offset) > MAX_FALL_US) {
      if (++this.falls < FALLS_TO_BELIEVE) return false
      this.trust(offset, now)
    }
    this.falls = 0
    const isStale = now - this.since > (PARTS + 1) * PART_NS
    if (isStale || this.hasRisen(offset, now, most)) this.begin(offset, now)
    while (now - this.since > PART_NS) this.turn()
    const { parts, filled, part } = this
    if (filled[part] === 0 || ahead(parts[part], offset) > 0) {
      parts[part] = offset
      filled[part] = 1
      this.compare()
    }
    return true
  }

  reset(): void {
    this.known = false
  }

  /** Whether all that came lately, and this, says that the clocks are further apart than they were. */
  private hasRisen(offset: number, now: number, most: number): boolean {
    const rise = ahead(offset, this.least)
    if (rise <= MAX_FALL_US) this.rises = 0
    if (rise <= MAX_FALL_US + most / 1000) return false
    if (this.rises++ === 0) this.risenAt = now
    return this.rises >= FALLS_TO_BELIEVE && now - this.risenAt >= RISE_NS
  }

  private trust(offset: number, now: number): void {
    this.begin(offset, now)
    this.trusted = offset
  }

  private begin(offset: number, now: number): void {
    this.known = true
    this.filled.fill(0)
    this.parts[this.part] = offset
    this.filled[this.part] = 1
    this.least = offset
    this.since = now
    this.rises = 0
  }

  private turn(): void {
    this.part = (this.part + 1) % PARTS
    this.filled[this.part] = 0
    this.since += PART_NS
    this.compare()
    this.trusted = this.least
  }

  private compare(): void {
    let first = true
    for (let i = 0; i < PARTS; i++) {
      if (this.filled[i] === 0 || (!first && ahead(this.parts[i], this.least) >= 0)) continue
      this.least = this.parts[i]
      first = false
    }
    if (ahead(this.trusted, this.least) > 0) this.trusted = this.least
  }
}
