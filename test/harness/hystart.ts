/** When CUBIC leaves slow start before anything is lost: HyStart (Ha and Rhee, 2011) as Linux has it in net/ipv4/tcp_cubic.c. */

const MS = 1e6
/** Segments below which slow start is never left. */
const LOW_WINDOW = 16
/** Acknowledgements further apart than this belong to no train. */
const TRAIN_GAP = 2 * MS
/** Round trips of a round that are needed to compare it. */
const MIN_SAMPLES = 8
/** How much longer than the shortest a round trip is that has met a queue: an eighth of it, within these. */
const MIN_RISE = 4 * MS
const MAX_RISE = 16 * MS

export class HyStart {
  private least = Number.POSITIVE_INFINITY
  private roundEnd = -1
  private roundAt = 0
  private trainAt = 0
  private shortest = Number.POSITIVE_INFINITY
  private samples = 0

  /**
   * Takes an acknowledgement that came at `now` with the round trip `rtt`, ns: everything before segment `first` is acknowledged, `next` is the next one to be
   * sent. True: slow start is over.
   */
  isOver(rtt: number, window: number, first: number, next: number, now: number): boolean {
    this.least = Math.min(this.least, rtt)
    if (window < LOW_WINDOW) return false
    if (first > this.roundEnd) {
      this.roundEnd = next
      this.roundAt = now
      this.trainAt = now
      this.shortest = Number.POSITIVE_INFINITY
      this.samples = 0
    }
    if (now - this.trainAt <= TRAIN_GAP) {
      this.trainAt = now
      // Half the way there and back, as nothing paces the segments.
      if (now - this.roundAt > this.least / 2) return true
    }
    this.shortest = Math.min(this.shortest, rtt)
    if (++this.samples <= MIN_SAMPLES) return false
    return this.shortest > this.least + Math.min(Math.max(this.least / 8, MIN_RISE), MAX_RISE)
  }
}
