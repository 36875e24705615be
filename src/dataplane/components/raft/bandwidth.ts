/**
 * How fast a carrier delivers, and how fast to send on it: the model of BBR (draft-cardwell-iccrg-bbr-congestion-control): the
 * most that was delivered in one of the last rounds, sent at with gains that look for more and drain what that has queued.
 */

/** As fast a start as doubles the rate each round: 4 ln 2. */
const STARTUP_GAIN = 2.77
/** The rate has to grow by a quarter in three rounds, or the path is full. */
const GROWTH = 1.25
const ROUNDS_TO_BE_FULL = 3
/** Gain of each round trip once the rate is known: a little less than all, so that queues empty. */
const CYCLE: readonly number[] = [1.15, 0.85, 0.97, 0.97, 0.97, 0.97, 0.97, 0.97]
/** Rounds over which the most counts. */
const ROUNDS = 10
/** In flight at most, in products of rate and round trip: what is more waits in the path's queue, which is seldom long. */
const WINDOW_GAIN = 1
const STARTUP_WINDOW_GAIN = 1.5
/** For reports that come a little late, and packets that are lost without being known to be, ns. */
const MARGIN_NS = 12e6
/** Bytes in flight that are always allowed, and bytes per ns (10 Mbit/s) while the rate is looked for. */
const FIRST_WINDOW = 48_000
const FIRST_RATE = 10 / 8000

export class Bandwidth {
  /** Bytes per ns delivered at most in one of the last rounds; 0 while nothing is known. */
  rate = 0
  private readonly best = new Float64Array(ROUNDS)
  private round = 0
  private roundFilled = false
  private roundEnd = 0
  private mode: 'STARTUP' | 'DRAIN' | 'STEADY' = 'STARTUP'
  private fullRate = 0
  private fullRounds = 0
  private cycle = 0
  private cycleSince = 0

  /** Whether it still looks for the rate, and fills queues on the way doing so. */
  get isStarting(): boolean {
    return this.mode === 'STARTUP'
  }

  /** Bytes per ns to send at. */
  get pace(): number {
    if (this.mode === 'STARTUP') return Math.max(FIRST_RATE, this.rate * STARTUP_GAIN)
    return this.mode === 'DRAIN' ? this.rate / STARTUP_GAIN : this.rate * CYCLE[this.cycle]
  }

  /** Bytes that may be in flight; `wait` is how long the other end takes to report, ns. */
  window(leastRtt: number, wait: number): number {
    if (this.rate === 0) return FIRST_WINDOW
    const gain = this.mode === 'STARTUP' ? STARTUP_WINDOW_GAIN : WINDOW_GAIN
    return Math.max(FIRST_WINDOW, this.rate * (gain * leastRtt + wait + MARGIN_NS))
  }

  /**
   * Takes one measurement: `rate` bytes per ns over the time of a packet in flight that was sent when `before` bytes had been
   * delivered, of `delivered` now; `idle`: the sender had too little to send; `full`: a queue grew on the path, so that this is all it
   * carries, whatever a burst may have shown before. `flying` bytes are in flight.
   */
  sample(
    rate: number,
    idle: boolean,
    full: boolean,
    before: number,
    delivered: number,
    flying: number,
    leastRtt: number,
    now: number,
  ): void {
    if (this.mode === 'STARTUP' && before >= this.roundEnd) this.endRound(delivered)
    if (full && rate < this.rate) {
      this.best.fill(0)
      this.best[this.round] = (this.rate + rate) / 2
      this.rate = this.best[this.round]
      if (this.mode === 'STARTUP') this.mode = 'DRAIN'
    } else if (!idle || rate > this.rate) {
      this.roundFilled ||= !idle
      if (rate > this.best[this.round]) this.best[this.round] = rate
      this.rate = most(this.best)
    }
    if (this.mode === 'DRAIN' && flying <= this.rate * leastRtt) {
      this.mode = 'STEADY'
      this.cycle = 2
      this.cycleSince = now
    } else if (this.mode === 'STEADY' && now - this.cycleSince > leastRtt) {
      this.cycle = (this.cycle + 1) % CYCLE.length
      this.cycleSince = now
      this.endRound(delivered)
    }
  }

  /** The most ages only by rounds in which the path was kept busy. */
  private endRound(delivered: number): void {
    this.roundEnd = delivered
    if (!this.roundFilled) return
    this.roundFilled = false
    if (this.mode === 'STARTUP') {
      if (this.rate >= this.fullRate * GROWTH) {
        this.fullRate = this.rate
        this.fullRounds = 0
      } else if (++this.fullRounds >= ROUNDS_TO_BE_FULL) this.mode = 'DRAIN'
    }
    this.round = (this.round + 1) % ROUNDS
    this.best[this.round] = 0
    this.rate = most(this.best)
  }

  reset(): void {
    this.rate = 0
    this.best.fill(0)
    this.roundFilled = false
    this.roundEnd = 0
    this.mode = 'STARTUP'
    this.fullRate = 0
    this.fullRounds = 0
  }
}

function most(values: Float64Array): number {
  let found = 0
  for (let i = 0; i < values.length; i++) if (values[i] > found) found = values[i]
  return found
}
