/** Sums of symbols that grow in packet slots of their own: what is to be added is gathered, and added by one call into the addon. */
import type { Packets } from '../../engine/packets.ts'
import { native } from '../../native/native.ts'
import { PARITY_SYMBOL_AT } from './parity-header.ts'

/** Additions gathered at most. */
const MAX_ADDITIONS = 512

/** The sums of one block, by line: the slot each grows in plus 1 (0: none, -1: it is given up), where it begins, and its bytes. */
export class LineSums {
  readonly slot: Int32Array
  readonly place: Int32Array
  readonly bytes: Int32Array

  constructor(lines: number) {
    this.slot = new Int32Array(lines)
    this.place = new Int32Array(lines)
    this.bytes = new Int32Array(lines)
  }
}

export class ParitySums {
  private readonly packets: Packets
  private readonly memory: number
  private readonly steps = new Int32Array(MAX_ADDITIONS * 4)
  private count = 0
  /** Slots whose sums are no longer needed, though they may be in the steps. */
  private readonly released: number[] = []
  private releasedCount = 0
  /** Slots that sums take. */
  held = 0

  constructor(packets: Packets, memory: number) {
    this.packets = packets
    this.memory = memory
  }

  /**
   * Adds a symbol of `bytes` bytes at `place` in the slot of `packet` (its own, or that of a train it lies in) to a line's sum, before the next
   * `run` returns. False: there was no slot, and the line's sum is given up.
   */
  add(sums: LineSums, line: number, packet: number, place: number, bytes: number): boolean {
    if (sums.slot[line] < 0) return false
    if (sums.slot[line] === 0 && !this.begin(sums, line, packet, place)) return false
    const { slotBytes } = this.packets
    const slot = sums.slot[line] - 1
    if (sums.place[line] + bytes > (slot + 1) * slotBytes) this.moveForward(sums, line, bytes)
    if (this.count === MAX_ADDITIONS) this.run()
    const at = this.count++ * 4
    this.steps[at] = sums.place[line]
    this.steps[at + 1] = sums.bytes[line]
    this.steps[at + 2] = place
    this.steps[at + 3] = bytes
    if (bytes > sums.bytes[line]) sums.bytes[line] = bytes
    return true
  }

  /** Adds a line's sum to a symbol of `bytes` bytes at `place`, which is at least as long. */
  addTo(place: number, bytes: number, sums: LineSums, line: number): void {
    if (sums.slot[line] <= 0) return
    if (this.count === MAX_ADDITIONS) this.run()
    const at = this.count++ * 4
    this.steps[at] = place
    this.steps[at + 1] = bytes
    this.steps[at + 2] = sums.place[line]
    this.steps[at + 3] = sums.bytes[line]
  }

  private begin(sums: LineSums, line: number, packet: number, place: number): boolean {
    const { packets } = this
    const slot = packets.allocate()
    if (slot < 0) {
      sums.slot[line] = -1
      return false
    }
    this.held++
    // Where the symbol lies in its slot, so that the sum finds the same room around it.
    const front = packets.train[packet] === 0 ? place - packet * packets.slotBytes : packets.headroom
    sums.slot[line] = slot + 1
    sums.place[line] = slot * packets.slotBytes + front
    sums.bytes[line] = 0
    return true
  }

  /** A longer symbol began further in front of its slot: the sum is moved as far as that takes. */
  private moveForward(sums: LineSums, line: number, bytes: number): void {
    this.run()
    const { data, slotBytes } = this.packets
    const from = sums.place[line]
    const to = sums.slot[line] * slotBytes - bytes
    data.copyWithin(to, from, from + sums.bytes[line])
    sums.place[line] = to
  }

  /** Does what was gathered. */
  run(): void {
    if (this.count > 0) {
      native.xorAdd(this.memory, this.steps, this.count)
      this.count = 0
    }
    for (let n = 0; n < this.releasedCount; n++) this.packets.release(this.released[n])
    this.releasedCount = 0
  }

  /** The slot of a line's sum, which is the caller's from now on, as a packet that begins `front` bytes before the sum; -1: there is none. */
  take(sums: LineSums, line: number, front = PARITY_SYMBOL_AT): number {
    const slot = sums.slot[line] - 1
    sums.slot[line] = 0
    if (slot < 0) return -1
    this.held--
    this.packets.offset[slot] = sums.place[line] - front
    this.packets.length[slot] = sums.bytes[line] + front
    return slot
  }

  /** Gives up a line's sum, and its slot back once nothing will be added to it any more. */
  release(sums: LineSums, line: number): void {
    const slot = this.take(sums, line)
    if (slot < 0) return
    this.released[this.releasedCount++] = slot
  }
}
