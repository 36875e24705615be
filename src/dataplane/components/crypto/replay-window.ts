/** Which of the last packet counters have been seen (RFC 4303, section 3.4.3, with a window as a ring of bits). */

/** Counters that the window spans, the highest seen and those below it. */
export const REPLAY_WINDOW = 1024

export class ReplayWindow {
  /** Highest counter seen, -1 before the first. */
  highest = -1
  private readonly seen = new Int32Array(REPLAY_WINDOW / 32)

  /** Takes note of a counter (a whole number below 2^53); false when it was seen before or is older than the window. */
  accept(counter: number): boolean {
    const { seen } = this
    const ahead = counter - this.highest
    // ToInt32 takes a double modulo 2^32, so this is the counter modulo the window for all of them.
    const bit = counter & (REPLAY_WINDOW - 1)
    if (ahead > 0) {
      if (ahead >= REPLAY_WINDOW) seen.fill(0)
      else for (let n = 1; n < ahead; n++) this.clear((bit - n) & (REPLAY_WINDOW - 1))
      this.highest = counter
      seen[bit >>> 5] |= 1 << (bit & 31)
      return true
    }
    if (ahead <= -REPLAY_WINDOW) return false
    const mask = 1 << (bit & 31)
    if ((seen[bit >>> 5] & mask) !== 0) return false
    seen[bit >>> 5] |= mask
    return true
  }

  /** Forgets everything. */
  reset(): void {
    this.highest = -1
    this.seen.fill(0)
  }

  private clear(bit: number): void {
    this.seen[bit >>> 5] &= ~(1 << (bit & 31))
  }
}
