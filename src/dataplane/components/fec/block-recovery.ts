/** Computes the missing sources of a block from the symbols at hand, and refuses what cannot have been sent. */
import { DecodingMatrices, MAX_SYMBOLS, repairPoint } from '../../codes/cauchy.ts'
import type { Packets } from '../../engine/packets.ts'
import { native } from '../../native/native.ts'
import { LENGTH_BYTES } from './block-header.ts'
import { type BlockWindow, RECOVERED, REPLACED, SEEN, UNSEEN } from './block-window.ts'

/** What came of it: `packets[0..count)` were recovered; the repairs contradicted what arrived; or slots have run out. */
export const DECODED = 0
export const CONTRADICTED = 1
const NO_SLOT = 2

export class BlockRecovery {
  /** Recovered packets, in the order of their sources. */
  readonly recovered = new Int32Array(MAX_SYMBOLS)
  count = 0
  private readonly packets: Packets
  private readonly memory: number
  private readonly matrices = new DecodingMatrices()
  private readonly points = new Uint8Array(MAX_SYMBOLS)
  private readonly missing = new Uint8Array(MAX_SYMBOLS)
  /** Packets of the symbols at hand, then of those computed. */
  private readonly list = new Int32Array(2 * MAX_SYMBOLS)

  constructor(packets: Packets, memory: number) {
    this.packets = packets
    this.memory = memory
  }

  /**
   * Recovers the missing of the `wanted` sources of a block with repairs of `bytes` bytes that say it has that many. There are
   * enough symbols at hand. The packets get the annotations of `like`.
   */
  run(window: BlockWindow, place: number, wanted: number, bytes: number, like: number): number {
    const { packets, points, missing, list, memory } = this
    const { k, symbols } = window
    const base = place * window.stride
    let columns = 0
    let erasures = 0
    this.count = 0
    for (let i = 0; i < wanted; i++) {
      // 1 where it is at hand. Which are is anyone's guess: a branch would be mispredicted at every second gap.
      const kept = symbols[base + i]
      const isAtHand = (UNSEEN - kept) >>> 31
      points[columns] = i
      list[columns] = kept - 1
      missing[erasures] = i
      columns += isAtHand
      erasures += 1 - isAtHand
    }
    for (let j = 0; columns < wanted; j++) {
      const at = base + k + j
      if (symbols[at] <= UNSEEN || !this.fits(window, place, at, wanted, bytes)) continue
      points[columns] = repairPoint(j)
      list[columns++] = symbols[at] - 1
    }
    const matrix = this.matrices.get(points, wanted, missing, erasures)
    const made = native.gfMultiplyPackets(memory, matrix, list, 1, wanted, erasures, 0, bytes, like)
    if (made < erasures || !this.isPossible(window.longest[place], wanted, erasures, bytes)) {
      for (let m = 0; m < made; m++) packets.release(list[wanted + m])
      return made < erasures ? NO_SLOT : CONTRADICTED
    }
    for (let m = 0; m < erasures; m++) this.deliver(window, place, missing[m], list[wanted + m])
    return DECODED
  }

  /** Whether the repair at `at` is one of those to decode with: where there are others, `mixed`, not all are. */
  private fits(window: BlockWindow, place: number, at: number, wanted: number, bytes: number): boolean {
    if (window.mixed[place] === 0) return true
    return this.packets.length[window.symbols[at] - 1] === bytes && window.closings[at] === wanted
  }

  /** Repairs are as long as their block's longest symbol: none is longer, and with all of them there one is as long. */
  private isPossible(longest: number, wanted: number, erasures: number, bytes: number): boolean {
    const { list } = this
    const { view, offset } = this.packets
    let most = longest - LENGTH_BYTES
    for (let m = 0; m < erasures; m++) {
      const payload = view.getUint16(offset[list[wanted + m]])
      if (payload > most) most = payload
    }
    return most === bytes - LENGTH_BYTES
  }

  /** Cuts the recovered source `index` to its payload and puts it among the recovered, unless it has come after all. */
  private deliver(window: BlockWindow, place: number, index: number, packet: number): void {
    const { packets } = this
    const symbol = place * window.stride + index
    // It came, but there was no slot to keep it.
    if (window.symbols[symbol] === SEEN) {
      packets.release(packet)
      return
    }
    const at = packets.offset[packet]
    const payload = packets.view.getUint16(at)
    packets.offset[packet] = at + LENGTH_BYTES
    packets.length[packet] = payload
    // A sum costs a third of the recovery. One that others have overtaken, where nothing is ever overtaken, is lost.
    if (window.orderly && index < window.top[place]) window.symbols[symbol] = REPLACED
    else {
      window.symbols[symbol] = RECOVERED
      window.sums[symbol] = native.crc32c(this.memory, at + LENGTH_BYTES, payload)
    }
    this.recovered[this.count++] = packet
  }

  /** Whether `packet` holds what was recovered in its place. */
  matches(window: BlockWindow, symbol: number, packet: number): boolean {
    const from = this.packets.offset[packet] + LENGTH_BYTES
    const payload = this.packets.length[packet] - LENGTH_BYTES
    return native.crc32c(this.memory, from, payload) === window.sums[symbol]
  }
}
