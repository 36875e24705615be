/** One path: whether it is used, what is known of it, and how much may go on it now. */
import { Arrivals } from './arrivals.ts'
import { Bandwidth } from './bandwidth.ts'
import { CarrierLoss } from './carrier-loss.ts'
import { CARRIER_TRANSITIONS, type CarrierEvent, type CarrierState } from './carrier-state.ts'
import { DeliveryRate } from './delivery-rate.ts'
import { type Fates, InFlight } from './in-flight.ts'
import type { CarrierMetrics } from './metrics.ts'
import { Probes } from './probes.ts'
import { RoundTrip } from './round-trip.ts'
import type { Candidate } from './scheduler.ts'
import type { CarrierSettings } from './settings.ts'
import { TokenBucket } from './token-bucket.ts'

/** Reports go this often at most. */
const MIN_REPORT_NS = 10e6
/** Deliveries are counted over this long at least, ns. */
const MIN_SPAN_NS = 250e6
/** What was sent in a time and takes this much longer to come waits in a queue; that is one of this path where so much of its rate was sent. */
const QUEUE_GROWTH = 1.02
const MIN_LOAD = 0.8
/** Reports that may come after the answer to a probe and tell of what was sent before it. */
const REPORTS_TO_WAIT = 2
/** A carrier is not left before what was sent on it is unreported for this long. */
const MIN_SILENCE_NS = 60e6
/** How much later a carrier is left when no report comes on any. */
const GRACE_NS = 60e6
/** A carrier is not left for what it loses as seldom as that by chance, and none is taken to lose less than this. */
const CHANCE_TO_LEAVE = 1e-4
const MIN_LOSS = 0.02
/** How often a carrier that is left is probed, and one that has nothing to send. */
const PROBE_NS = 100e6
const IDLE_PROBE_NS = 1e9
/** Probes without answer after which a carrier is left, when nothing else was sent that could be reported. */
const PROBES_TO_LEAVE = 2
/** How long after the last packet of a burst a probe asks whether it came, ns at least. */
const MIN_TAIL_NS = 25e6

/** How often the ends of a path with the round trip `rtt` report, ns. */
export const reportInterval = (rtt: number): number => Math.max(rtt / 4, MIN_REPORT_NS)

export class Carrier implements Candidate {
  readonly index: number
  settings: CarrierSettings
  state: CarrierState = 'USED'
  readonly rtt = new RoundTrip()
  /** The same up to the first report of what was sent: shorter where reports come by a shorter path. */
  private readonly told = new RoundTrip()
  readonly bandwidth = new Bandwidth()
  private readonly lossShare = new CarrierLoss()
  private readonly deliveryRate = new DeliveryRate()
  readonly inFlight: InFlight
  readonly arrivals = new Arrivals()
  readonly probes = new Probes()
  readonly metrics: CarrierMetrics
  credit = 0
  /** When the last packet that is to be reported was sent. */
  lastSentAt = Number.NEGATIVE_INFINITY
  /** When what is before `lossBound` and still unreported counts as lost, ns. */
  lossAt = Number.POSITIVE_INFINITY
  lossBound = 0
  /** Packets lost since something was heard of it. */
  private unheard = 0
  private readonly tokens = new TokenBucket()

  constructor(index: number, settings: CarrierSettings, metrics: CarrierMetrics, fates: Fates) {
    this.index = index
    this.settings = settings
    this.metrics = metrics
    this.inFlight = new InFlight({
      reported: (stream, sequence) => {
        this.lossShare.reported(this.isQueued)
        metrics.reported_packets.add(1)
        fates.reported(stream, sequence)
      },
      lost: (stream, sequence) => {
        this.lossShare.lost(this.isQueued)
        metrics.lost_packets.add(1)
        fates.lost(stream, sequence)
      },
    })
  }

  get used(): boolean {
    return this.state === 'USED'
  }

  get priority(): number {
    return this.settings.priority
  }

  /** Bytes per ns that may be sent; Infinity without limit. */
  get pace(): number {
    const { limit, measured } = this.settings
    return measured ? Math.min(limit, this.bandwidth.pace * this.lossShare.surplus) : limit
  }

  /** Share of packets that is lost lately. */
  get loss(): number {
    return this.lossShare.share
  }

  /** How long the way there and back is at most now, ns; Infinity while probes wait for their answers. */
  get mostRtt(): number {
    return this.probes.unanswered > 1 ? Number.POSITIVE_INFINITY : this.rtt.cautious
  }

  private get isQueued(): boolean {
    return this.rtt.isQueued(this.rtt.latest)
  }

  /** Bytes per ns that it is good for in the long run; Infinity when nothing says. */
  get capacity(): number {
    const { limit, measured } = this.settings
    return measured && !this.bandwidth.isStarting ? Math.min(limit, this.bandwidth.rate) : limit
  }

  private get isWindowFull(): boolean {
    const { bandwidth, rtt, told, inFlight, lossShare } = this
    const way = bandwidth.isStarting ? told.least : rtt.least
    return inFlight.bytes >= bandwidth.window(way, reportInterval(rtt.least)) * lossShare.surplus
  }

  /** Whether only its pace leaves it without room, if it has none. */
  get isPaced(): boolean {
    return !(this.settings.measured && this.isWindowFull)
  }

  get room(): number {
    if (this.settings.measured) {
      if (this.isWindowFull) return 0
    } else if (this.settings.limit === Number.POSITIVE_INFINITY) return Number.POSITIVE_INFINITY
    return this.tokens.bytes
  }

  /** When there will be room again, ns; Infinity: a report has to come first, or there is no limit, whatever was owed under one before. */
  get roomAt(): number {
    const { pace, tokens } = this
    return tokens.bytes > 0 || pace === Number.POSITIVE_INFINITY ? Number.POSITIVE_INFINITY : tokens.nextAt(pace)
  }

  /** Brings `room` up to date. */
  refill(now: number): void {
    this.tokens.fill(this.pace, now)
  }

  /** All that waited has gone. */
  runDry(now: number): void {
    if (!this.isWindowFull) this.inFlight.runDry(now)
  }

  /** A packet of `bytes` bytes goes. */
  spend(bytes: number): void {
    if (this.pace !== Number.POSITIVE_INFINITY) this.tokens.spend(bytes)
    this.metrics.sent_packets.add(1)
    this.metrics.sent_bytes.add(bytes)
  }

  /** True when the event changes whether it is used. */
  handle(event: CarrierEvent): boolean {
    const before = this.used
    this.state = CARRIER_TRANSITIONS[this.state][event]
    if (this.used === before) return false
    if (before) this.metrics.times_left.add(1)
    return true
  }

  /** Until when something has to be reported of what is in flight, ns; Infinity: nothing is. */
  get silentAt(): number {
    const { rtt, inFlight, bandwidth, settings } = this
    // While the rate is looked for what is sent waits in the path's queue, longer each time, unless there is too little to send.
    const isQueued = settings.measured && bandwidth.isStarting && bandwidth.rate > 0 && !inFlight.isOldestIdle
    const queued = isQueued ? inFlight.bytes / bandwidth.rate : 0
    const expected = Math.max(rtt.cautious, queued)
    return inFlight.oldestSentAt + Math.max(1.5 * expected + reportInterval(expected), MIN_SILENCE_NS)
  }

  /** When the next probe is due, ns: often while it is left, soon after the last packet of a burst, seldom while it is idle. */
  get probeAt(): number {
    const { probes, inFlight, rtt } = this
    if (!this.used) return probes.lastAt + PROBE_NS
    if (probes.unanswered > 0) return Math.max(probes.lastAt, this.lastSentAt) + PROBE_NS + rtt.cautious
    if (inFlight.packets > 0) return Math.max(probes.lastAt, this.lastSentAt) + Math.max(rtt.smoothed, MIN_TAIL_NS)
    return Math.max(probes.lastAt, this.lastSentAt) + IDLE_PROBE_NS
  }

  /**
   * When it is left, ns, unless more is heard of it; reports have told of what came until `toldUntil`. If that is late enough they should have
   * told of what was sent; otherwise they are lost or on a slower carrier, or one end had no CPU for a moment.
   */
  leftAt(toldUntil: number): number {
    const { silentAt, probes, rtt } = this
    const unreported = silentAt <= toldUntil + rtt.cautious / 2 ? silentAt : silentAt + GRACE_NS
    return probes.unanswered > PROBES_TO_LEAVE ? Math.min(unreported, this.probeAt) : unreported
  }

  /**
   * Whether it is dead now that `leftAt` has come; what should have been reported counts as lost. What a path loses now and then does not make it a dead one:
   * as many have to be missing as are hardly ever lost in a row.
   */
  isDead(now: number): boolean {
    const { inFlight, rtt, probes } = this
    this.unheard += inFlight.loseSentUntil(now - rtt.cautious * 1.125 - reportInterval(rtt.cautious))
    return (
      probes.unanswered > PROBES_TO_LEAVE ||
      this.unheard > Math.log(CHANCE_TO_LEAVE) / Math.log(Math.max(this.loss, MIN_LOSS))
    )
  }

  /** Something was reported of what was sent, or a probe answered. */
  heard(): void {
    this.unheard = 0
    this.lossShare.heard()
    this.probes.unanswered = 0
  }

  /** It is left, and all that is unreported is lost. */
  leave(): void {
    this.handle('silent')
    this.inFlight.loseBefore(this.inFlight.next)
    this.lossShare.forgetUnheard()
  }

  /** What is unreported though a later packet was reported counts as lost after a while; RFC 8985 waits a fourth of the round trip, this an eighth. */
  watch(now: number): void {
    const { inFlight } = this
    if (inFlight.packets === 0) this.lossAt = Number.POSITIVE_INFINITY
    else if (inFlight.overtaken && this.lossAt === Number.POSITIVE_INFINITY) {
      this.lossAt = now + this.rtt.cautious / 8
      this.lossBound = inFlight.highestReported
    }
  }

  /** A probe has its answer: what was sent before it has come too, and will be reported, or is lost; one report may be lost as well. */
  answered(now: number): void {
    const { rtt, inFlight, probes } = this
    this.heard()
    if (inFlight.packets === 0 || this.lossAt !== Number.POSITIVE_INFINITY) return
    this.lossAt = Math.min(now + rtt.cautious / 8 + REPORTS_TO_WAIT * reportInterval(rtt.least), this.silentAt)
    this.lossBound = probes.bound
  }

  /** Takes the round trip of a report, ns. */
  roundTrip(ns: number, now: number): void {
    this.rtt.sample(ns, now)
    this.deliveryRate.meet(ns)
  }

  /** Takes how long it took until a report told of the highest sequence, ns, by whichever carrier it came. */
  toldAfter(ns: number, now: number): void {
    this.told.sample(ns, now)
  }

  /** Measures how fast it delivers, after a report with news; `at` as in `InFlight.report`. */
  measure(at: number, now: number): void {
    const { inFlight, bandwidth, rtt, told, deliveryRate } = this
    const { newest, delivered } = inFlight
    if (!rtt.known) return
    const span = Math.max(rtt.least, MIN_SPAN_NS)
    const isOver = deliveryRate.take(newest.sentAt, at, delivered, span)
    const { sending, arriving, bytes, since, shortest } = deliveryRate
    if (bandwidth.isStarting) {
      const elapsed = Math.max(newest.sentAt - newest.firstSentAt, at - newest.deliveredAt)
      // Over less than the way there and back it would say more of the other end's batches than of the path.
      if (elapsed < told.least) return
      // Where more is in flight than the path holds, and it takes longer, there is no lack of packets. A queue on the way back says nothing.
      const isFilled = this.isQueued && inFlight.bytes > bandwidth.rate * told.least
      const isIdle = (newest.idle || inFlight.dryAt >= newest.sentAt) && !isFilled
      bandwidth.sample((delivered - newest.delivered) / elapsed, isIdle, newest.delivered, delivered)
    } else if (
      isOver &&
      arriving > sending * QUEUE_GROWTH &&
      rtt.isQueued(shortest) &&
      bytes > bandwidth.rate * sending * MIN_LOAD
    ) {
      bandwidth.full(bytes / arriving)
    } else if (isOver) {
      bandwidth.sample(bytes / Math.max(sending, arriving), inFlight.dryAt >= since, newest.delivered, delivered)
    }
    bandwidth.turn(inFlight.bytes, rtt.latest, rtt.least, span, now)
  }

  /** The other end is a new one: what was sent before it was there has shown nothing of the path. */
  reset(): void {
    this.handle('reset')
    this.arrivals.reset()
    this.lossShare.reset()
    this.probes.unanswered = 0
  }

  observe(): void {
    const { metrics } = this
    metrics.used.set(this.used ? 1 : 0)
    metrics.loss.set(this.loss)
    metrics.rtt.set(this.rtt.smoothed)
    metrics.least_rtt.set(this.rtt.known ? this.rtt.least : 0)
    metrics.estimate.set(this.bandwidth.rate * 8e9)
    metrics.in_flight_bytes.set(this.inFlight.bytes)
  }
}
