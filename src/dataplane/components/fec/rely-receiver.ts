/** Passes on the sources of rely encoders, at once or in their order, and what their repairs recover. */
import {
  CONTRADICTED,
  DUPLICATE,
  FAR_AHEAD,
  LATE,
  MENDED,
  NEW,
  REDUNDANT,
  type SlidingDecoder,
  UNUSABLE,
  WRONGLY_MENDED,
} from '../../codes/sliding-decoder.ts'
import { MAX_WINDOW } from '../../codes/sliding-window.ts'
import type { Batch } from '../../engine/batch.ts'
import type { RunClock } from '../../engine/clock.ts'
import type { Counter } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Timer } from '../../engine/timers.ts'
import { LossShare, lostInOutage } from './block-counters.ts'
import type { RelyReceiverCounters } from './rely-counters.ts'
import { RelyGivingUp } from './rely-giving-up.ts'
import {
  LENGTH_BYTES,
  MAX_PAYLOAD,
  REPAIR,
  REPAIR_HEADER_BYTES,
  REPAIR_SYMBOL_AT,
  SOURCE,
  SOURCE_HEADER_BYTES,
  SOURCE_SYMBOL_AT,
} from './rely-header.ts'
import { SOURCES_TO_FOLLOW } from './rely-leap.ts'
import { recoveredPacket } from './rely-recovered.ts'
import { RelyRelease } from './rely-release.ts'
import { RelySessions, SOURCES_TO_ENTER } from './rely-sessions.ts'
import type { RelyStream } from './rely-stream.ts'

/** Sources of a window before a repair says how many it covers. */
const FIRST_WINDOW = 64

export interface RelyReceiverSettings {
  /** How long a source is waited for after a later one came, ns. */
  timeout: number
  /** Whether sources leave in their order. */
  inOrder: boolean
}

export interface RelyReceiverContext {
  readonly packets: Packets
  readonly clock: RunClock
  memory(): number
  timer(fire: () => void): Timer
}

export class RelyReceiver {
  private readonly packets: Packets
  /** Packets of what the decoder recovered last; -1: no slot was free. */
  private readonly made = new Int32Array(MAX_WINDOW)
  private readonly clock: RunClock
  private readonly release: RelyRelease
  private readonly counters: RelyReceiverCounters
  private readonly sessions: RelySessions
  private readonly symbolBytes: number
  private readonly givingUp: RelyGivingUp
  /** Share of the sources that did not come, or not in time. */
  readonly loss = new LossShare()

  constructor(
    { packets, clock, memory, timer }: RelyReceiverContext,
    outlet: Outlet,
    counters: RelyReceiverCounters,
    settings: RelyReceiverSettings,
  ) {
    this.packets = packets
    this.clock = clock
    this.release = new RelyRelease(outlet)
    this.release.inOrder = settings.inOrder
    this.counters = counters
    this.symbolBytes = Math.min(MAX_PAYLOAD, packets.slotBytes - packets.tailroom) + LENGTH_BYTES
    const options = { memory: memory(), window: FIRST_WINDOW, symbolBytes: this.symbolBytes }
    this.sessions = new RelySessions(options, (stream) => this.leave(stream))
    const { streams } = this.sessions
    this.givingUp = new RelyGivingUp(
      streams,
      this.release,
      clock,
      timer,
      counters.unrecovered_packets,
      packets.slots >> 2,
    )
    this.givingUp.timeout = settings.timeout
  }

  /** Sessions followed, or that were when it was stopped. */
  get followed(): number {
    return this.sessions.followed
  }

  /** Takes the packets of a batch. */
  input(batch: Batch): void {
    const { handles, length } = batch
    for (let i = 0; i < length; i++) this.take(handles[i])
    this.release.send()
    this.givingUp.arm()
  }

  private discard(packet: number, counter: Counter): void {
    this.packets.release(packet)
    counter.add(1)
  }

  private take(packet: number): void {
    const { packets, counters } = this
    this.release.sendSome()
    const bytes = packets.length[packet]
    const at = packets.offset[packet]
    const { view } = packets
    const word = bytes < SOURCE_HEADER_BYTES ? 0 : view.getInt32(at)
    const kind = word >>> 24
    const number = kind === 0 ? 0 : view.getInt32(at + 4)
    if (kind === SOURCE && view.getUint16(at + SOURCE_SYMBOL_AT) === bytes - SOURCE_HEADER_BYTES) {
      const stream = this.find(word & 0xffffff, true, number, number)
      if (stream && bytes - SOURCE_SYMBOL_AT <= this.symbolBytes) this.takeSource(stream, packet, number)
      else this.passUnfollowed(packet)
      return
    }
    const symbolBytes = bytes - REPAIR_SYMBOL_AT
    const count = bytes < REPAIR_HEADER_BYTES ? 0 : view.getUint16(at + 8)
    if (kind !== REPAIR || count < 1 || count > MAX_WINDOW || symbolBytes > this.symbolBytes) {
      this.discard(packet, counters.malformed_packets)
      return
    }
    const stream = this.find(word & 0xffffff, false, number, (number + count - 1) | 0)
    if (stream) this.takeRepair(stream, packet, number, count)
    else this.discard(packet, counters.unfollowed_repair_packets)
  }

  private find(session: number, isSource: boolean, first: number, last: number): RelyStream | null {
    const stream = this.sessions.find(session, isSource, first, last)
    if (stream !== this.release.current) {
      this.release.send()
      this.release.current = stream
    }
    return stream
  }

  private passUnfollowed(packet: number): void {
    this.packets.trimFront(packet, SOURCE_HEADER_BYTES)
    this.counters.unfollowed_packets.add(1)
    this.release.push(packet)
  }

  private takeSource(stream: RelyStream, packet: number, sequence: number): void {
    const { packets, counters } = this
    const { now } = this.clock
    const { decoder } = stream
    stream.expect((sequence - decoder.newest) | 0, now)
    const { newest, givenUp } = decoder
    const at = packets.offset[packet] + SOURCE_SYMBOL_AT
    const said = decoder.takeSource(sequence, at, packets.length[packet] - SOURCE_SYMBOL_AT)
    this.make(decoder)
    // While hardly any sources have come, it may be the first packet that was out of the way.
    const isEarlier = said === LATE && stream.sources < SOURCES_TO_ENTER && ((sequence - stream.start) | 0) < 0
    if (said === FAR_AHEAD || isEarlier) {
      this.takeOutOfReach(stream, packet, sequence)
      return
    }
    if (said === NEW) stream.hear(sequence, newest, now)
    else stream.showUpTo(sequence, newest, now)
    this.decide(stream)
    counters.unrecovered_packets.add(decoder.givenUp - givenUp)
    if (said === LATE || said === MENDED) this.discard(packet, counters.late_packets)
    else if (said === DUPLICATE) this.discard(packet, counters.duplicate_packets)
    else {
      if (said === WRONGLY_MENDED) counters.wrong_recoveries.add(1)
      packets.trimFront(packet, SOURCE_HEADER_BYTES)
      this.add(stream, packet, sequence)
      this.takeRecovered(stream, packet)
    }
    this.givingUp.releaseDue(stream)
  }

  /** Measures the loss: a source that is missing counts as lost once it is waited for no more. */
  private decide(stream: RelyStream): void {
    stream.decide(this.loss, this.clock.now - this.givingUp.timeout)
  }

  /** A leap is followed when several sources in a row make it: one alone, which anybody may have made up, must not cost all others. */
  private takeOutOfReach(stream: RelyStream, packet: number, sequence: number): void {
    if (stream.knowsFarOff(sequence)) {
      this.discard(packet, this.counters.duplicate_packets)
      return
    }
    if (!stream.hearFarOff(sequence)) {
      stream.decoder.notePassed(sequence)
      this.passUnfollowed(packet)
      return
    }
    this.leave(stream)
    // Those that made it before this one have passed.
    const lost = lostInOutage(((sequence - stream.decoder.newest) | 0) - SOURCES_TO_FOLLOW)
    if (stream.sources >= SOURCES_TO_ENTER) {
      this.counters.unrecovered_packets.add(lost)
      stream.decide(this.loss, Number.POSITIVE_INFINITY)
      this.loss.add(lost, lost)
    }
    stream.followFarOff(sequence)
    this.takeSource(stream, packet, sequence)
  }

  private takeRepair(stream: RelyStream, packet: number, first: number, count: number): void {
    const { packets, counters } = this
    const { decoder } = stream
    const at = packets.offset[packet]
    const key = packets.view.getUint16(at + 10)
    const bytes = packets.length[packet] - REPAIR_SYMBOL_AT
    const said = decoder.takeRepair(first, count, key, at + REPAIR_SYMBOL_AT, bytes)
    this.make(decoder)
    this.takeRecovered(stream, packet)
    if (said === CONTRADICTED) this.discard(packet, counters.malformed_packets)
    else if (said === REDUNDANT) this.discard(packet, counters.redundant_packets)
    else if (said === UNUSABLE) this.discard(packet, counters.unusable_repair_packets)
    else this.discard(packet, counters.used_repair_packets)
    this.givingUp.releaseDue(stream)
  }

  /** Makes packets of what was recovered while its symbols are at hand: a leap that is taken back drops them. */
  private make(decoder: SlidingDecoder): void {
    const { made } = this
    for (let n = 0; n < decoder.recoveredCount; n++)
      made[n] = recoveredPacket(this.packets, decoder, decoder.recovered[n])
  }

  /** Passes on what was recovered, with the annotations of `like`. */
  private takeRecovered(stream: RelyStream, like: number): void {
    const { decoder } = stream
    const { recovered, recoveredCount, givenUp } = decoder
    if (recoveredCount > 0) {
      stream.hearRecovered(recovered[recoveredCount - 1], this.clock.now)
      this.counters.unrecovered_packets.add(decoder.givenUp - givenUp)
    }
    for (let n = 0; n < recoveredCount; n++) {
      const sequence = recovered[n]
      const packet = this.made[n]
      if (packet < 0) {
        this.counters.no_slot_packets.add(1)
        continue
      }
      this.packets.annotateAs(packet, like)
      this.counters.recovered_packets.add(1)
      this.add(stream, packet, sequence)
    }
  }

  /** Sends a packet on, in its turn where that matters. */
  private add(stream: RelyStream, packet: number, sequence: number): void {
    const replaced = this.release.add(stream, packet, sequence)
    if (replaced >= 0) this.discard(replaced, this.counters.replaced_packets)
  }

  /** A session ends here: what waits is sent, what is missing given up. */
  private leave(stream: RelyStream): void {
    stream.takeBack(this.clock.now)
    this.counters.unrecovered_packets.add(stream.decoder.missing)
    this.release.drain(stream)
    this.release.send()
  }

  /** Takes changed settings over. Packets that wait leave when order no longer matters. */
  reconfigure({ timeout, inOrder }: RelyReceiverSettings): void {
    this.givingUp.timeout = timeout
    this.release.inOrder = inOrder
    for (const stream of this.sessions.streams) {
      if (!stream.active) continue
      if (!inOrder) this.release.drain(stream)
      stream.next = stream.waiting > 0 ? stream.next : (stream.settled + 1) | 0
    }
    this.givingUp.cancel()
    this.givingUp.giveUpOverdue()
  }

  /** Gives up what is missing and forgets every session. */
  reset(): void {
    this.sessions.reset()
    this.release.send()
    this.givingUp.cancel()
  }

  /** Brings the measured loss and the gauge of the packets that wait up to date. */
  observe(): void {
    for (const stream of this.sessions.streams) if (stream.active) this.decide(stream)
    this.counters.held_packets.set(this.release.held)
  }

  /** The run ends. */
  stop(): void {
    this.observe()
    this.givingUp.cancel()
    for (const stream of this.sessions.streams) {
      for (; stream.waiting > 0; stream.next = (stream.next + 1) | 0) {
        const packet = stream.unhold(stream.next)
        if (packet >= 0) this.discard(packet, this.counters.held_at_end_packets)
      }
    }
    this.release.held = 0
    this.release.current = null
    this.sessions.close()
    this.observe()
  }
}
