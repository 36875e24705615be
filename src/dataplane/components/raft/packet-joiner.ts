/** Puts the pieces of a stream's packets together, in the order in which the window lets them go. */
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { RaftMetrics, StreamMetrics } from './metrics.ts'
import { PIECE_FIRST, PIECE_LAST, piecesOf, SYMBOL_HEADER_BYTES, timeOf } from './packet.ts'

export class PacketJoiner {
  /** The packet that is being put together, -1: none. */
  private joined = -1
  /** When it came in at the other end, as all of its pieces say. */
  private time = 0
  private readonly packets: Packets
  private readonly counters: RaftMetrics
  private readonly metrics: StreamMetrics
  private readonly outlet: Outlet

  constructor(packets: Packets, counters: RaftMetrics, metrics: StreamMetrics, outlet: Outlet) {
    this.packets = packets
    this.counters = counters
    this.metrics = metrics
    this.outlet = outlet
  }

  /** Packets held. */
  get held(): number {
    return this.joined >= 0 ? 1 : 0
  }

  /** Takes the next piece, a packet that begins with its symbol. The outlet wants a `flush` then. */
  take(piece: number): void {
    const { packets, counters } = this
    const pieces = piecesOf(packets.view, packets.offset[piece])
    const time = timeOf(packets.view, packets.offset[piece])
    const start = packets.trimFront(piece, SYMBOL_HEADER_BYTES) + SYMBOL_HEADER_BYTES
    if ((pieces & PIECE_FIRST) !== 0) {
      this.interrupt()
      if ((pieces & PIECE_LAST) !== 0) {
        this.deliver(piece)
        return
      }
      this.joined = packets.allocate()
      this.time = time
      if (this.joined >= 0) counters.created_packets.add(1)
    }
    if (time !== this.time) this.interrupt()
    if (this.joined < 0) {
      packets.release(piece)
      counters.incomplete_packets.add(1)
      return
    }
    const bytes = packets.length[piece]
    const at = packets.append(this.joined, bytes)
    if (at < 0) {
      packets.release(this.joined)
      this.joined = -1
      counters.oversize_packets.add(1)
    } else {
      packets.data.copyWithin(at, start, start + bytes)
      packets.annotateAs(this.joined, piece)
    }
    packets.release(piece)
    counters.consumed_packets.add(1)
    if (this.joined < 0 || (pieces & PIECE_LAST) === 0) return
    const { joined } = this
    this.joined = -1
    this.deliver(joined)
  }

  /** Takes a packet that is in one piece, out of order. */
  takeAlone(packet: number): void {
    this.packets.trimFront(packet, SYMBOL_HEADER_BYTES)
    this.deliver(packet)
  }

  /** Gives back what was begun; the caller counts it. */
  drop(): void {
    if (this.joined >= 0) this.packets.release(this.joined)
    this.joined = -1
  }

  /** A piece is missing here: what was begun stays incomplete. */
  interrupt(): void {
    if (this.joined < 0) return
    this.packets.release(this.joined)
    this.joined = -1
    this.counters.incomplete_packets.add(1)
  }

  private deliver(packet: number): void {
    this.metrics.delivered_packets.add(1)
    this.outlet.push(packet)
  }
}
