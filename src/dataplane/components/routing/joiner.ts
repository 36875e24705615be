/** Puts packets together from their fragments. */
import type { RunClock } from '../../engine/clock.ts'
import type { Counter } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Timer } from '../../engine/timers.ts'
import { Senders } from '../shared/senders.ts'
import { Assemblies, MAX_ASSEMBLIES, MAX_ASSEMBLY_BYTES, MAX_ASSEMBLY_NS } from './assemblies.ts'
import { FRAGMENT_BYTES } from './fragment-header.ts'

/** Longest packet put together, bytes. */
export const MAX_JOINED_PACKET = 65_535

interface JoinerContext {
  readonly packets: Packets
  readonly clock: RunClock
  readonly outlets: { readonly output: Outlet }
  readonly metrics: {
    readonly reassembled_packets: Counter
    readonly joined_fragments: Counter
    readonly incomplete_packets: Counter
    readonly contradictory_packets: Counter
    readonly duplicate_packets: Counter
    readonly oversize_packets: Counter
    readonly unfollowed_packets: Counter
    readonly malformed_packets: Counter
  }
  timer(fire: () => void): Timer
}

/**
 * The fragment of a packet that comes first gives its slot: there all are gathered, each where it belongs once the length of the
 * pieces is known, the last one in front until then.
 */
export class Joiner {
  private readonly context: JoinerContext
  private readonly packets: Packets
  private readonly outlet: Outlet
  private readonly assemblies = new Assemblies()
  private readonly senders = new Senders()
  private readonly timer: Timer

  constructor(context: JoinerContext) {
    this.context = context
    this.packets = context.packets
    this.outlet = context.outlets.output
    this.timer = context.timer(() => this.expire())
  }

  /** Packets that are not whole yet. */
  get held(): number {
    return this.assemblies.length
  }

  /** Takes a fragment; what becomes whole is gathered in the outlet. */
  take(packet: number): void {
    const { packets, context } = this
    const { view } = packets
    const at = packets.offset[packet]
    const bytes = packets.length[packet] - FRAGMENT_BYTES
    const count = bytes < 0 ? 0 : view.getUint8(at + 7)
    const index = count === 0 ? 0 : view.getUint8(at + 6)
    if (count <= index || (count > 1 && bytes === 0)) {
      this.drop(packet, context.metrics.malformed_packets)
      return
    }
    packets.trimFront(packet, FRAGMENT_BYTES)
    const sender = view.getUint16(at)
    if (count === 1) {
      // Needs no place, but whoever has one is not silent.
      this.senders.find(sender)
      this.outlet.push(packet)
    } else this.join(packet, sender, view.getInt32(at + 2), index, count)
  }

  private join(packet: number, sender: number, serial: number, index: number, count: number): void {
    const { assemblies, packets, context } = this
    const { metrics, clock } = context
    const bytes = packets.length[packet]
    if (assemblies.isOver(sender, serial, clock.now)) {
      this.drop(packet, metrics.duplicate_packets)
      return
    }
    if (!this.senders.follows(sender)) {
      this.drop(packet, metrics.unfollowed_packets)
      return
    }
    while (assemblies.bytes + bytes > MAX_ASSEMBLY_BYTES) this.giveUp(assemblies.oldest)
    const known = assemblies.find(sender, serial)
    if (known >= 0 && assemblies.has(known, index)) {
      if (this.isSame(known, packet, index, count)) this.drop(packet, metrics.duplicate_packets)
      else this.refuse(known, packet, metrics.contradictory_packets)
      return
    }
    const place = known >= 0 ? known : this.begin(packet, sender, serial, count)
    if (!this.fits(place, index, count, bytes)) {
      this.refuse(place, packet, metrics.contradictory_packets)
      return
    }
    if (this.lengthWith(place, index, bytes) > MAX_JOINED_PACKET) {
      this.refuse(place, packet, metrics.oversize_packets)
      return
    }
    this.put(place, packet, index, bytes)
    if (assemblies.arrived[place] === count) this.complete(place, packet)
    else if (assemblies.slot[place] !== packet) this.drop(packet, metrics.joined_fragments)
  }

  /** A place for a packet that `packet` is the first fragment of. */
  private begin(packet: number, sender: number, serial: number, count: number): number {
    const { assemblies, packets, timer } = this
    const { now } = this.context.clock
    if (assemblies.length === MAX_ASSEMBLIES) this.giveUp(assemblies.oldest)
    packets.settle(packet)
    if (!timer.armed) timer.at(now + MAX_ASSEMBLY_NS)
    return assemblies.open(sender, serial, count, packet, now)
  }

  /** Whether a fragment agrees with what is there of its packet: all have one length but the last, which is not longer. */
  private fits(place: number, index: number, count: number, bytes: number): boolean {
    const { assemblies } = this
    if (count !== assemblies.count[place]) return false
    const piece = assemblies.piece[place]
    if (index === count - 1) return piece < 0 || bytes <= piece
    return piece < 0 ? bytes >= assemblies.tail[place] : bytes === piece
  }

  /** The least that the packet is long with a fragment that fits. */
  private lengthWith(place: number, index: number, bytes: number): number {
    const { piece, tail, count } = this.assemblies
    const last = count[place] - 1
    if (index === last) return last * Math.max(piece[place], bytes) + bytes
    return last * bytes + Math.max(tail[place], 1)
  }

  /** Where the gathered packet begins. */
  private start(place: number): number {
    const { slotBytes, headroom } = this.packets
    return this.assemblies.slot[place] * slotBytes + headroom
  }

  /** Copies a fragment to where it belongs, and notes it. */
  private put(place: number, packet: number, index: number, bytes: number): void {
    const { assemblies, packets } = this
    const { piece, tail, count } = assemblies
    const { data } = packets
    const from = packets.offset[packet]
    const start = this.start(place)
    const last = count[place] - 1
    if (index === last) tail[place] = bytes
    else if (piece[place] < 0) {
      piece[place] = bytes
      if (tail[place] >= 0) data.copyWithin(start + last * bytes, start, start + tail[place])
    }
    data.copyWithin(start + index * Math.max(piece[place], 0), from, from + bytes)
    assemblies.add(place, index, bytes)
  }

  /** Whether the fragment `index`, which is there, has the bytes of `packet`. */
  private isSame(place: number, packet: number, index: number, count: number): boolean {
    const { assemblies, packets } = this
    const { data, length, offset } = packets
    const { piece, tail } = assemblies
    const bytes = index === assemblies.count[place] - 1 ? tail[place] : piece[place]
    if (count !== assemblies.count[place] || length[packet] !== bytes) return false
    const there = this.start(place) + index * Math.max(piece[place], 0)
    const here = offset[packet]
    for (let i = 0; i < bytes; i++) if (data[there + i] !== data[here + i]) return false
    return true
  }

  /** Sends the packet of `place`, to which `packet` was what was missing. */
  private complete(place: number, packet: number): void {
    const { assemblies, packets } = this
    const { metrics, clock } = this.context
    const { piece, tail, count } = assemblies
    const whole = assemblies.slot[place]
    packets.offset[whole] = this.start(place)
    packets.length[whole] = (count[place] - 1) * piece[place] + tail[place]
    packets.annotateAs(whole, packet)
    this.drop(packet, metrics.joined_fragments)
    assemblies.close(place, clock.now)
    metrics.reassembled_packets.add(1)
    this.outlet.push(whole)
  }

  /** Drops what is there of a packet, and the fragment that is why, which may be all that is there. */
  private refuse(place: number, packet: number, reason: Counter): void {
    const { assemblies } = this
    const slot = assemblies.slot[place]
    assemblies.close(place, this.context.clock.now)
    this.drop(slot, reason)
    if (slot !== packet) this.drop(packet, reason)
  }

  private giveUp(place: number): void {
    const { assemblies, context } = this
    this.drop(assemblies.slot[place], context.metrics.incomplete_packets)
    assemblies.close(place, context.clock.now)
  }

  private drop(packet: number, reason: Counter): void {
    this.packets.release(packet)
    reason.add(1)
  }

  /** Gives up what has waited long enough. */
  private expire(): void {
    const { assemblies, timer } = this
    const { now } = this.context.clock
    while (assemblies.length > 0 && assemblies.born[assemblies.oldest] + MAX_ASSEMBLY_NS <= now) {
      this.giveUp(assemblies.oldest)
    }
    if (assemblies.length > 0) timer.at(assemblies.born[assemblies.oldest] + MAX_ASSEMBLY_NS)
  }

  /** Forgets what is not whole, and every sender. */
  reset(): void {
    while (this.assemblies.length > 0) this.giveUp(this.assemblies.oldest)
    this.assemblies.forget()
    this.senders.reset()
  }

  /** Gives back every slot; how many there were. */
  stop(): number {
    const { assemblies, packets } = this
    const { length } = assemblies
    this.timer.cancel()
    while (assemblies.length > 0) {
      packets.release(assemblies.slot[assemblies.oldest])
      assemblies.close(assemblies.oldest, 0)
    }
    return length
  }
}
