/** The least difference between the clocks of two ends that was seen lately: clocks apart, and the fastest way between them. */
import { ahead } from './serial.ts'

/** Six parts of 10 s: what is older counts no more. */
const PARTS = 6
const PART_NS = 10e9
/** No clock runs so differently, and no path becomes so much shorter, that the offset falls by more at once, microseconds. */
const MAX_FALL_US = 1_000_000
/** Times in a row that say so are believed. */
const FALLS_TO_BELIEVE = 8

/** Times are microseconds modulo 2^32, so that the offset may be anything. */
export class ClockOffset {
  known = false
  /** Arrival on this clock minus sending on the other's, the least of it; meaningful when known. */
  least = 0
  private readonly parts = new Int32Array(PARTS)
  private readonly filled = new Uint8Array(PARTS)
  private part = 0
  private since = 0
  private falls = 0

  /** Takes what was sent at `sent` on the other clock and came at `arrived`; `now` in ns. False: it cannot be. */
  sample(arrived: number, sent: number, now: number): boolean {
    const offset = ahead(arrived, sent)
    if (!this.known) this.begin(offset, now)
    const fall = ahead(this.least, offset)
    if (fall > MAX_FALL_US) {
      if (++this.falls < FALLS_TO_BELIEVE) return false
      this.begin(offset, now)
    }
    this.falls = 0
    while (now - this.since > PART_NS) this.turn(now)
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
    this.falls = 0
  }

  private begin(offset: number, now: number): void {
    this.known = true
    this.filled.fill(0)
    this.parts[this.part] = offset
    this.filled[this.part] = 1
    this.least = offset
    this.since = now
  }

  private turn(now: number): void {
    this.part = (this.part + 1) % PARTS
    this.filled[this.part] = 0
    this.since = now - this.since > PARTS * PART_NS ? now : this.since + PART_NS
    this.compare()
  }

  private compare(): void {
    let first = true
    for (let i = 0; i < PARTS; i++) {
      if (this.filled[i] === 0 || (!first && ahead(this.parts[i], this.least) >= 0)) continue
      this.least = this.parts[i]
      first = false
    }
  }
}
