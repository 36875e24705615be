/** The sending half of a stream: packets wait here, are cut in pieces, go, and are kept for being sent again or repaired. */
import type { SlidingEncoder } from '../../codes/sliding-encoder.ts'
import type { RunClock } from '../../engine/clock.ts'
import type { Packets } from '../../engine/packets.ts'
import { Ring } from '../emulation/waiting.ts'
import type { RaftMetrics, StreamMetrics } from './metrics.ts'
import { PIECE_FIRST, PIECE_LAST, SYMBOL_HEADER_BYTES, writeSymbolHeader } from './packet.ts'
import { SentPieces } from './sent-pieces.ts'
import { ahead } from './serial.ts'
import {
  MAX_PAYLOAD,
  MAX_TRANSIT_BURST_NS,
  MAX_TRANSIT_QUEUE_NS,
  MAX_TRANSIT_WAIT_NS,
  type StreamSettings,
} from './settings.ts'

/** Pieces that a repair covers at most. */
export const REPAIR_WINDOW = 1024
/** A queue that takes longer than this to be sent, for so long, stands; ns. */
const STANDING_QUEUE_NS = 50e6
const STANDING_NS = 200e6
/** A queue that has become too long takes packets again when they would wait no longer than this, ns. */
const DRAINED_QUEUE_NS = 30e6

export interface StreamSenderContext {
  readonly packets: Packets
  readonly clock: RunClock
  readonly metrics: RaftMetrics
  /** The code for repairs of a stream, made when it is needed. */
  makeEncoder(): SlidingEncoder
}

export class StreamSender {
  settings: StreamSettings
  /** Most bytes of a piece's payload. */
  readonly pieceBytes: number
  /** Repair packets for each piece. */
  repairRate = 0
  /** Repairs that are to be made. */
  repairs = 0
  readonly sent: SentPieces
  readonly metrics: StreamMetrics
  private readonly context: StreamSenderContext
  private readonly queue = new Ring()
  private queuedBytes = 0
  /** When the queue was short last, ns. */
  private shortAt = 0
  /** It has become too long, and takes nothing until it is drained. */
  private isFull = false
  /** Bytes of the first packet of the queue that went in pieces before. */
  private cut = 0
  /** Sequences to send again, in the order in which they were lost, with their bytes; those lost twice are the older ones, and go before the others. */
  private readonly lostOnce = new Ring()
  private readonly lostTwice = new Ring()
  private againBytes = 0
  private encoder: SlidingEncoder | null = null
  private credit = 0
  /** The pieces from this sequence on are all in the encoder. */
  private protectedFrom = 0
  /** What the last `takeRepair` covers, and its key. */
  repairFirst = 0
  repairCount = 0
  repairKey = 0
  /** The sequence that the last `takeAgain` gave, whether repairs may cover it, and how often that piece was lost. */
  againSequence = 0
  isAgainProtected = false
  againLosses = 0
  againFlying = 0

  constructor(context: StreamSenderContext, settings: StreamSettings, metrics: StreamMetrics, pieceBytes: number) {
    this.context = context
    this.settings = settings
    this.metrics = metrics
    this.pieceBytes = pieceBytes
    this.sent = new SentPieces(context.packets, context.metrics.consumed_packets)
  }

  /** Packets that wait and copies that are kept. */
  get held(): number {
    return this.queue.length + this.sent.held
  }

  /** Whether a packet or a repair waits, or a piece to be sent again. */
  get waits(): boolean {
    return this.queue.length > 0 || this.againCount > 0 || this.repairs > 0
  }

  /** Takes a packet of the application, or drops it where it would wait too long at `pace` bytes per ns. */
  enqueue(packet: number, pace: number): void {
    const { packets, clock, metrics } = this.context
    const bytes = packets.length[packet]
    if (bytes > MAX_PAYLOAD) {
      packets.release(packet)
      metrics.oversize_packets.add(1)
    } else if (!this.settings.realtime && this.isTooLong(pace)) {
      packets.release(packet)
      this.countQueueDrop()
    } else {
      this.queue.push(packet, clock.now)
      this.queuedBytes += bytes
    }
  }

  /**
   * Whether the queue takes nothing now: it has become too long, which in a burst is longer than when it stands, and is not drained yet. What TCP then sends
   * again finds it short, and is there a round trip later. Were packets dropped one by one, at the limit, some of those would be too, and wait behind
   * all of the queue.
   */
  private isTooLong(pace: number): boolean {
    const { queue, context } = this
    const { now } = context.clock
    const wait = (this.queuedBytes + this.againBytes) / pace
    if (wait <= STANDING_QUEUE_NS) this.shortAt = now
    if (this.isFull) {
      const waited = queue.length > 0 ? now - queue.value : 0
      this.isFull = Math.max(wait, waited) > DRAINED_QUEUE_NS
    } else {
      const isStanding = now - this.shortAt > STANDING_NS
      this.isFull = wait > (isStanding ? MAX_TRANSIT_QUEUE_NS : MAX_TRANSIT_BURST_NS)
    }
    return this.isFull
  }

  private countQueueDrop(): void {
    this.context.metrics.queue_dropped_packets.add(1)
    this.metrics.queue_dropped_packets.add(1)
  }

  /** Payload bytes of the next piece, -1 when none waits; packets whose time is over are dropped before. */
  nextBytes(): number {
    const { queue, context, settings, cut } = this
    const { packets, clock } = context
    const most = settings.realtime ? settings.life : MAX_TRANSIT_WAIT_NS
    while (queue.length > 0 && queue.value + most < clock.now && cut === 0) {
      const packet = queue.handle
      this.shift(packets.length[packet])
      packets.release(packet)
      this.countQueueDrop()
    }
    return queue.length === 0 ? -1 : Math.min(packets.length[queue.handle] - this.cut, this.pieceBytes)
  }

  /**
   * The next piece as a packet that begins with its symbol, its sequence is `sent.next - 1` then; -1 when there was no slot or room
   * for it and its packet is dropped. There must be one.
   */
  takePiece(): number {
    const { queue, context, cut } = this
    const { packets, metrics } = context
    const packet = queue.handle
    const time = queue.value
    const left = packets.length[packet] - cut
    const bytes = Math.min(left, this.pieceBytes)
    const isLast = bytes === left
    const piece = cut === 0 && isLast ? packet : this.cutPiece(packet, cut, bytes)
    const at = piece < 0 ? -1 : packets.prepend(piece, SYMBOL_HEADER_BYTES)
    if (at < 0) {
      packets.release(packet)
      metrics.unready_packets.add(1)
      this.shift(left)
      return -1
    }
    const pieces = (cut === 0 ? PIECE_FIRST : 0) | (isLast ? PIECE_LAST : 0)
    const { handle } = this.settings
    writeSymbolHeader(packets.view, at, bytes, pieces, handle, this.sent.next, Math.floor(time / 1000))
    this.keep(piece, at, time)
    this.metrics.sent_pieces.add(1)
    if (isLast) {
      if (piece !== packet) this.end(packet)
      this.metrics.sent_packets.add(1)
      this.shift(left)
    } else {
      this.cut += bytes
      this.queuedBytes -= bytes
    }
    return piece
  }

  /** A packet of its own with `bytes` bytes of `packet` from its byte `from` on, -1 without a free slot. */
  private cutPiece(packet: number, from: number, bytes: number): number {
    const { packets, metrics } = this.context
    const piece = packets.allocate()
    if (piece < 0) return -1
    const at = packets.append(piece, bytes)
    const start = packets.offset[packet] + from
    packets.data.copyWithin(at, start, start + bytes)
    packets.annotateAs(piece, packet)
    metrics.created_packets.add(1)
    return piece
  }

  /** The first packet of the queue has gone, and with it the last `bytes` bytes of it. */
  private shift(bytes: number): void {
    this.queuedBytes -= bytes
    this.cut = 0
    this.queue.shift()
  }

  private end(packet: number): void {
    this.context.packets.release(packet)
    this.context.metrics.consumed_packets.add(1)
  }

  /** Gives a piece its sequence, and keeps what may be needed of it. */
  private keep(piece: number, at: number, time: number): void {
    const { packets, metrics } = this.context
    let copy = -1
    if (!this.settings.replicated) {
      copy = packets.clone(piece)
      if (copy < 0) metrics.uncopied_packets.add(1)
      else metrics.created_packets.add(1)
    }
    const sequence = this.sent.add(copy, time)
    if (!this.isProtected) {
      this.protectedFrom = this.sent.next
      return
    }
    this.encoder ??= this.context.makeEncoder()
    this.encoder.add(sequence, at, packets.length[piece])
    this.sent.cover(sequence)
    this.credit += this.repairRate
    if (this.credit < 1) return
    this.credit -= 1
    this.repairs++
  }

  /** Whether pieces that go now may be in the window of a repair. */
  get isProtected(): boolean {
    return this.repairRate > 0
  }

  /** The encoder copies what it was given: owed before packets leave. */
  settle(): void {
    this.encoder?.makeRepairs()
  }

  /** A repair over the window as a packet that begins with its symbols; -1: none is due, or there is no slot. Sets `first` and `count`. */
  takeRepair(): number {
    const { encoder, context, sent } = this
    const { packets, metrics } = context
    this.repairs--
    if (!encoder) return -1
    const count = Math.min(ahead(sent.next, sent.base), ahead(sent.next, this.protectedFrom), REPAIR_WINDOW)
    if (count <= 0) return -1
    const repair = packets.allocate()
    if (repair < 0) return -1
    this.repairFirst = (sent.next - count) | 0
    this.repairCount = count
    this.repairKey = (this.repairKey + 1) & 0xffff
    const at = packets.offset[repair]
    const asked = encoder.askRepair(this.repairFirst, count, this.repairKey, at, packets.tailroomOf(repair))
    encoder.makeRepairs()
    packets.append(repair, encoder.repairBytes(asked))
    metrics.created_packets.add(1)
    this.metrics.repair_packets.add(1)
    return repair
  }

  /** Sequence `sequence` was lost: it goes again while its time is not over. */
  lose(sequence: number): void {
    const copy = this.sent.copyOf(sequence)
    if (copy < 0) return
    this.sent.lose(sequence)
    const bytes = this.context.packets.length[copy]
    const ring = this.sent.lossesOf(sequence) > 1 ? this.lostTwice : this.lostOnce
    ring.push(sequence, bytes)
    this.againBytes += bytes
  }

  /** Payload bytes of the next piece to send again, -1 when none waits; those that came or are too old are left out. */
  nextAgainBytes(): number {
    const { sent, context, settings } = this
    const { packets, clock } = context
    for (; this.againCount > 0; this.shiftAgain()) {
      const sequence = this.again.handle
      const copy = sent.copyOf(sequence)
      if (copy >= 0 && sent.timeOf(sequence) + settings.life >= clock.now) return packets.length[copy]
    }
    return -1
  }

  /** How many wait to be sent again, those that came or are too old among them. */
  get againCount(): number {
    return this.lostOnce.length + this.lostTwice.length
  }

  /**
   * The next piece to send again, a packet that begins with its symbol; -1 without a free slot, or when `most` copies of it may still come. Sets
   * `againSequence`, `isAgainProtected`, `againLosses` and `againFlying`. There must be one.
   */
  takeAgain(most: number): number {
    const { sent, context } = this
    const sequence = this.again.handle
    this.againSequence = sequence
    this.againLosses = sent.lossesOf(sequence)
    this.againFlying = sent.flyingOf(sequence)
    this.isAgainProtected = sent.isCovered(sequence)
    this.shiftAgain()
    if (this.againFlying >= most) return -1
    const piece = context.packets.clone(sent.copyOf(this.againSequence))
    if (piece < 0) return -1
    context.metrics.created_packets.add(1)
    this.metrics.repeated_pieces.add(1)
    return piece
  }

  /** Where the next one to send again is. */
  private get again(): Ring {
    return this.lostTwice.length > 0 ? this.lostTwice : this.lostOnce
  }

  private shiftAgain(): void {
    this.againBytes -= this.again.value
    this.again.shift()
  }

  /** When the oldest copy has outlived its use, ns. */
  get expiresAt(): number {
    return this.sent.oldest + this.settings.life
  }

  /** Drops the copies whose time is over. */
  expire(): void {
    this.sent.expire(this.settings.life, this.context.clock.now)
  }

  observe(): void {
    this.metrics.queued_packets.set(this.queue.length)
    this.metrics.repair_rate.set(this.repairRate)
  }

  /** Gives back what waits and what is kept; how many packets there were. */
  stop(): number {
    const { queue, context, sent } = this
    const { held } = this
    for (; queue.length > 0; queue.shift()) context.packets.release(queue.handle)
    sent.clear()
    this.encoder?.close()
    this.encoder = null
    return held
  }
}
