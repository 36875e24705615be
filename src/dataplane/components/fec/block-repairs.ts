/** The repairs of a block: which are taken, and which go because they contradict its sources or each other. */
import type { Counter } from '../../engine/metrics.ts'
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
    const { counters } = this
    const { symbols, shapes } = window
    const bytes = this.packets.length[packet]
    const shape = bytes * 256 + closing
    const at = place * window.stride + window.k + index
    const state = window.state[place]
    if (shapes[at] === shape) return this.refuse(packet, counters.duplicate_packets)
    if (symbols[at] !== UNSEEN || !this.fits(window, place, bytes, closing)) {
      return this.refuse(packet, counters.malformed_packets)
    }
    shapes[at] = shape
    window.repairs[place]++
    if (state !== OPEN) {
      symbols[at] = SEEN
      return this.refuse(packet, state === DONE ? counters.redundant_packets : counters.spent_packets)
    }
    const least = window.repairBytes[place]
    this.retention.keepRepair(window, place, at, packet)
    if (least === 0) {
      window.repairBytes[place] = bytes
      if (!this.progressive) window.closing[place] = closing
    } else if (bytes !== least || closing !== window.closing[place]) this.learn(window, place)
    return true
  }

  private refuse(packet: number, counter: Counter): false {
    this.packets.release(packet)
    counter.add(1)
    return false
  }

  /** Whether a repair of `bytes` bytes over `closing` sources can be one of a block of which this has come. */
  private fits(window: BlockWindow, place: number, bytes: number, closing: number): boolean {
    if (closing < window.top[place]) return this.progressive
    if (bytes < window.longest[place]) return false
    const least = window.repairBytes[place]
    if (this.progressive || least === 0 || (bytes === least && closing === window.closing[place])) return true
    // A block that is whole has one shape only, of one that is not nobody knows which is right.
    if (window.state[place] === DONE) return false
    if (this.mostShapes >= window.r) return true
    return window.shapesOf(place, bytes * 256 + closing, this.shapes) <= this.mostShapes
  }

  /** All `sources` of a block have come: so its repairs have this shape and no other. */
  settle(window: BlockWindow, place: number, sources: number): void {
    if (this.progressive) return
    window.repairBytes[place] = window.longest[place]
    window.closing[place] = sources
  }

  /** A source of `bytes` bytes has come, of a block with repairs: drops those at hand that know of no such one. */
  dropContradicted(window: BlockWindow, place: number, index: number, bytes: number): void {
    const least = window.repairBytes[place]
    if (window.state[place] !== OPEN) return
    const isWithin = this.progressive || (index < window.closing[place] && window.mixed[place] === 0)
    if (bytes <= least && isWithin) return
    const from = place * window.stride + window.k
    for (let at = from; at < from + window.r; at++) {
      const shape = window.shapeAt(at)
      if (shape === 0) continue
      const covers = (shape & 255) > index
      if (covers ? shape >> 8 < bytes : !this.progressive) this.drop(window, place, at)
    }
    this.learn(window, place)
  }

  /** Drops the repairs of one shape. */
  dropShape(window: BlockWindow, place: number, shape: number): void {
    const from = place * window.stride + window.k
    for (let at = from; at < from + window.r; at++) if (window.shapeAt(at) === shape) this.drop(window, place, at)
    this.learn(window, place)
  }

  /** The shape of which there are fewest repairs at hand; 0 where there are none. */
  fewest(window: BlockWindow, place: number): number {
    const from = place * window.stride + window.k
    const to = from + window.r
    let chosen = 0
    let fewest = window.r + 1
    for (let at = from; at < to; at++) {
      const shape = window.shapeAt(at)
      if (shape === 0) continue
      let count = 0
      for (let other = from; other < to; other++) if (window.shapeAt(other) === shape) count++
      if (count >= fewest) continue
      fewest = count
      chosen = shape
    }
    return chosen
  }

  /** A repair is not one of its block: it did not come, and the one in whose place it stood may. */
  private drop(window: BlockWindow, place: number, symbol: number): void {
    window.repairs[place]--
    this.retention.dropRepair(window, place, symbol, this.counters.malformed_packets)
  }

  /** Finds out anew what the repairs at hand of a block say of it. */
  private learn(window: BlockWindow, place: number): void {
    const from = place * window.stride + window.k
    let first = 0
    let least = 0
    let most = 0
    let mixed = 0
    for (let at = from; at < from + window.r; at++) {
      const shape = window.shapeAt(at)
      if (shape === 0) continue
      if (first === 0) first = shape
      else if (shape !== first) mixed = 1
      const bytes = shape >> 8
      if (least === 0 || bytes < least) least = bytes
      most = Math.max(most, shape & 255)
    }
    window.repairBytes[place] = least
    window.mixed[place] = mixed
    if (!this.progressive) window.closing[place] = most
  }
}
