/** Clock rates of RTP timestamps: by payload type (RFC 3551, section 6), or from how fast they advance. */
import { NS_PER_S } from '../../engine/clock.ts'

/** Time that a rate is estimated over, ns. */
const ESTIMATION_NS = 2e9

/** Rates that an estimate is one of, Hz. */
const USUAL = [8000, 12_000, 16_000, 24_000, 32_000, 44_100, 48_000, 90_000]

/** By payload type; 0: the type says nothing of it. */
const RATES = new Uint32Array(128)
for (const type of [0, 3, 4, 5, 7, 8, 9, 12, 13, 15, 18]) RATES[type] = 8000
RATES[6] = 16_000
RATES[10] = RATES[11] = 44_100
RATES[16] = 11_025
RATES[17] = 22_050
for (const type of [14, 25, 26, 28, 31, 32, 33, 34]) RATES[type] = 90_000

/** The usual rate whose ratio to `rate` (Hz, above 0) is nearest to 1. */
function nearest(rate: number): number {
  let chosen = USUAL[0]
  for (const usual of USUAL)
    if (Math.max(usual / rate, rate / usual) < Math.max(chosen / rate, rate / chosen)) chosen = usual
  return chosen
}

/** The clock of one stream. */
export class RtpClock {
  /** Hz; 0: not known yet. */
  rate = 0
  private firstTimestamp = 0
  private firstArrival = 0
  /** Of the packets since the first: sums of ticks and seconds since it, of their squares and products. */
  private packets = 0
  private ticks = 0
  private seconds = 0
  private squares = 0
  private products = 0

  begin(timestamp: number, arrival: number): void {
    this.rate = 0
    this.jump(timestamp, arrival)
  }

  /** Timestamps go on from elsewhere: an estimate under way begins anew. */
  jump(timestamp: number, arrival: number): void {
    this.firstTimestamp = timestamp
    this.firstArrival = arrival
    this.packets = 1
    this.ticks = 0
    this.seconds = 0
    this.squares = 0
    this.products = 0
  }

  /**
   * A packet came: `timestamp` in 32 bits, `arrival` in ns. A type whose rate is known sets it; one whose rate is not leaves it as it is once there
   * is one, for what shares a stream with others, such as telephone events (RFC 4733), has their clock.
   */
  take(payloadType: number, timestamp: number, arrival: number): void {
    const known = RATES[payloadType]
    if (known > 0) this.rate = known
    else if (this.rate === 0) this.estimate(timestamp, arrival)
  }

  /** The line through arrivals over timestamps with the least squares: every packet counts, so that jitter evens out. */
  private estimate(timestamp: number, arrival: number): void {
    const ticks = (timestamp - this.firstTimestamp) | 0
    const seconds = (arrival - this.firstArrival) / NS_PER_S
    this.packets++
    this.ticks += ticks
    this.seconds += seconds
    this.squares += ticks * ticks
    this.products += ticks * seconds
    if (arrival - this.firstArrival < ESTIMATION_NS) return
    const variance = this.squares - (this.ticks * this.ticks) / this.packets
    const covariance = this.products - (this.ticks * this.seconds) / this.packets
    if (variance > 0 && covariance > 0) this.rate = nearest(variance / covariance)
    else this.jump(timestamp, arrival)
  }
}
