/** What a carrier delivered over a while, from what reports say one after the other: the longer the while, the less a burst or a late wake-up counts. */

/** Points in time that are kept, and how many of them the while has. */
const POINTS = 32
const POINTS_OF_A_WHILE = 8

export class DeliveryRate {
  /** Of the last `take`: bytes delivered in a while, the time they took to be sent and to arrive, ns, and when the first of them was sent. */
  bytes = 0
  sending = 0
  arriving = 0
  since = 0
  /** The shortest round trip told of in that while, ns, 0 when none was: where it is long, a queue stood all the time. */
  shortest = 0
  private readonly sentAt = new Float64Array(POINTS)
  private readonly cameAt = new Float64Array(POINTS)
  private readonly delivered = new Float64Array(POINTS)
  /** The shortest round trip since the point before. */
  private readonly trips = new Float64Array(POINTS)
  private trip = Number.POSITIVE_INFINITY
  private count = 0

  /** Takes a round trip, ns. */
  meet(rtt: number): void {
    this.trip = Math.min(this.trip, rtt)
  }

  /**
   * Takes that `delivered` bytes have come when the packet sent at `sentAt` came, at `cameAt`, all since the start. True: a while of at
   * least `least` ns is over, and the fields are set.
   */
  take(sentAt: number, cameAt: number, delivered: number, least: number): boolean {
    const isOver = this.look(sentAt, cameAt, delivered, least)
    const last = (this.count - 1) % POINTS
    if (this.count === 0 || cameAt - this.cameAt[last] >= least / POINTS_OF_A_WHILE) {
      const place = this.count++ % POINTS
      this.sentAt[place] = sentAt
      this.cameAt[place] = cameAt
      this.delivered[place] = delivered
      this.trips[place] = this.trip
      this.trip = Number.POSITIVE_INFINITY
    }
    return isOver
  }

  private look(sentAt: number, cameAt: number, delivered: number, least: number): boolean {
    let shortest = this.trip
    for (let i = this.count - 1; i >= 0 && i >= this.count - POINTS; i--) {
      const place = i % POINTS
      if (cameAt - this.cameAt[place] < least) {
        shortest = Math.min(shortest, this.trips[place])
        continue
      }
      this.shortest = shortest === Number.POSITIVE_INFINITY ? 0 : shortest
      this.bytes = delivered - this.delivered[place]
      this.sending = sentAt - this.sentAt[place]
      this.arriving = cameAt - this.cameAt[place]
      this.since = this.sentAt[place]
      return true
    }
    return false
  }
}
