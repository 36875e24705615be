/** One source's flow at a sink: tells first arrivals from duplicates and late ones, and how many are missing. */

/** How far behind the newest sequence an arrival is still told from a duplicate, packets; a power of two. */
export const FLOW_WINDOW = 65_536
const MASK = FLOW_WINDOW - 1

export type Arrival = 'IN_ORDER' | 'LATE' | 'DUPLICATE'

/** Fixed memory: a bitmap of the last 65,536 sequences. */
export class ProbeFlow {
  /** Arrivals that were no duplicates. */
  unique = 0
  /** Sequences between the first and the newest that have not arrived; goes down when a late one does. */
  lost = 0
  duplicate = 0
  reordered = 0
  /** When the last packet came, ns. */
  last = 0
  finished = false
  private first = 0
  private newest = -1
  private readonly seen = new Int32Array(FLOW_WINDOW / 32)

  /** Begins anew: with a source that was not here before, or, over 0, at the sequence `next`, where what was known of it ends. */
  begin(next: number): void {
    this.unique = 0
    this.lost = 0
    this.duplicate = 0
    this.reordered = 0
    this.finished = false
    this.first = next
    this.newest = next - 1
    this.seen.fill(0)
  }

  /** The sequence after the newest that has come. */
  get next(): number {
    return this.newest + 1
  }

  /**
   * Takes the sequence (0..2^53-1) of an arrival. A flow whose first arrival is within the window counts from 0, so
   * that a lost beginning counts; otherwise the sink came later than the source, and counting starts there. An arrival
   * from before the window is taken for a late one and leaves `lost` as it is.
   */
  take(sequence: number): Arrival {
    const { seen, newest } = this
    if (newest < 0) {
      this.first = sequence < FLOW_WINDOW ? 0 : sequence
      this.newest = this.first - 1
      return this.advance(sequence)
    }
    if (sequence > newest) return this.advance(sequence)
    if (newest - sequence < FLOW_WINDOW) {
      const at = sequence & MASK
      const bit = 1 << (at & 31)
      if ((seen[at >>> 5] & bit) !== 0) {
        this.duplicate++
        return 'DUPLICATE'
      }
      seen[at >>> 5] |= bit
      if (sequence >= this.first) this.lost--
    }
    this.unique++
    this.reordered++
    return 'LATE'
  }

  private advance(sequence: number): Arrival {
    const { seen, newest } = this
    const gap = sequence - newest - 1
    if (gap >= FLOW_WINDOW) seen.fill(0)
    else {
      for (let missing = newest + 1; missing < sequence; missing++) {
        seen[(missing & MASK) >>> 5] &= ~(1 << (missing & 31))
      }
    }
    const at = sequence & MASK
    seen[at >>> 5] |= 1 << (at & 31)
    this.lost += gap
    this.newest = sequence
    this.unique++
    return 'IN_ORDER'
  }
}
