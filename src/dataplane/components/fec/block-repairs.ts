/** The repairs of a block: which are taken, and which go because they contradict its sources or each other. */
import type { Packets } from '../../engine/packets.ts'
import type { BlockDecoderCounters } from './block-counters.ts'
import type { BlockRetention } from './block-retention.ts'
import { type BlockWindow, DONE, MAX_SHAPES, OPEN, SEEN, UNSEEN } from './block-window.ts'

/**
 * A repair says how many sources its block has (its closing) and, by its bytes, how long the longest is: both together are its shape,
 * bytes · 256 + closing. Repairs may be cut short or made up; sources are believed.
 */
export class BlockRepairs {
  private readonly packets: Packets
  private readonly counters: BlockDecoderCounters
  private readonly retention: BlockRetention
  /** As `listShapes` found them, until a repair is taken. */
  readonly shapes = new Int32Array(MAX_SHAPES)

  constructor(packets: Packets, counters: BlockDecoderCounters, retention: BlockRetention) {
    this.packets = packets
    this.counters = counters
    this.retention = retention
  }

  /** Keeps a repair, which begins with its symbol, or drops and counts it; whether it was kept. */
  take(window: BlockWindow, place: number, packet: number, index: number, closing: number): boolean {
    const { counters, packets } = this
    const bytes = packets.length[packet]
    const at = place * window.stride + window.k + index
    const { symbols } = window
    const known = window.closing[place]
    const differs = known !== 0 && (closing !== known || bytes !== window.repairBytes[place])
    const state = window.state[place]
    const isDone = state !== OPEN
    if (closing < window.top[place] || bytes < window.longest[place] || (isDone && differs)) {
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
    if (differs && window.shapesOf(place, packets.length, bytes * 256 + closing, this.shapes) > MAX_SHAPES) {
      packets.release(packet)
      counters.malformed_packets.add(1)
      return false
    }
    window.repairs[place]++
    if (isDone) {
      symbols[at] = SEEN
      packets.release(packet)
      if (state === DONE) counters.redundant_packets.add(1)
      else counters.spent_packets.add(1)
      return false
    }
    this.retention.keepRepair(window, place, at, packet)
    window.closings[at] = closing
    if (known === 0) {
      window.closing[place] = closing
      window.repairBytes[place] = bytes
    } else if (differs) window.learn(place, packets.length)
    return true
  }

  /** A source of `bytes` bytes has come: drops the repairs at hand that know of no such one. */
  dropContradicted(window: BlockWindow, place: number, index: number, bytes: number): void {
    const { packets } = this
    const from = place * window.stride + window.k
    for (let at = from; at < from + window.r; at++) {
      const kept = window.symbols[at]
      if (kept <= UNSEEN || (window.closings[at] > index && packets.length[kept - 1] >= bytes)) continue
      window.repairs[place]--
      this.retention.dropRepair(window, place, at, UNSEEN, this.counters.malformed_packets)
    }
    window.learn(place, packets.length)
  }

  /** Drops the repairs of one shape. */
  dropShape(window: BlockWindow, place: number, shape: number): void {
    const { packets } = this
    const from = place * window.stride + window.k
    for (let at = from; at < from + window.r; at++) {
      if (window.shapeAt(at, packets.length) !== shape) continue
      this.retention.dropRepair(window, place, at, SEEN, this.counters.malformed_packets)
    }
    window.learn(place, packets.length)
  }

  /** Lists the shapes of the repairs at hand in `shapes`; how many there are. */
  listShapes(window: BlockWindow, place: number): number {
    return window.shapesOf(place, this.packets.length, 0, this.shapes)
  }

  /** How many repairs of other shapes are at hand. */
  othersThan(window: BlockWindow, place: number, shape: number): number {
    const from = place * window.stride + window.k
    let others = 0
    for (let at = from; at < from + window.r; at++) {
      if (window.symbols[at] > UNSEEN && window.shapeAt(at, this.packets.length) !== shape) others++
    }
    return others
  }
}
