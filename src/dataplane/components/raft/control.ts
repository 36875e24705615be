/** Packets about packets: reports of what has come, probes of carriers and their answers. */
import type { RunClock } from '../../engine/clock.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Carrier } from './carrier.ts'
import type { RaftMetrics } from './metrics.ts'
import { KIND_ANSWER, KIND_PROBE, KIND_REPORT, PROBE_BYTES, REPORT_HEADER_BYTES, writeHeader } from './packet.ts'

/** Carriers that a report goes on: what one loses another brings, and a carrier that dies takes no other with it. */
const REPORT_CARRIERS = 4

export interface ControlContext {
  readonly packets: Packets
  readonly clock: RunClock
  readonly metrics: RaftMetrics
  entropy(bytes: number): Uint8Array
}

export class Control {
  /** Longest packet, bytes. */
  private readonly packetBytes: number
  private readonly context: ControlContext
  private readonly session: number
  private readonly carriers: readonly Carrier[]
  private readonly outlets: readonly Outlet[]
  private turn = 0

  constructor(
    context: ControlContext,
    session: number,
    carriers: readonly Carrier[],
    outlets: readonly Outlet[],
    packetBytes: number,
  ) {
    this.context = context
    this.session = session
    this.carriers = carriers
    this.outlets = outlets
    this.packetBytes = packetBytes
  }

  /** Reports of all carriers to the session `peer`, on the usable ones in turn. Only from a timer. */
  report(usable: Uint8Array, peer: number): void {
    const { packets, clock } = this.context
    for (let next = 0; next < this.carriers.length; ) {
      const report = this.make(KIND_REPORT, 0, REPORT_HEADER_BYTES)
      if (report < 0) return
      packets.view.setInt32(packets.offset[report] + 16, peer)
      let blocks = 0
      for (; next < this.carriers.length; next++) {
        const { arrivals, settings } = this.carriers[next]
        const most = this.packetBytes - REPORT_HEADER_BYTES
        const bytes = arrivals.blockBytes(most)
        if (bytes === 0) continue
        if (packets.length[report] + bytes > this.packetBytes) break
        const at = packets.append(report, bytes)
        arrivals.write(packets.view, at, settings.handle, clock.now, most)
        blocks++
      }
      packets.view.setUint16(packets.offset[report] + 2, blocks)
      if (blocks === 0) {
        packets.release(report)
        this.context.metrics.consumed_packets.add(1)
      } else this.spread(report, usable)
    }
  }

  private spread(report: number, usable: Uint8Array): void {
    const { packets, metrics } = this.context
    const { carriers } = this
    this.turn = (this.turn + 1) % carriers.length
    let sent = 0
    for (let i = 0; i < carriers.length && sent < REPORT_CARRIERS; i++) {
      const carrier = carriers[(this.turn + i) % carriers.length]
      if (usable[carrier.index] === 0) continue
      const copy = packets.clone(report)
      if (copy < 0) break
      metrics.created_packets.add(1)
      this.push(copy, carrier)
      sent++
    }
    packets.release(report)
    metrics.consumed_packets.add(1)
  }

  /** A probe on a carrier. Only from a timer. */
  probe(carrier: Carrier): void {
    const [a, b, c, d] = this.context.entropy(4)
    const token = (a << 24) | (b << 16) | (c << 8) | d
    carrier.probes.add(token, carrier.inFlight.next, this.context.clock.now)
    const probe = this.make(KIND_PROBE, token, PROBE_BYTES)
    if (probe < 0) return
    this.context.packets.view.setInt32(this.context.packets.offset[probe] + 16, 0)
    this.push(probe, carrier)
  }

  /** Makes of a probe of the session `prober` its answer, and sends it back. Only from a timer. */
  answer(token: number, prober: number, carrier: Carrier): void {
    const answer = this.make(KIND_ANSWER, token, PROBE_BYTES)
    if (answer < 0) return
    this.context.packets.view.setInt32(this.context.packets.offset[answer] + 16, prober)
    this.push(answer, carrier)
  }

  flush(): void {
    for (let i = 0; i < this.outlets.length; i++) this.outlets[i].flush()
  }

  private make(kind: number, number: number, bytes: number): number {
    const { packets, metrics } = this.context
    const packet = packets.allocate()
    if (packet < 0) return -1
    const at = packets.append(packet, bytes)
    writeHeader(packets.view, at, kind, 0, 0, this.session, 0, number)
    metrics.created_packets.add(1)
    return packet
  }

  private push(packet: number, carrier: Carrier): void {
    const { packets } = this.context
    packets.view.setInt32(packets.offset[packet] + 8, carrier.settings.handle)
    carrier.spend(packets.length[packet])
    this.outlets[carrier.index].push(packet)
  }
}
