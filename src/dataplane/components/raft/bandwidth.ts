/**
 * How fast a carrier delivers, and how fast to send on it: the model of BBR (draft-cardwell-iccrg-bbr-congestion-control, version 2 of it): the
 * most that was delivered lately, sent at with gains that look for more and drain what that has queued. A queue that stands says what the path carries, also
 * when there was too little to send in between.
 */

export type BandwidthMode = 'STARTUP' | 'DRAIN' | 'CRUISE' | 'UP' | 'DOWN'

/** How much of the rate is sent; as fast a start as doubles the rate each round: 4 ln 2. */
const GAINS: Readonly<Record<BandwidthMode, number>> = {
  STARTUP: 2.77,
  DRAIN: 1 / 2.77,
  CRUISE: 0.99,
  UP: 1.1,
  DOWN: 0.85,
}
/** The rate has to grow by a quarter in three rounds, or the path is full. */
const GROWTH = 1.25
const ROUNDS_TO_BE_FULL = 3
/** Looking for more goes on while it finds this much more. */
const UP_GROWTH = 1.03
/** Looking for more ends where it has queued this much, ns. */
const MAX_QUEUED_NS = 25e6
/** Weight of one measurement of a full path. */
const FULL_WEIGHT = 1 / 4
/** Whiles between looking for more. */
const CRUISE_WHILES = 3
/** Times of looking for more over which the most counts. */
const ROUNDS = 4
/** In flight at most, in products of rate and round trip: what is more waits in the path's queue, which is seldom long. */
const WINDOW_GAIN = 1
/** While the rate is looked for it has to grow; much more overflows the queue of a long path. */
const STARTUP_WINDOW_GAIN = 1.2
/** For reports that come a little late, and packets that are lost without being known to be, ns. */
const MARGIN_NS = 12e6
/** Bytes in flight that are always allowed, and bytes per ns (10 Mbit/s) while the rate is looked for. */
const FIRST_WINDOW = 48_000
const FIRST_RATE = 10 / 8000

export class Bandwidth {
  /** Bytes per ns delivered at most lately; 0 while nothing is known. */
  rate = 0
  private mode: BandwidthMode = 'STARTUP'
  private readonly best = new Float64Array(ROUNDS)
  private round = 0
  private roundFilled = false
  private roundEnd = 0
  private fullRate = 0
  private fullRounds = 0
  /** Since when it is in its mode, ns, and the rate that it has to exceed by looking for more. */
  private since = 0
  private rateBefore = 0
  /** The round trip before that. */
  private rttBefore = 0

  /** Whether it still looks for the rate, and fills queues on the way doing so. */
  get isStarting(): boolean {
    return this.mode === 'STARTUP'
  }

  /** Bytes per ns to send at. */
  get pace(): number {
    const pace = this.rate * GAINS[this.mode]
    return this.mode === 'STARTUP' ? Math.max(FIRST_RATE, pace) : pace
  }

  /** Bytes that may be in flight; `wait` is how long the other end takes to report, ns. */
  window(leastRtt: number, wait: number): number {
    if (this.rate === 0) return FIRST_WINDOW
    const gain = this.mode === 'STARTUP' ? STARTUP_WINDOW_GAIN : WINDOW_GAIN
    return Math.max(FIRST_WINDOW, this.rate * (gain * leastRtt + wait + MARGIN_NS))
  }

  /**
   * Takes one measurement: `rate` bytes per ns over the time of a packet in flight that was sent when `before` bytes had been
   * delivered, of `delivered` now; `idle`: the sender had too little to send.
   */
  sample(rate: number, idle: boolean, before: number, delivered: number): void {
    if (this.mode === 'STARTUP' && before >= this.roundEnd) this.endRoundOfStart(delivered)
    if (idle && rate <= this.rate) return
    this.roundFilled ||= !idle
    if (rate > this.best[this.round]) this.best[this.round] = rate
    this.rate = most(this.best)
  }

  /** A queue stood on the path while it delivered `rate` bytes per ns: this is what it carries, whatever a burst may have shown before. */
  full(rate: number): void {
    this.rate += (rate - this.rate) * FULL_WEIGHT
    this.best.fill(0)
    this.best[this.round] = this.rate
  }

  /** Goes on to the next mode when its time has come: `flying` bytes are in flight; `span` is the while that deliveries are counted over, ns. */
  turn(flying: number, rtt: number, leastRtt: number, span: number, now: number): void {
    const elapsed = now - this.since
    switch (this.mode) {
      case 'DRAIN':
        if (flying <= this.rate * leastRtt) this.enter('CRUISE', now)
        return
      case 'CRUISE':
        if (elapsed <= CRUISE_WHILES * span) return
        this.rateBefore = this.rate
        this.rttBefore = rtt
        this.enter('UP', now)
        return
      case 'UP':
        if (rtt > this.rttBefore + MAX_QUEUED_NS) this.enter('DOWN', now)
        else if (elapsed > span + leastRtt) this.goOnUp(now)
        return
      case 'DOWN':
        if (rtt > this.rttBefore && elapsed <= span) return
        this.endRound()
        this.enter('CRUISE', now)
    }
  }

  private goOnUp(now: number): void {
    const isMore = this.rate > this.rateBefore * UP_GROWTH
    this.rateBefore = this.rate
    this.enter(isMore ? 'UP' : 'DOWN', now)
  }

  private enter(mode: BandwidthMode, now: number): void {
    this.mode = mode
    this.since = now
  }

  private endRoundOfStart(delivered: number): void {
    this.roundEnd = delivered
    if (!this.roundFilled) return
    if (this.rate >= this.fullRate * GROWTH) {
      this.fullRate = this.rate
      this.fullRounds = 0
    } else if (++this.fullRounds >= ROUNDS_TO_BE_FULL) this.mode = 'DRAIN'
    this.endRound()
  }

  /** The most ages only by rounds in which the path was kept busy. */
  private endRound(): void {
    if (!this.roundFilled) return
    this.roundFilled = false
    this.round = (this.round + 1) % ROUNDS
    this.best[this.round] = 0
    this.rate = most(this.best)
  }
}

function most(values: Float64Array): number {
  let found = 0
  for (let i = 0; i < values.length; i++) if (values[i] > found) found = values[i]
  return found
}
