/** Computes what follows of the missing sources of a block from the symbols at hand, and refuses what cannot have been sent. */
import type { Packets } from '../../engine/packets.ts'
import { native } from '../../native/native.ts'
import { LENGTH_BYTES } from './block-header.ts'
import { type BlockWindow, RECOVERED, REPLACED, UNSEEN } from './block-window.ts'
import { COMBINATION_AT, SEED_AT } from './combination-header.ts'
import { type BlockElimination, EliminationPool, MAX_BLOCK } from './elimination-pool.ts'

export class LinearBlockRecovery {
  /** Recovered packets, the first `count`, in the order of their sources. */
  readonly recovered = new Int32Array(MAX_BLOCK)
  count = 0
  private readonly packets: Packets
  private readonly memory: number
  private readonly pool = new EliminationPool()
  /** Places of what is to be computed. */
  private readonly targets = new Int32Array(MAX_BLOCK)
  /** Bytes of each source symbol of the block, 0 where they are not known. */
  private readonly lengths = new Int32Array(MAX_BLOCK)
  /** Most that each source symbol can have, as the repairs that cover it say. */
  private readonly most = new Int32Array(MAX_BLOCK)
  /** Of the repairs at hand: how many, the longest, the most sources that one covers, and where in its slot the symbol of one lies. */
  private repairs = 0
  private bytes = 0
  private covered = 0
  private slotAt = 0

  constructor(packets: Packets, memory: number) {
    this.packets = packets
    this.memory = memory
  }

  /** A block has ended, or some of its repairs no longer count. */
  forget(window: BlockWindow, place: number): void {
    this.pool.forget(window, place)
  }

  /**
   * Looks what follows from the sources and repairs at hand of a block; `recovered` has it, with the annotations of `like`. False: the
   * repairs contradict what arrived, or each other, and nothing follows.
   */
  run(window: BlockWindow, place: number, like: number): boolean {
    const one = this.pool.of(window, place)
    this.count = 0
    this.takeRepairs(one, window, place)
    const missing = this.knowSources(one, window, place)
    if (missing === 0 || this.repairs === 0) return true
    const { system } = one
    let room = missing
    // Fewer equations than unknowns seldom say anything.
    if (this.repairs < missing) room = system.solve(this.memory, this.targets, 0, this.bytes)
    if (room === 0 || !this.allocate(room)) return true
    const count = system.solve(this.memory, this.targets, room, this.bytes)
    this.release(count, room)
    if (!this.isPossible(one, window, place, count)) {
      this.release(0, count)
      return false
    }
    this.finish(one, window, place, count, like)
    return true
  }

  private takeRepairs(one: BlockElimination, window: BlockWindow, place: number): void {
    const { packets } = this
    const { symbols, closings, k, r } = window
    const { view, offset, length } = packets
    const base = place * window.stride + k
    this.repairs = 0
    this.bytes = 0
    this.covered = 0
    this.slotAt = packets.headroom - LENGTH_BYTES
    for (let j = 0; j < r; j++) {
      const kept = symbols[base + j]
      if (kept <= UNSEEN) continue
      const packet = kept - 1
      const bytes = length[packet]
      const covered = closings[base + j]
      this.repairs++
      if (bytes > this.bytes) {
        this.bytes = bytes
        if (packets.train[packet] < 0) this.slotAt = offset[packet] - packet * packets.slotBytes
      }
      if (covered > this.covered) this.covered = covered
      if (one.taken[j] !== 0) continue
      one.taken[j] = 1
      one.system.take(view.getInt32(offset[packet] - (COMBINATION_AT - SEED_AT)), covered, offset[packet], bytes)
    }
  }

  /** Returns how many of the sources that the repairs cover have not come, and were not recovered. */
  private knowSources(one: BlockElimination, window: BlockWindow, place: number): number {
    const { lengths, covered } = this
    const { symbols } = window
    const { offset, length } = this.packets
    const base = place * window.stride
    let missing = 0
    for (let i = 0; i < covered; i++) {
      const kept = symbols[base + i]
      lengths[i] = 0
      if (kept > UNSEEN) {
        lengths[i] = length[kept - 1]
        one.system.know(i, offset[kept - 1], length[kept - 1])
      } else if (kept === UNSEEN) missing++
      else one.system.pass(i)
    }
    return missing
  }

  private allocate(count: number): boolean {
    const { packets, recovered, targets } = this
    for (let n = 0; n < count; n++) {
      const packet = packets.allocate()
      if (packet < 0) {
        this.release(0, n)
        return false
      }
      recovered[n] = packet
      targets[n] = packet * packets.slotBytes + this.slotAt
    }
    return true
  }

  private release(from: number, to: number): void {
    for (let n = from; n < to; n++) this.packets.release(this.recovered[n])
  }

  /**
   * A repair is as long as the longest symbol of those that it covers: none is longer, and when all are known one is as long.
   */
  private isPossible(one: BlockElimination, window: BlockWindow, place: number, count: number): boolean {
    const { packets, lengths, most, covered } = this
    const { view, length } = packets
    const { symbols, closings, k, r } = window
    const { found } = one.system
    const base = place * window.stride + k
    for (let n = 0; n < count; n++) lengths[found[n]] = view.getUint16(this.targets[n]) + LENGTH_BYTES
    most.fill(this.bytes, 0, covered)
    for (let j = 0; j < r; j++) {
      const kept = symbols[base + j]
      if (kept > UNSEEN) most[closings[base + j] - 1] = Math.min(most[closings[base + j] - 1], length[kept - 1])
    }
    for (let i = covered - 2; i >= 0; i--) if (most[i + 1] < most[i]) most[i] = most[i + 1]
    for (let i = 0; i < covered; i++) if (lengths[i] > most[i]) return false
    // The longest up to each source; from one that is not known on nothing can be said.
    let longest = 0
    for (let i = 0; i < covered; i++) {
      longest = lengths[i] === 0 ? this.bytes + 1 : Math.max(longest, lengths[i])
      most[i] = longest
    }
    for (let j = 0; j < r; j++) {
      const kept = symbols[base + j]
      if (kept > UNSEEN && most[closings[base + j] - 1] < length[kept - 1]) return false
    }
    return true
  }

  private finish(one: BlockElimination, window: BlockWindow, place: number, count: number, like: number): void {
    const { packets, recovered, targets, lengths } = this
    const { found } = one.system
    const base = place * window.stride
    const { orderly } = window
    const top = window.top[place]
    for (let n = 0; n < count; n++) {
      const packet = recovered[n]
      const symbol = base + found[n]
      const from = targets[n] + LENGTH_BYTES
      const payload = lengths[found[n]] - LENGTH_BYTES
      // A sum costs a third of the recovery. One that others have overtaken, where nothing is ever overtaken, is lost.
      if (orderly && found[n] < top) window.symbols[symbol] = REPLACED
      else {
        window.symbols[symbol] = RECOVERED
        window.sums[symbol] = native.crc32c(this.memory, from, payload)
      }
      packets.offset[packet] = from
      packets.length[packet] = payload
      packets.annotateAs(packet, like)
    }
    this.count = count
  }

  /** Whether `packet`, which begins with its symbol, holds what was recovered in its place. */
  matches(window: BlockWindow, symbol: number, packet: number): boolean {
    const from = this.packets.offset[packet] + LENGTH_BYTES
    const payload = this.packets.length[packet] - LENGTH_BYTES
    return native.crc32c(this.memory, from, payload) === window.sums[symbol]
  }
}
