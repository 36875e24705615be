/** The repairs of a block: which are taken, and which go because they contradict its sources or each other. */
import type { Packets } from '../../engine/packets.ts'
import type { BlockDecoderCounters } from './block-counters.ts'
import type { BlockRetention } from './block-retention.ts'
import { type BlockWindow, DONE, OPEN, SEEN, UNSEEN } from './block-window.ts'

/**
 * A repair says how many sources it is over (its closing) and, by its bytes, how long the longest of them is: both together are its shape,
 * bytes · 256 + closing. Repairs may be cut short or made up; sources are believed.
 *
 * Of each block `repairBytes` of its window has the length of the shortest repair at hand, `mixed` whether there are several shapes, and,
 * where every repair is over its whole block, `closing` the most sources that one says there are.
 */
export class BlockRepairs {
  private readonly packets: Packets
  private readonly counters: BlockDecoderCounters
  private readonly retention: BlockRetention
  private readonly progressive: boolean
  private readonly mostShapes: number
  private readonly shapes: Int32Array

  /** With `progressive` repairs are over the first sources of their block. Those of more than `mostShapes` shapes are refused. */
  constructor(
    packets: Packets,
    counters: BlockDecoderCounters,
    retention: BlockRetention,
    progressive: boolean,
    mostShapes: number,
  ) {
    this.packets = packets
    this.counters = counters
    this.retention = retention
    this.progressive = progressive
    this.mostShapes = mostShapes
    this.shapes = new Int32Array(mostShapes)
  }

  /** Keeps a repair, which begins with its symbol, or drops and counts it; whether it was kept. */
  take(window: BlockWindow, place: number, packet: number, index: number, closing: number): boolean {
    const { counters, packets } = this
    const bytes = packets.length[packet]
    const at = place * window.stride + window.k + index
    const { symbols } = window
    const state = window.state[place]
    const least = window.repairBytes[place]
    const differs = least !== 0 && (bytes !== least || closing !== window.closing[place])
    if (!this.fits(window, place, bytes, closing) || (state !== OPEN && differs && !this.progressive)) {
      packets.release(packet)
      counters.malformed_packets.add(1)
      return false
    }
    if (symbols[at] !== UNSEEN) {
      const same = symbols[at] < UNSEEN || window.shapeAt(at, packets.length) === bytes * 256 + closing
      packets.release(packet)
      if (same) counters.duplicate_packets.add(1)
      else counters.malformed_packets.add(1)
      return false
    }
    if (differs && !this.hasRoomFor(window, place, bytes * 256 + closing)) {
      packets.release(packet)
      counters.malformed_packets.add(1)
      return false
    }
    window.repairs[place]++
    if (state !== OPEN) {
      symbols[at] = SEEN
      packets.release(packet)
      if (state === DONE) counters.redundant_packets.add(1)
      else counters.spent_packets.add(1)
      return false
    }
    this.retention.keepRepair(window, place, at, packet)
    window.closings[at] = closing
    if (least === 0) {
      window.repairBytes[place] = bytes
      if (!this.progressive) window.closing[place] = closing
    } else if (differs) this.learn(window, place)
    return true
  }

  /** Whether a repair of `bytes` bytes over `closing` sources can be one of a block of which these sources have come. */
  private fits(window: BlockWindow, place: number, bytes: number, closing: number): boolean {
    return closing >= window.top[place] ? bytes >= window.longest[place] : this.progressive
  }

  /** Whether repairs of this shape, and of those at hand, are of few enough shapes. */
  private hasRoomFor(window: BlockWindow, place: number, shape: number): boolean {
    if (this.mostShapes >= window.r) return true
    return window.shapesOf(place, this.packets.length, shape, this.shapes) <= this.mostShapes
  }

  /** A source of `bytes` bytes has come: drops the repairs at hand that know of no such one. */
  dropContradicted(window: BlockWindow, place: number, index: number, bytes: number): void {
    const least = window.repairBytes[place]
    if (least === 0) return
    const isWithin = this.progressive || (index < window.closing[place] && window.mixed[place] === 0)
    if (bytes <= least && isWithin) return
    const { packets } = this
    const from = place * window.stride + window.k
    for (let at = from; at < from + window.r; at++) {
      const kept = window.symbols[at]
      if (kept <= UNSEEN) continue
      const covers = window.closings[at] > index
      if (covers ? packets.length[kept - 1] < bytes : !this.progressive) this.drop(window, place, at, UNSEEN)
    }
    this.learn(window, place)
  }

  /** Drops the repairs of one shape. */
  dropShape(window: BlockWindow, place: number, shape: number): void {
    const { length } = this.packets
    const from = place * window.stride + window.k
    for (let at = from; at < from + window.r; at++) {
      if (window.shapeAt(at, length) === shape) this.drop(window, place, at, SEEN)
    }
    this.learn(window, place)
  }

  /** The shape of which there are fewest repairs at hand; 0 where there are none. */
  fewest(window: BlockWindow, place: number): number {
    const { length } = this.packets
    const from = place * window.stride + window.k
    const to = from + window.r
    let chosen = 0
    let fewest = window.r + 1
    for (let at = from; at < to; at++) {
      const shape = window.shapeAt(at, length)
      if (shape === 0) continue
      let count = 0
      for (let other = from; other < to; other++) if (window.shapeAt(other, length) === shape) count++
      if (count >= fewest) continue
      fewest = count
      chosen = shape
    }
    return chosen
  }

  private drop(window: BlockWindow, place: number, symbol: number, state: number): void {
    window.repairs[place]--
    this.retention.dropRepair(window, place, symbol, state, this.counters.malformed_packets)
  }

  /** Finds out anew what the repairs at hand of a block say of it. */
  private learn(window: BlockWindow, place: number): void {
    const { length } = this.packets
    const from = place * window.stride + window.k
    let first = 0
    let least = 0
    let most = 0
    let mixed = 0
    for (let at = from; at < from + window.r; at++) {
      const shape = window.shapeAt(at, length)
      if (shape === 0) continue
      if (first === 0) first = shape
      else if (shape !== first) mixed = 1
      const bytes = shape >> 8
      if (least === 0 || bytes < least) least = bytes
      most = Math.max(most, window.closings[at])
    }
    window.repairBytes[place] = least
    window.mixed[place] = mixed
    if (!this.progressive) window.closing[place] = most
  }
}
