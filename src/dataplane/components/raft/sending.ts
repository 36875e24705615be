/** What goes on the carriers: pieces, again and for the first time, and repairs, as carriers have room. */

import { BATCH_CAPACITY } from '../../engine/batch.ts'
import type { RunClock } from '../../engine/clock.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Carrier } from './carrier.ts'
import type { RaftMetrics } from './metrics.ts'
import {
  FLAG_AGAIN,
  FLAG_PROTECTED,
  KIND_DATA,
  KIND_REPAIR,
  REPAIR_HEADER_BYTES,
  SYMBOL_AT,
  SYMBOL_HEADER_BYTES,
  writeHeader,
  writeRepair,
} from './packet.ts'
import { choose, chooseAgain } from './scheduler.ts'
import { ahead } from './serial.ts'
import type { StreamSender } from './stream-sender.ts'

/** Sequences before the one at hand that a receiver which begins with it waits for, where they may be on slower carriers. */
const MIN_BEHIND = 64
const MAX_BEHIND = 0xffff
/** Until what was lost while others were sent again is looked at, ns. */
const AGAIN_PAUSE_NS = 1_000_000

export interface SendingContext {
  readonly packets: Packets
  readonly clock: RunClock
  readonly metrics: RaftMetrics
}

export class Sending {
  /** Carriers that packets go on: those in use, of which there is always one. */
  readonly usable: Uint8Array
  /** Whether all that waited has gone last time, and the carriers had room left; those without limit never say when they are full. */
  hasRoomLeft = false
  private readonly context: SendingContext
  private readonly carriers: readonly Carrier[]
  private readonly outlets: readonly Outlet[]
  private readonly streams: readonly StreamSender[]
  private readonly session: number
  /** Indices of streams in which something waits. */
  private readonly waiting: Int32Array
  private waitingCount = 0
  private usableCount = 0
  private hasMoreAgain = false
  private pushed = 0

  constructor(
    context: SendingContext,
    session: number,
    carriers: readonly Carrier[],
    outlets: readonly Outlet[],
    streams: readonly StreamSender[],
  ) {
    this.context = context
    this.session = session
    this.carriers = carriers
    this.outlets = outlets
    this.streams = streams
    this.usable = new Uint8Array(carriers.length)
    this.waiting = new Int32Array(streams.length)
  }

  /** Takes note of which carriers may be used. */
  refresh(): void {
    const { carriers, usable } = this
    this.usableCount = 0
    for (let i = 0; i < carriers.length; i++) {
      usable[i] = carriers[i].used ? 1 : 0
      this.usableCount += usable[i]
    }
  }

  /** Bytes per ns that all usable carriers are good for. */
  get capacity(): number {
    let sum = 0
    for (let i = 0; i < this.carriers.length; i++) if (this.usable[i] === 1) sum += this.carriers[i].capacity
    return sum
  }

  /** Sends what may go now; returns when more may, ns (Infinity: when something comes). Only from a timer. */
  pump(): number {
    const { carriers, streams, context } = this
    this.refresh()
    for (let i = 0; i < carriers.length; i++) carriers[i].refill(context.clock.now)
    this.waitingCount = 0
    for (let i = 0; i < streams.length; i++) if (streams[i].waits) this.waiting[this.waitingCount++] = i
    this.hasMoreAgain = false
    const isDone = this.sendAll(true) && this.sendAll(false)
    this.flush()
    for (let i = 0; i < carriers.length && isDone; i++) carriers[i].runDry(context.clock.now)
    this.hasRoomLeft = isDone && this.areLimited
    if (!isDone) return this.roomAt()
    return this.hasMoreAgain ? context.clock.now + AGAIN_PAUSE_NS : Number.POSITIVE_INFINITY
  }

  private get areLimited(): boolean {
    for (let i = 0; i < this.carriers.length; i++) {
      if (this.usable[i] === 1 && this.carriers[i].pace === Number.POSITIVE_INFINITY) return false
    }
    return true
  }

  /** Hands over what was pushed. */
  flush(): void {
    for (let i = 0; i < this.waitingCount; i++) this.streams[this.waiting[i]].settle()
    for (let i = 0; i < this.outlets.length; i++) this.outlets[i].flush()
    this.pushed = 0
  }

  /** What realtime streams have to send comes before all that transit streams have. False: there was no room for all. */
  private sendAll(realtime: boolean): boolean {
    const isAgainDone = this.sendAgain(realtime)
    return this.sendRepairs(realtime) && this.sendNew(realtime) && isAgainDone
  }

  private sendAgain(realtime: boolean): boolean {
    for (let i = 0; i < this.waitingCount; i++) {
      const index = this.waiting[i]
      const stream = this.streams[index]
      if (stream.settings.realtime !== realtime) continue
      // What is lost meanwhile, since more is in flight than is kept account of, has to wait.
      for (let left = stream.againCount; stream.nextAgainBytes() >= 0; left--) {
        if (left <= 0) {
          this.hasMoreAgain = true
          break
        }
        const chosen = chooseAgain(this.carriers, this.usable)
        if (chosen < 0) return false
        const carrier = this.carriers[chosen]
        // On no carrier more than once at a time: each copy that is lost asks for another.
        const piece = stream.takeAgain(this.usableCount)
        if (piece < 0) continue
        if (stream.againLosses > 1 && stream.againFlying === 0) this.sendOnOthers(index, piece, carrier)
        this.sendPiece(index, piece, stream.againSequence, againFlags(stream), carrier)
      }
    }
    return true
  }

  /** What was lost twice goes on the other usable carriers too, with room or not: it is little, and much waits for it. */
  private sendOnOthers(index: number, piece: number, chosen: Carrier): void {
    const { carriers, context, usable } = this
    for (let i = 0; i < carriers.length; i++) {
      const carrier = carriers[i]
      if (carrier === chosen || usable[i] === 0 || carrier.priority < chosen.priority) continue
      const copy = context.packets.clone(piece)
      if (copy < 0) return
      context.metrics.created_packets.add(1)
      this.sendPiece(index, copy, this.streams[index].againSequence, againFlags(this.streams[index]), carrier)
    }
  }

  private sendRepairs(realtime: boolean): boolean {
    for (let i = 0; i < this.waitingCount; i++) {
      const index = this.waiting[i]
      if (this.streams[index].settings.realtime === realtime && !this.sendRepairsOf(index)) return false
    }
    return true
  }

  private sendRepairsOf(index: number): boolean {
    const stream = this.streams[index]
    while (stream.repairs > 0) {
      const chosen = choose(this.carriers, this.usable, stream.pieceBytes)
      if (chosen < 0) return false
      const repair = stream.takeRepair()
      if (repair < 0) continue
      const { packets, metrics, clock } = this.context
      const at = packets.prepend(repair, REPAIR_HEADER_BYTES)
      if (at < 0) {
        packets.release(repair)
        metrics.unready_packets.add(1)
        continue
      }
      const carrier = this.carriers[chosen]
      const bytes = packets.length[repair]
      const number = carrier.inFlight.add(-1, 0, bytes, clock.now)
      const { view } = packets
      writeHeader(view, at, KIND_REPAIR, 0, stream.repairCount, this.session, carrier.settings.handle, number)
      writeRepair(view, at, stream.settings.handle, stream.repairFirst, stream.repairKey)
      this.push(repair, carrier, bytes)
    }
    return true
  }

  /** One packet of each stream in turn. */
  private sendNew(realtime: boolean): boolean {
    for (let more = true; more; ) {
      more = false
      for (let i = 0; i < this.waitingCount; i++) {
        const index = this.waiting[i]
        const stream = this.streams[index]
        if (stream.settings.realtime !== realtime) continue
        const bytes = stream.nextBytes()
        if (bytes < 0) continue
        more = true
        const sent = stream.settings.replicated
          ? this.sendReplicated(index)
          : this.sendOnOne(index, bytes + SYMBOL_AT + SYMBOL_HEADER_BYTES)
        if (!sent || !this.sendRepairsOf(index)) return false
      }
    }
    return true
  }

  private sendOnOne(index: number, bytes: number): boolean {
    const carrier = choose(this.carriers, this.usable, bytes)
    if (carrier < 0) return false
    const stream = this.streams[index]
    const piece = stream.takePiece()
    const flags = stream.isProtected ? FLAG_PROTECTED : 0
    if (piece >= 0) this.sendPiece(index, piece, (stream.sent.next - 1) | 0, flags, this.carriers[carrier])
    return true
  }

  /** On every carrier that has room, left or not. */
  private sendReplicated(index: number): boolean {
    const { carriers, context } = this
    let left = 0
    for (let i = 0; i < carriers.length; i++) if (carriers[i].room > 0) left++
    if (left === 0) return false
    const stream = this.streams[index]
    const piece = stream.takePiece()
    if (piece < 0) return true
    const sequence = (stream.sent.next - 1) | 0
    for (let i = 0; i < carriers.length && left > 0; i++) {
      if (carriers[i].room <= 0) continue
      left--
      const copy = left > 0 ? context.packets.clone(piece) : piece
      if (copy < 0) {
        context.metrics.uncopied_packets.add(1)
        continue
      }
      if (copy !== piece) context.metrics.created_packets.add(1)
      this.sendPiece(index, copy, sequence, 0, carriers[i])
    }
    return true
  }

  private sendPiece(index: number, piece: number, sequence: number, flags: number, carrier: Carrier): void {
    const { packets, metrics, clock } = this.context
    const stream = this.streams[index]
    const at = packets.prepend(piece, SYMBOL_AT)
    if (at < 0) {
      // The encoder may not have copied it yet.
      stream.settle()
      packets.release(piece)
      metrics.unready_packets.add(1)
      return
    }
    const { settings, sent } = stream
    const bytes = packets.length[piece]
    const behind = Math.min(Math.max(ahead(sequence, sent.base), Math.min(sequence >>> 0, MIN_BEHIND)), MAX_BEHIND)
    const number = carrier.inFlight.add(settings.replicated ? -1 : index, sequence, bytes, clock.now)
    if (!settings.replicated) sent.send(sequence)
    writeHeader(packets.view, at, KIND_DATA, flags, behind, this.session, carrier.settings.handle, number)
    packets.view.setInt32(at + 16, settings.handle)
    packets.view.setInt32(at + 20, sequence)
    this.push(piece, carrier, bytes)
  }

  private push(packet: number, carrier: Carrier, bytes: number): void {
    carrier.lastSentAt = this.context.clock.now
    carrier.spend(bytes)
    // An outlet hands over when it is full, and codes copy what they have to keep before that.
    if (this.pushed === BATCH_CAPACITY - 1) this.flush()
    this.pushed++
    this.outlets[carrier.index].push(packet)
  }

  private roomAt(): number {
    let at = Number.POSITIVE_INFINITY
    for (let i = 0; i < this.carriers.length; i++) if (this.usable[i] === 1) at = Math.min(at, this.carriers[i].roomAt)
    return at
  }
}

/** Of the piece that goes again: what repairs of it have come so far are of use only if the other end hears that they cover it. */
const againFlags = ({ isAgainProtected }: StreamSender): number => FLAG_AGAIN | (isAgainProtected ? FLAG_PROTECTED : 0)
