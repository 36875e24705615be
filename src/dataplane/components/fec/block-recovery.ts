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
  /** Places in the slab of the symbols at hand, then of those to compute. */
  private readonly places = new Int32Array(2 * MAX_SYMBOLS)
  private readonly lengths = new Int32Array(MAX_SYMBOLS)
  /** Bytes of the recovered payloads. */
  private readonly payloads = new Int32Array(MAX_SYMBOLS)

  constructor(packets: Packets, memory: number) {
    this.packets = packets
    this.memory = memory
  }

  /**
   * Recovers the missing of the `wanted` sources of a block with repairs of `bytes` bytes that say it has that many. There are
   * enough symbols at hand. The packets get the annotations of `like`.
   */
  run(window: BlockWindow, place: number, wanted: number, bytes: number, like: number): number {
    const { packets, points, missing, places, lengths, payloads, recovered } = this
    const { k, symbols, closings } = window
    const { slotBytes, offset, length } = packets
    const base = place * window.stride
    const mixed = window.mixed[place] !== 0
    let columns = 0
    let erasures = 0
    let uneven = false
    this.count = 0
    for (let i = 0; i < wanted; i++) {
      const kept = symbols[base + i]
      if (kept <= UNSEEN) {
        missing[erasures++] = i
        continue
      }
      points[columns] = i
      places[columns] = offset[kept - 1]
      const own = length[kept - 1]
      lengths[columns] = own
      if (own !== bytes) uneven = true
      columns++
    }
    let repair = -1
    for (let j = 0; columns < wanted; j++) {
      const kept = symbols[base + k + j]
      if (kept <= UNSEEN) continue
      if (mixed && (length[kept - 1] !== bytes || closings[base + k + j] !== wanted)) continue
      repair = kept - 1
      points[columns] = repairPoint(j)
      places[columns] = offset[repair]
      lengths[columns] = bytes
      columns++
    }
    // Where in its slot a recovered symbol goes: where a repair, which is as long, lies in its own.
    const at =
      repair >= 0 && packets.train[repair] < 0 ? offset[repair] - repair * slotBytes : packets.headroom - LENGTH_BYTES
    for (let m = 0; m < erasures; m++) {
      const packet = packets.allocate()
      if (packet < 0) {
        this.release(m)
        return NO_SLOT
      }
      recovered[m] = packet
      places[wanted + m] = packet * slotBytes + at
    }
    const matrix = this.matrices.get(points, wanted, missing, erasures)
    if (uneven) native.gfMatrixMultiply(this.memory, matrix, places, wanted, erasures, bytes, lengths)
    else native.gfMatrixMultiply(this.memory, matrix, places, wanted, erasures, bytes)
    if (!this.isPossible(window.longest[place], wanted, erasures, bytes)) {
      this.release(erasures)
      return CONTRADICTED
    }
    const { orderly } = window
    const top = window.top[place]
    let good = 0
    for (let m = 0; m < erasures; m++) {
      const packet = recovered[m]
      const symbol = base + missing[m]
      // It came, but there was no slot to keep it.
      if (symbols[symbol] === SEEN) {
        packets.release(packet)
        continue
      }
      const from = places[wanted + m] + LENGTH_BYTES
      const payload = payloads[m]
      // A sum costs a third of the recovery. One that others have overtaken, where nothing is ever overtaken, is lost.
      if (orderly && missing[m] < top) symbols[symbol] = REPLACED
      else {
        symbols[symbol] = RECOVERED
        window.sums[symbol] = native.crc32c(this.memory, from, payload)
      }
      offset[packet] = from
      length[packet] = payload
      packets.annotateAs(packet, like)
      recovered[good++] = packet
    }
    this.count = good
    return DECODED
  }

  /** Repairs are as long as their block's longest symbol: none is longer, and with all of them there one is as long. */
  private isPossible(longest: number, wanted: number, erasures: number, bytes: number): boolean {
    const { places, payloads } = this
    const { view } = this.packets
    let most = longest - LENGTH_BYTES
    for (let m = 0; m < erasures; m++) {
      const payload = view.getUint16(places[wanted + m])
      if (payload > most) most = payload
      payloads[m] = payload
    }
    return most === bytes - LENGTH_BYTES
  }

  private release(count: number): void {
    for (let n = 0; n < count; n++) this.packets.release(this.recovered[n])
  }

  /** Whether `packet` holds what was recovered in its place. */
  matches(window: BlockWindow, symbol: number, packet: number): boolean {
    const from = this.packets.offset[packet] + LENGTH_BYTES
    const payload = this.packets.length[packet] - LENGTH_BYTES
    return native.crc32c(this.memory, from, payload) === window.sums[symbol]
  }
}
