/** What comes on the carriers: checked, told apart by kind, and handed to those it is for. */
import type { Batch } from '../../engine/batch.ts'
import type { RunClock } from '../../engine/clock.ts'
import type { Log } from '../../engine/log.ts'
import type { Counter } from '../../engine/metrics.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Carrier } from './carrier.ts'
import type { ClockOffset } from './clock-offset.ts'
import type { RaftMetrics } from './metrics.ts'
import {
  BLOCK_HEADER_BYTES,
  blockBytes,
  FLAG_AGAIN,
  FLAG_PROTECTED,
  isWellFormed,
  KIND_ANSWER,
  KIND_DATA,
  KIND_PROBE,
  KIND_REPAIR,
  REPAIR_HEADER_BYTES,
  REPORT_HEADER_BYTES,
  SYMBOL_AT,
  timeOf,
} from './packet.ts'
import type { StreamReceiver } from './stream-receiver.ts'

/** Wrong handles that the log is told of, of carriers and of streams: strangers may send any. */
const MAX_TOLD = 8

export interface ReceivingContext {
  readonly packets: Packets
  readonly clock: RunClock
  readonly metrics: RaftMetrics
  readonly offset: ClockOffset
  readonly log: Log
}

/** What others have to do about what came; none of it sends a packet at once. */
export interface Reactions {
  /** A piece or repair has come on a carrier: it is to be reported, and streams may have something to release. */
  arrived(carrier: Carrier): void
  /** A report has told of packets sent. */
  reported(): void
  /** A probe with `token` of the session `prober` wants its answer. */
  probed(token: number, prober: number, carrier: Carrier): void
  /** A packet of a session that is not known came: a probe shows whether somebody has it still. */
  doubted(carrier: Carrier): void
  /** A carrier that was left is used again. */
  returned(carrier: Carrier): void
}

export class Receiving {
  /** Session of the other end; meaningful once one is known. */
  peer = 0
  hasPeer = false
  /** Reports have told of what came at the other end until then, ns: when the last one left it. */
  toldUntil = Number.NEGATIVE_INFINITY
  private readonly context: ReceivingContext
  private readonly session: number
  private readonly carriers: readonly Carrier[]
  /** By stream handle: null where nobody reads it. */
  private readonly streams: ReadonlyMap<number, StreamReceiver | null>
  private readonly reactions: Reactions
  /** Handles of the other end that the log was told of. */
  private readonly toldCarriers = new Set<number>()
  private readonly toldStreams = new Set<number>()

  constructor(
    context: ReceivingContext,
    session: number,
    carriers: readonly Carrier[],
    streams: ReadonlyMap<number, StreamReceiver | null>,
    reactions: Reactions,
  ) {
    this.context = context
    this.session = session
    this.carriers = carriers
    this.streams = streams
    this.reactions = reactions
  }

  /** Takes every packet of a batch that came on a carrier. */
  input(batch: Batch, carrier: Carrier): void {
    const { packets } = this.context
    carrier.metrics.received_packets.add(batch.length)
    carrier.metrics.received_bytes.add(packets.bytesOf(batch))
    const { handles, length } = batch
    for (let i = 0; i < length; i++) this.take(handles[i], carrier)
  }

  private take(packet: number, carrier: Carrier): void {
    const { packets, metrics } = this.context
    const { view } = packets
    const at = packets.offset[packet]
    const bytes = packets.length[packet]
    if (!isWellFormed(view, at, bytes)) {
      this.drop(packet, metrics.malformed_packets)
      return
    }
    if (view.getInt32(at + 8) !== carrier.settings.handle) {
      this.dropOfOtherCarrier(packet, view.getInt32(at + 8), carrier.settings.handle)
      return
    }
    const kind = view.getUint8(at)
    const session = view.getInt32(at + 4)
    if (session === this.session) {
      this.drop(packet, metrics.other_session_packets)
      return
    }
    if (kind === KIND_PROBE) this.reactions.probed(view.getInt32(at + 12), session, carrier)
    const isAnswer = kind === KIND_ANSWER && this.takeAnswer(at, session, carrier)
    if (!this.hasPeer && kind !== KIND_ANSWER) this.adopt(session)
    if (session !== this.peer || !this.hasPeer) {
      if (kind === KIND_PROBE) this.end(packet)
      else this.drop(packet, metrics.other_session_packets)
      this.reactions.doubted(carrier)
      return
    }
    if (kind === KIND_DATA) this.takeData(packet, at, carrier)
    else if (kind === KIND_REPAIR) this.takeRepair(packet, at, bytes, carrier)
    else if (kind === KIND_PROBE || isAnswer) this.end(packet)
    else if (kind !== KIND_ANSWER && view.getInt32(at + 16) === this.session) {
      this.takeReport(at, carrier)
      this.end(packet)
    } else this.drop(packet, metrics.other_session_packets)
  }

  private drop(packet: number, counter: Counter): void {
    this.context.packets.release(packet)
    counter.add(1)
  }

  private end(packet: number): void {
    this.drop(packet, this.context.metrics.consumed_packets)
  }

  /** The other end has this session: it is the first, or has answered a probe that no old packet can answer. */
  private adopt(session: number): void {
    const { metrics, log, offset } = this.context
    if (this.hasPeer) {
      for (const stream of this.streams.values()) stream?.reset()
      offset.reset()
    }
    for (const carrier of this.carriers) carrier.reset()
    this.peer = session
    log('INFO', this.hasPeer ? 'the other end has begun anew' : 'the other end is heard', { session: session >>> 0 })
    this.hasPeer = true
    metrics.sessions.add(1)
  }

  /** False: it answers no probe of this session. */
  private takeAnswer(at: number, session: number, carrier: Carrier): boolean {
    const { packets, clock } = this.context
    const { view } = packets
    const { probes, rtt } = carrier
    if (view.getInt32(at + 16) !== this.session || !probes.answer(view.getInt32(at + 12))) return false
    if (!this.hasPeer || session !== this.peer) this.adopt(session)
    rtt.sample(clock.now - probes.sentAt, clock.now)
    carrier.answered(clock.now)
    if (carrier.handle('answered')) this.reactions.returned(carrier)
    this.reactions.reported()
    return true
  }

  private takeData(packet: number, at: number, carrier: Carrier): void {
    const { packets, metrics, clock, offset } = this.context
    const { view } = packets
    if (!carrier.arrivals.take(view.getInt32(at + 12), clock.now)) {
      this.drop(packet, metrics.duplicate_packets)
      return
    }
    this.reactions.arrived(carrier)
    const stream = this.streams.get(view.getInt32(at + 16))
    if (!stream) {
      this.dropOfNoStream(packet, view.getInt32(at + 16))
      return
    }
    const sent = timeOf(view, at + SYMBOL_AT)
    // It may have waited at the other end before it was under way, and be sent again, for its life.
    const most = carrier.mostRtt + stream.settings.life
    if (!offset.sample(Math.floor(clock.now / 1000), sent, clock.now, most)) {
      this.drop(packet, metrics.malformed_packets)
      return
    }
    const flags = view.getUint8(at + 1)
    packets.trimFront(packet, SYMBOL_AT)
    stream.takePiece(
      packet,
      view.getInt32(at + 20),
      view.getUint16(at + 2),
      (flags & FLAG_PROTECTED) !== 0,
      (flags & FLAG_AGAIN) !== 0,
    )
  }

  private takeRepair(packet: number, at: number, bytes: number, carrier: Carrier): void {
    const { packets, metrics, clock } = this.context
    const { view } = packets
    if (!carrier.arrivals.take(view.getInt32(at + 12), clock.now)) {
      this.drop(packet, metrics.duplicate_packets)
      return
    }
    this.reactions.arrived(carrier)
    const handle = view.getInt32(at + 16)
    const stream = this.streams.get(handle)
    if (!stream) {
      this.dropOfNoStream(packet, handle)
      return
    }
    const isFine = stream.takeRepair(
      packet,
      view.getInt32(at + 20),
      view.getUint16(at + 2),
      view.getUint16(at + 24),
      at + REPAIR_HEADER_BYTES,
      bytes - REPAIR_HEADER_BYTES,
    )
    if (isFine) this.end(packet)
    else this.drop(packet, metrics.malformed_packets)
  }

  private dropOfOtherCarrier(packet: number, theirs: number, own: number): void {
    const { metrics, log } = this.context
    this.drop(packet, metrics.misrouted_packets)
    if (this.toldCarriers.has(theirs) || this.toldCarriers.size >= MAX_TOLD) return
    this.toldCarriers.add(theirs)
    const text = `what comes on carrier ${own} was sent on carrier ${theirs} and is dropped: give carrier_handle the same numbers at both ends`
    log('WARN', text, { carrier: own, sent_on: theirs })
  }

  private dropOfNoStream(packet: number, stream: number): void {
    const { metrics, log } = this.context
    this.drop(packet, metrics.misrouted_packets)
    if (this.toldStreams.has(stream) || this.toldStreams.size >= MAX_TOLD) return
    this.toldStreams.add(stream)
    const cure = this.streams.has(stream) ? 'give it an output' : 'give stream_handle the same numbers at both ends'
    const text = `the other end sends stream ${stream}, which has no output here, and it is dropped: ${cure}`
    log('WARN', text, { stream })
  }

  private takeReport(at: number, via: Carrier): void {
    const { view } = this.context.packets
    let block = at + REPORT_HEADER_BYTES
    this.toldUntil = Math.max(this.toldUntil, this.context.clock.now - via.rtt.cautious / 2)
    for (let left = view.getUint16(at + 2); left > 0; left--) {
      const handle = view.getInt32(block)
      for (let i = 0; i < this.carriers.length; i++) {
        if (this.carriers[i].settings.handle === handle) this.takeBlock(block, this.carriers[i], via)
      }
      block += blockBytes(view.getUint16(block + 12))
    }
    this.reactions.reported()
  }

  private takeBlock(at: number, carrier: Carrier, via: Carrier): void {
    const { packets, clock } = this.context
    const { view } = packets
    const { inFlight } = carrier
    const highest = view.getInt32(at + 4)
    if (!inFlight.knows(highest)) return
    const came = clock.now - view.getUint32(at + 8) * 1000
    const sent = inFlight.sentAtOf(highest)
    // A wait that is longer than the packet has been on its way is not true.
    if (came < sent) return
    if (via === carrier) carrier.roundTrip(came - sent, clock.now)
    let isNews = false
    for (let bit = view.getUint16(at + 12) - 1; bit >= 0; bit--) {
      const word = view.getInt32(at + BLOCK_HEADER_BYTES + (bit >>> 5) * 4)
      if ((word & (1 << (31 - (bit & 31)))) === 0) continue
      if (inFlight.report((highest - 1 - bit) | 0, came)) isNews = true
    }
    if (inFlight.report(highest, came)) {
      carrier.toldAfter(came - sent, clock.now)
      isNews = true
    }
    if (isNews) {
      carrier.heard()
      carrier.measure(came, clock.now)
      inFlight.loseOvertaken()
    }
    carrier.watch(clock.now)
  }
}
