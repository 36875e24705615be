/** The receiving half of a stream: holds pieces until it is their turn, or their time, recovers what repairs give back. */
import { CONTRADICTED, FAR_AHEAD, type SlidingDecoder } from '../../codes/sliding-decoder.ts'
import { MAX_WINDOW } from '../../codes/sliding-window.ts'
import type { RunClock } from '../../engine/clock.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import { Ring } from '../emulation/waiting.ts'
import type { ClockOffset } from './clock-offset.ts'
import type { RaftMetrics, StreamMetrics } from './metrics.ts'
import { isSymbol, PIECE_FIRST, PIECE_LAST, piecesOf, SYMBOL_HEADER_BYTES, timeOf } from './packet.ts'
import { PacketJoiner } from './packet-joiner.ts'
import { DELIVERED, firstOf, GIVEN_UP, HERE, MISSING, ReorderWindow } from './reorder-window.ts'
import { ahead } from './serial.ts'
import { MAX_JOINED_PACKET, MAX_PAYLOAD, type StreamSettings } from './settings.ts'

/** Pieces out of reach after which the stream begins anew with them. */
const TO_BEGIN_ANEW = 8
/** Where so many come within reach in this time, ns, the stream does not go back. */
const BACK_AFTER_NS = 500_000_000

export interface StreamReceiverContext {
  readonly packets: Packets
  readonly clock: RunClock
  readonly metrics: RaftMetrics
  readonly offset: ClockOffset
  /** Longest symbol that is expected, bytes. */
  readonly symbolBytes: number
  /** The code for repairs of a stream, made when the first protected piece comes, and anew when a longer one does than it takes. */
  makeDecoder(symbolBytes: number): SlidingDecoder
}

export class StreamReceiver {
  settings: StreamSettings
  private readonly context: StreamReceiverContext
  private readonly metrics: StreamMetrics
  private readonly outlet: Outlet
  private readonly window = new ReorderWindow()
  private readonly joiner: PacketJoiner
  private decoder: SlidingDecoder | null = null
  /** Longest symbol that `decoder` takes, bytes. */
  private symbolBytes: number
  private strangers = 0
  /** Pieces within reach that came in a time of BACK_AFTER_NS, in the one before, and since when this one goes on, ns. */
  private inReach = 0
  private inReachBefore = 0
  private inReachSince = 0
  /** Packets in one piece that came after they had been given up. */
  private readonly late = new Ring()
  /** Pieces that had to make room for later ones, in order; with -1 between them where pieces are missing. */
  private readonly leaving = new Ring()
  private leavingPieces = 0

  constructor(context: StreamReceiverContext, settings: StreamSettings, metrics: StreamMetrics, outlet: Outlet) {
    this.context = context
    this.symbolBytes = context.symbolBytes
    this.settings = settings
    this.metrics = metrics
    this.outlet = outlet
    this.joiner = new PacketJoiner(context.packets, context.metrics, metrics, outlet)
  }

  /** Packets held. */
  get held(): number {
    return this.window.held + this.joiner.held + this.late.length + this.leavingPieces
  }

  /**
   * Takes a piece, a packet that begins with its symbol. `behind`: how many sequences before it may still come; `isProtected`: repairs may
   * need it; `isAgain`: it was sent before.
   */
  takePiece(packet: number, sequence: number, behind: number, isProtected: boolean, isAgain: boolean): void {
    const { packets, metrics } = this.context
    const { window } = this
    if (!window.started) window.start(firstOf(sequence, behind))
    if (window.reach(sequence) > 0 && window.isNear(sequence)) this.moveTo(firstOf(sequence))
    const reach = window.reach(sequence)
    if (reach !== 0 && this.isBelieved(reach, isAgain)) this.beginAnew(sequence, behind, reach)
    else if (reach !== 0) {
      packets.release(packet)
      const counter = reach > 0 ? metrics.out_of_window_packets : metrics.late_packets
      counter.add(1)
      return
    }
    this.strangers = 0
    this.turn()
    this.inReach++
    const known = window.stateOf(sequence)
    if (known === HERE || known === DELIVERED) {
      packets.release(packet)
      metrics.duplicate_packets.add(1)
      this.metrics.duplicate_pieces.add(1)
      return
    }
    if (isProtected) {
      this.decode(packet, sequence)
      // Before `place`, which may drop the packet that they are annotated as.
      this.takeRecovered(packet)
    }
    const wasMissing = isAgain && known === MISSING
    if (this.place(packet, sequence) && wasMissing) this.metrics.resent_pieces.add(1)
  }

  /** Begins another time when the present one is over. */
  private turn(): void {
    const { now } = this.context.clock
    const passed = now - this.inReachSince
    if (passed < BACK_AFTER_NS) return
    this.inReachBefore = passed < 2 * BACK_AFTER_NS ? this.inReach : 0
    this.inReach = 0
    this.inReachSince = now
  }

  /**
   * Whether the stream is where a piece out of reach says. It does not go back: what is from long ago goes again, or came on a slow carrier. Only where
   * a wrong piece has moved it ahead others stay behind, and no more come within reach.
   */
  private isBelieved(reach: number, isAgain: boolean): boolean {
    this.turn()
    const isSure = Math.max(this.inReach, this.inReachBefore) >= TO_BEGIN_ANEW
    if (reach < 0 && (isAgain || isSure)) return false
    return ++this.strangers >= TO_BEGIN_ANEW
  }

  /** Those that are held longest leave before their time, those that are missing are given up, until `next` is the next one. */
  private moveTo(next: number): void {
    const { window, leaving } = this
    while (ahead(next, window.next) > 0) {
      if (window.stateOf(window.next) === HERE) {
        leaving.push(window.take(), 0)
        this.leavingPieces++
        continue
      }
      this.pass()
      if (leaving.length === 0 || leaving.lastHandle >= 0) leaving.push(-1, 0)
    }
  }

  /** Goes on beyond `window.next`, which is not here: what is missing is given up. */
  private pass(): void {
    const { window } = this
    if (window.stateOf(window.next) === MISSING) this.giveUp(window.next)
    window.step()
  }

  /** Waits no longer for a piece that is missing. */
  private giveUp(sequence: number): void {
    this.window.giveUp(sequence)
    this.metrics.lost_pieces.add(1)
  }

  /** Tells the decoder of a piece. */
  private decode(packet: number, sequence: number): void {
    const { packets } = this.context
    const bytes = packets.length[packet]
    if (bytes > this.symbolBytes) this.lengthen(bytes)
    this.decoder ??= this.context.makeDecoder(this.symbolBytes)
    const at = packets.offset[packet]
    if (this.decoder.takeSource(sequence, at, bytes) !== FAR_AHEAD) return
    // Pieces without protection have come in between.
    this.decoder.reset()
    this.decoder.takeSource(sequence, at, bytes)
  }

  /** The other end sends longer pieces than this one would: a decoder that takes them knows nothing of those before. */
  private lengthen(bytes: number): void {
    this.decoder?.close()
    this.decoder = null
    this.symbolBytes = (bytes <= MAX_JOINED_PACKET ? MAX_JOINED_PACKET : MAX_PAYLOAD) + SYMBOL_HEADER_BYTES
  }

  /** Takes a repair over `count` pieces from `first` on, the `bytes` bytes at `at` of `packet`, which stays the caller's. */
  takeRepair(packet: number, first: number, count: number, key: number, at: number, bytes: number): boolean {
    if (bytes > this.symbolBytes) this.lengthen(bytes)
    const { window, decoder } = this
    // Without a protected piece there is nothing to subtract.
    if (!decoder || !window.started) return true
    if (count > MAX_WINDOW) return false
    const result = decoder.takeRepair(first, count, key, at, bytes)
    this.takeRecovered(packet)
    return result !== CONTRADICTED
  }

  /** Puts what the last call of the decoder recovered where it was missing, annotated as `like`, the packet that it took to recover it. */
  private takeRecovered(like: number): void {
    const { decoder, window, context } = this
    const { packets, metrics } = context
    if (!decoder) return
    for (let i = 0; i < decoder.recoveredCount; i++) {
      const sequence = decoder.recovered[i]
      if (window.reach(sequence) !== 0 || window.stateOf(sequence) !== MISSING) continue
      const packet = packets.allocate()
      if (packet < 0) return
      const at = packets.offset[packet]
      metrics.created_packets.add(1)
      packets.append(packet, decoder.write(sequence, at, packets.tailroomOf(packet)))
      if (!isSymbol(packets.view, at, packets.length[packet], this.settings.handle, sequence)) {
        packets.release(packet)
        metrics.malformed_packets.add(1)
        continue
      }
      packets.annotateAs(packet, like)
      if (this.place(packet, sequence)) this.metrics.repaired_pieces.add(1)
    }
  }

  /** Puts a piece that is missing or was given up where it belongs; false: it came too late, and is dropped. */
  private place(packet: number, sequence: number): boolean {
    const { window, settings, context } = this
    const { packets, clock, metrics } = context
    const { now } = clock
    const deadline = this.deadlineOf(packet)
    const isOver = (settings.realtime || settings.onTimeout) && deadline < now
    const isPassed = ahead(sequence, window.next) < 0 || window.stateOf(sequence) === GIVEN_UP
    if (isPassed || isOver) this.metrics.late_pieces.add(1)
    // Of a transit stream what is over is handed over, in its turn where that has not come.
    if (isPassed || (isOver && settings.realtime)) {
      // What was not waited for any longer is still worth something to those who order it themselves.
      if (!settings.realtime && this.isWhole(packet) && ahead(sequence, window.next) < 0) {
        window.settle(sequence)
        this.metrics.received_pieces.add(1)
        this.late.push(packet, 0)
        return true
      }
      if (ahead(sequence, window.next) >= 0 && window.stateOf(sequence) === MISSING) this.giveUp(sequence)
      this.decoder?.keep()
      packets.release(packet)
      metrics.late_packets.add(1)
      return false
    }
    window.add(sequence, packet, deadline, now)
    this.metrics.received_pieces.add(1)
    return true
  }

  private isWhole(packet: number): boolean {
    const { packets } = this.context
    return piecesOf(packets.view, packets.offset[packet]) === (PIECE_FIRST | PIECE_LAST)
  }

  /** When the time of a piece is over, ns: it counts from its sending, on the other end's clock, by the least offset between the clocks. */
  private deadlineOf(packet: number): number {
    const { packets, clock, offset } = this.context
    const sent = timeOf(packets.view, packets.offset[packet])
    const since = ahead(Math.floor(clock.now / 1000), sent + offset.least)
    return clock.now - since * 1000 + this.settings.hold
  }

  /** Lets go what may go now; returns when to ask again, ns (Infinity: when something comes). Only from a timer. */
  release(): number {
    const { window, joiner, late, leaving } = this
    // What the decoder has not copied yet lies where the next packet may.
    this.decoder?.keep()
    for (; late.length > 0; late.shift()) joiner.takeAlone(late.handle)
    for (; leaving.length > 0; leaving.shift()) {
      if (leaving.handle < 0) joiner.interrupt()
      else joiner.take(leaving.handle)
    }
    this.leavingPieces = 0
    const due = window.started ? this.advance() : Number.POSITIVE_INFINITY
    this.settle()
    this.outlet.flush()
    return due
  }

  /** The decoder recovers nothing that has been given up. */
  private settle(): void {
    const { decoder, window } = this
    if (!decoder) return
    const end = (decoder.newest + 1) | 0
    if (decoder.missing > 0) decoder.giveUpBelow(ahead(window.next, end) < 0 ? window.next : end)
  }

  private advance(): number {
    const { window, joiner, settings, context } = this
    const { now } = context.clock
    const isTimed = settings.realtime || settings.onTimeout
    while (window.next !== window.end) {
      const state = window.stateOf(window.next)
      if (state === HERE) {
        if (settings.onTimeout && window.deadlineOf(window.next) > now) return window.deadlineOf(window.next)
        joiner.take(window.take())
        continue
      }
      if (state === MISSING) {
        if (window.held === 0) return Number.POSITIVE_INFINITY
        // Until when those that wait for it can wait, and which of them it is.
        const waiting = isTimed ? window.first : window.earliest
        const due = isTimed ? window.deadlineOf(waiting) : window.arrivalOf(waiting) + settings.hold
        if (due > now) return due
        this.giveUpUntil(waiting)
        continue
      }
      window.step()
      joiner.interrupt()
    }
    return Number.POSITIVE_INFINITY
  }

  /** Waits no longer for what is missing before `sequence`; what is here before it goes with it. */
  private giveUpUntil(sequence: number): void {
    const { window, joiner } = this
    while (window.next !== sequence) {
      if (window.stateOf(window.next) === HERE) {
        joiner.take(window.take())
        continue
      }
      joiner.interrupt()
      this.pass()
    }
  }

  /** The other end is a new one, or far from where it was: what waits is dropped. */
  reset(): void {
    const dropped = this.drop()
    this.context.metrics.reset_packets.add(dropped)
    this.strangers = 0
    this.forgetReach()
  }

  private forgetReach(): void {
    this.inReach = 0
    this.inReachBefore = 0
  }

  /** The stream goes on with a piece that is out of reach. */
  private beginAnew(sequence: number, behind: number, reach: number): void {
    const { window } = this
    const next = firstOf(sequence, behind)
    if (reach > 0 && window.remembersBefore(sequence)) {
      this.moveTo(next)
      this.forgetReach()
      return
    }
    this.reset()
    window.start(next)
  }

  private drop(): number {
    const { packets } = this.context
    const { held } = this
    for (; this.late.length > 0; this.late.shift()) packets.release(this.late.handle)
    for (; this.leaving.length > 0; this.leaving.shift()) {
      if (this.leaving.handle >= 0) packets.release(this.leaving.handle)
    }
    this.leavingPieces = 0
    this.window.clear((packet) => packets.release(packet))
    this.joiner.drop()
    this.decoder?.reset()
    return held
  }

  observe(): void {
    this.metrics.waiting_pieces.set(this.window.held)
  }

  /** Gives back what waits; how many packets there were. */
  stop(): number {
    const held = this.drop()
    this.decoder?.close()
    this.decoder = null
    return held
  }
}
