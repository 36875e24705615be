/** One end of a bonding transport: its streams and carriers, and when something has to be done about them. */
import { SlidingDecoder } from '../../codes/sliding-decoder.ts'
import { SlidingEncoder } from '../../codes/sliding-encoder.ts'
import type { Batch } from '../../engine/batch.ts'
import type { RunClock } from '../../engine/clock.ts'
import type { Log } from '../../engine/log.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Timer } from '../../engine/timers.ts'
import { Answers } from './answers.ts'
import { Carrier, reportInterval } from './carrier.ts'
import { ClockOffset } from './clock-offset.ts'
import { Control } from './control.ts'
import { Losses } from './losses.ts'
import type { CarrierMetrics, RaftMetrics, StreamMetrics } from './metrics.ts'
import { SYMBOL_HEADER_BYTES } from './packet.ts'
import { Receiving } from './receiving.ts'
import { Sending } from './sending.ts'
import type { CarrierSettings, StreamSettings } from './settings.ts'
import { StreamReceiver } from './stream-receiver.ts'
import { REPAIR_WINDOW, StreamSender } from './stream-sender.ts'

/** Packets unreported on one carrier for which a report does not wait. */
const MANY_UNREPORTED = 256
/** Pieces of a repair that a decoder has room for at first. */
const FIRST_DECODER_WINDOW = 128

export interface TransportSettings {
  streams: readonly StreamSettings[]
  carriers: readonly CarrierSettings[]
  /** Longest packet on a carrier, bytes; most bytes of a payload in one. */
  packetBytes: number
  pieceBytes: number
}

export interface TransportContext {
  readonly packets: Packets
  readonly clock: RunClock
  readonly metrics: RaftMetrics
  readonly log: Log
  /** Of each stream, in their order; null without output. */
  readonly streamOutlets: readonly (Outlet | null)[]
  readonly carrierOutlets: readonly Outlet[]
  readonly streamMetrics: readonly StreamMetrics[]
  readonly carrierMetrics: readonly CarrierMetrics[]
  entropy(bytes: number): Uint8Array
  memory(): number
  timer(fire: () => void): Timer
}

export class Transport {
  readonly streams: readonly StreamSender[]
  readonly carriers: readonly Carrier[]
  private readonly context: TransportContext
  private readonly receivers: readonly (StreamReceiver | null)[]
  private readonly sending: Sending
  private readonly receiving: Receiving
  private readonly control: Control
  private readonly pumpTimer: Timer
  private readonly releaseTimer: Timer
  private readonly reportTimer: Timer
  private readonly checkTimer: Timer
  private readonly answerTimer: Timer
  private readonly losses = new Losses()
  private reportedAt = Number.NEGATIVE_INFINITY
  private readonly answers: Answers

  constructor(context: TransportContext, settings: TransportSettings) {
    this.context = context
    const { packets, clock, metrics, log } = context
    const { carrierOutlets, streamOutlets, carrierMetrics, streamMetrics } = context
    const [a, b, c, d] = context.entropy(4)
    const session = (a << 24) | (b << 16) | (c << 8) | d
    const offset = new ClockOffset()
    this.carriers = settings.carriers.map((own, i) => {
      const carrier: Carrier = new Carrier(i, own, carrierMetrics[i], {
        reported: (stream, sequence) => this.reported(stream, sequence),
        lost: (stream, sequence) => this.lost(carrier, stream, sequence),
      })
      return carrier
    })
    const code = (window: number, symbolBytes: number) => ({ memory: context.memory(), window, symbolBytes })
    const { pieceBytes } = settings
    const forReceivers = {
      ...{ packets, clock, metrics, offset, symbolBytes: pieceBytes + SYMBOL_HEADER_BYTES },
      makeDecoder: (symbolBytes: number) => new SlidingDecoder(code(FIRST_DECODER_WINDOW, symbolBytes)),
    }
    const makeEncoder = () => new SlidingEncoder(code(REPAIR_WINDOW, pieceBytes + SYMBOL_HEADER_BYTES))
    const forSenders = { packets, clock, metrics, makeEncoder }
    this.streams = settings.streams.map((own, i) => new StreamSender(forSenders, own, streamMetrics[i], pieceBytes))
    this.receivers = settings.streams.map((own, i) => {
      const outlet = streamOutlets[i]
      return outlet && new StreamReceiver(forReceivers, own, streamMetrics[i], outlet)
    })
    const byHandle = new Map(settings.streams.map(({ handle }, i) => [handle, this.receivers[i]]))
    this.sending = new Sending(context, session, this.carriers, carrierOutlets, this.streams)
    this.control = new Control(context, session, this.carriers, carrierOutlets, settings.packetBytes)
    this.answers = new Answers(this.carriers.length)
    this.pumpTimer = context.timer(() => this.pump())
    this.releaseTimer = context.timer(() => this.release())
    this.reportTimer = context.timer(() => this.report())
    this.checkTimer = context.timer(() => this.check())
    this.answerTimer = context.timer(() => this.answer())
    this.receiving = new Receiving({ packets, clock, metrics, offset, log }, session, this.carriers, byHandle, {
      arrived: (carrier) => this.arrived(carrier),
      reported: () => this.wake(this.pumpTimer),
      probed: (token, prober, carrier) => this.probed(token, prober, carrier),
      doubted: (carrier) => this.doubted(carrier),
      returned: ({ settings }) => {
        const carrier = settings.handle >>> 0
        log('INFO', `carrier ${carrier} is used again`, { carrier })
      },
    })
    this.sending.refresh()
    this.wake(this.checkTimer)
  }

  /** Packets that wait, and copies that are kept. */
  get held(): number {
    let sum = 0
    for (const stream of this.streams) sum += stream.held
    for (const receiver of this.receivers) sum += receiver?.held ?? 0
    return sum
  }

  /** Takes packets of the application. */
  takeStream(batch: Batch, index: number): void {
    const stream = this.streams[index]
    const { capacity } = this.sending
    const { handles, length } = batch
    for (let i = 0; i < length; i++) stream.enqueue(handles[i], capacity)
    this.wake(this.pumpTimer)
  }

  /** Takes packets of a path. */
  takeCarrier(batch: Batch, index: number): void {
    this.receiving.input(batch, this.carriers[index])
  }

  /** Takes over other settings, of the same streams and carriers. */
  reconfigure({ streams, carriers }: TransportSettings): void {
    streams.forEach((own, i) => {
      this.streams[i].settings = own
      const receiver = this.receivers[i]
      if (receiver) receiver.settings = own
    })
    carriers.forEach((own, i) => {
      this.carriers[i].settings = own
    })
    this.wake(this.pumpTimer)
    this.wake(this.releaseTimer)
    this.wake(this.checkTimer)
  }

  observe(): void {
    for (const stream of this.streams) stream.observe()
    for (const receiver of this.receivers) receiver?.observe()
    for (const carrier of this.carriers) carrier.observe()
  }

  /** Gives back everything; how many packets there were. */
  stop(): number {
    for (const timer of [this.pumpTimer, this.releaseTimer, this.reportTimer, this.checkTimer, this.answerTimer]) {
      timer.cancel()
    }
    let held = 0
    for (const stream of this.streams) held += stream.stop()
    for (const receiver of this.receivers) held += receiver?.stop() ?? 0
    return held
  }

  private wake(timer: Timer): void {
    this.wakeAt(timer, this.context.clock.now)
  }

  private wakeAt(timer: Timer, at: number): void {
    if (at !== Number.POSITIVE_INFINITY && (!timer.armed || timer.due > at)) timer.at(at)
  }

  private pump(): void {
    const { sending, losses } = this
    for (const stream of this.streams) stream.repairRate = losses.repairRate(stream, sending.hasRoomLeft)
    this.wakeAt(this.pumpTimer, sending.pump())
    this.wakeAt(this.checkTimer, this.checkAt())
  }

  private release(): void {
    let next = Number.POSITIVE_INFINITY
    for (const receiver of this.receivers) if (receiver) next = Math.min(next, receiver.release())
    this.wakeAt(this.releaseTimer, next)
  }

  private report(): void {
    this.reportedAt = this.context.clock.now
    this.control.report(this.sending.usable, this.receiving.peer)
    this.control.flush()
    // What was said once may be lost.
    let due = 0
    for (let i = 0; i < this.carriers.length; i++) due += this.carriers[i].arrivals.due
    if (due > 0) this.wakeAt(this.reportTimer, this.reportedAt + this.interval())
  }

  private arrived(carrier: Carrier): void {
    this.wake(this.releaseTimer)
    const isUrgent = carrier.arrivals.unreported >= MANY_UNREPORTED
    this.wakeAt(this.reportTimer, isUrgent ? this.context.clock.now : this.reportedAt + this.interval())
  }

  /** How often to report: by the shortest way there and back. */
  private interval(): number {
    let least = Number.POSITIVE_INFINITY
    for (const { rtt } of this.carriers) if (rtt.known) least = Math.min(least, rtt.least)
    return reportInterval(least === Number.POSITIVE_INFINITY ? 0 : least)
  }

  private reported(stream: number, sequence: number): void {
    this.losses.reported()
    if (stream >= 0) this.streams[stream].sent.drop(sequence)
  }

  private lost(carrier: Carrier, stream: number, sequence: number): void {
    this.losses.lost(carrier.rtt.cautious)
    if (stream >= 0) this.streams[stream].lose(sequence)
  }

  private probed(token: number, prober: number, carrier: Carrier): void {
    if (this.answers.owe(token, prober, carrier)) this.wake(this.answerTimer)
  }

  private doubted(carrier: Carrier): void {
    if (this.answers.doubt(carrier, this.context.clock.now)) this.wake(this.answerTimer)
  }

  /** Answers probes, behind a report of what came before them, and asks who is there where that is in doubt. */
  private answer(): void {
    if (this.answers.waits) this.report()
    this.answers.give(this.control, this.carriers)
    this.control.flush()
  }

  /** Looks after what has become overdue. */
  private check(): void {
    const { now } = this.context.clock
    for (const carrier of this.carriers) {
      const { inFlight } = carrier
      if (carrier.lossAt <= now) {
        carrier.lossAt = Number.POSITIVE_INFINITY
        inFlight.loseBefore(carrier.lossBound)
        carrier.watch(now)
      }
      if (this.mayBeLeft(carrier)) {
        if (carrier.leftAt(this.receiving.toldUntil) <= now && carrier.isDead(now)) this.leave(carrier)
      } else if (!this.isLast(carrier) && carrier.silentAt <= now) inFlight.loseBefore(inFlight.next)
      if (carrier.probeAt <= now) this.control.probe(carrier)
    }
    for (const stream of this.streams) stream.expire()
    this.sending.refresh()
    this.control.flush()
    this.wake(this.pumpTimer)
    this.wakeAt(this.checkTimer, this.checkAt())
  }

  private leave(carrier: Carrier): void {
    const { inFlight, settings } = carrier
    const details = { carrier: settings.handle >>> 0, unreported: inFlight.packets }
    this.context.log('WARN', `carrier ${details.carrier} is left: what was sent on it is not reported`, details)
    carrier.leave()
  }

  private mayBeLeft(carrier: Carrier): boolean {
    return this.receiving.hasPeer && carrier.used && !this.isLast(carrier)
  }

  /** Whether it is the only one in use with the other end: none is known to be better, and what is unreported may be late. */
  private isLast(carrier: Carrier): boolean {
    if (!this.receiving.hasPeer || !carrier.used) return false
    for (const other of this.carriers) if (other !== carrier && other.used) return false
    return true
  }

  /** When something has to be done about what is not reported, ns. */
  private overdueAt(carrier: Carrier): number {
    if (this.mayBeLeft(carrier)) return carrier.leftAt(this.receiving.toldUntil)
    return this.isLast(carrier) ? Number.POSITIVE_INFINITY : carrier.silentAt
  }

  private checkAt(): number {
    let at = Number.POSITIVE_INFINITY
    for (const carrier of this.carriers) at = Math.min(at, carrier.lossAt, carrier.probeAt, this.overdueAt(carrier))
    for (const stream of this.streams) at = Math.min(at, stream.expiresAt)
    return Math.max(at, this.context.clock.now)
  }
}
