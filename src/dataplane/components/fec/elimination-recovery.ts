/** Computes each missing source of a block of random linear combinations as soon as it follows from the symbols at hand. */
import { native } from '../../native/native.ts'
import { LENGTH_BYTES, MAX_BLOCK, SEED_BYTES } from './block-header.ts'
import { BlockRecovery, CONTRADICTED, NO_MORE } from './block-recovery.ts'
import { type BlockWindow, UNSEEN } from './block-window.ts'
import { type BlockElimination, EliminationPool } from './elimination-pool.ts'

export class EliminationRecovery extends BlockRecovery {
  readonly random = true
  /** All repairs go into one system of equations, however many shapes they have. */
  readonly mostShapes = MAX_BLOCK
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
  /** Sources of those that are known and at hand. */
  private atHand = 0

  forget(window: BlockWindow, place: number): void {
    this.pool.forget(window, place)
  }

  run(window: BlockWindow, place: number, like: number): number {
    const outcome = this.recoverAll(window, place, like)
    return outcome === NO_MORE ? this.recoverWhatFollows(window, place, like) : outcome
  }

  /** Where there are as many symbols as sources, and all repairs say the same of them, all that is missing is one product. */
  private recoverAll(window: BlockWindow, place: number, like: number): number {
    const { k, r, symbols } = window
    const wanted = window.closing[place]
    if (this.progressive || window.mixed[place] !== 0 || window.kept[place] < wanted) return NO_MORE
    const { made, memory } = this
    const bytes = window.repairBytes[place]
    const count = native.gfRecoverRandom(memory, symbols, place * window.stride, k, r, wanted, bytes, like, made)
    return count < 0 ? NO_MORE : this.takeMade(window, place, count, wanted, bytes)
  }

  /** Each missing source that follows from what has come, which may be fewer symbols than sources. */
  private recoverWhatFollows(window: BlockWindow, place: number, like: number): number {
    const one = this.pool.of(window, place)
    this.count = 0
    this.wrongShape = 0
    this.takeRepairs(one, window, place)
    const missing = this.knowSources(one, window, place)
    if (missing === 0 || this.repairs === 0) return NO_MORE
    const { system } = one
    let room = missing
    // Fewer equations than unknowns seldom say anything.
    if (this.repairs < missing) room = system.solve(this.memory, this.targets, 0, this.bytes)
    if (room === 0 || !this.allocate(room)) return NO_MORE
    const count = system.solve(this.memory, this.targets, room, this.bytes)
    this.release(count, room)
    if (!this.isPossible(one, window, place, count)) {
      this.release(0, count)
      return CONTRADICTED
    }
    this.finish(one, window, place, count, like)
    return NO_MORE
  }

  private takeRepairs(one: BlockElimination, window: BlockWindow, place: number): void {
    const { packets } = this
    const { symbols, shapes, k, r } = window
    const { view, offset } = packets
    const base = place * window.stride + k
    this.repairs = 0
    this.bytes = 0
    this.covered = 0
    this.slotAt = packets.headroom - LENGTH_BYTES
    for (let j = 0; j < r; j++) {
      const kept = symbols[base + j]
      if (kept <= UNSEEN) continue
      const packet = kept - 1
      const bytes = shapes[base + j] >> 8
      const covered = shapes[base + j] & 255
      this.repairs++
      if (bytes > this.bytes) {
        this.bytes = bytes
        if (packets.train[packet] === 0) this.slotAt = offset[packet] - packet * packets.slotBytes
      }
      if (covered > this.covered) this.covered = covered
      if (one.taken[j] !== 0) continue
      one.taken[j] = 1
      one.system.take(view.getInt32(offset[packet] - SEED_BYTES), covered, offset[packet], bytes)
    }
  }

  /** Returns how many of the sources that the repairs cover have not come, and were not recovered. */
  private knowSources(one: BlockElimination, window: BlockWindow, place: number): number {
    const { lengths, covered } = this
    const { symbols } = window
    const { offset, length } = this.packets
    const { system } = one
    const base = place * window.stride
    let missing = 0
    let atHand = 0
    for (let i = 0; i < covered; i++) {
      const kept = symbols[base + i]
      if (kept > UNSEEN) {
        const packet = kept - 1
        const bytes = length[packet]
        atHand++
        lengths[i] = bytes
        system.know(i, offset[packet], bytes)
        continue
      }
      lengths[i] = 0
      if (kept === UNSEEN) missing++
      else system.pass(i)
    }
    this.atHand = atHand
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
    const { lengths, covered, bytes } = this
    const { view } = this.packets
    const { found } = one.system
    let longest = window.longest[place]
    for (let n = 0; n < count; n++) {
      const own = view.getUint16(this.targets[n]) + LENGTH_BYTES
      lengths[found[n]] = own
      if (own > longest) longest = own
    }
    if (window.mixed[place] !== 0 || covered < window.top[place]) return this.agrees(window, place)
    return longest <= bytes && (longest === bytes || this.atHand + count < covered)
  }

  /** The same where repairs differ, or are not over all that has come: of each the sources that it covers are looked at. */
  private agrees(window: BlockWindow, place: number): boolean {
    const { lengths, most, covered } = this
    const { k, r } = window
    const base = place * window.stride + k
    most.fill(this.bytes, 0, covered)
    for (let at = base; at < base + r; at++) {
      const shape = window.shapeAt(at)
      const end = (shape & 255) - 1
      if (shape !== 0 && shape >> 8 < most[end]) most[end] = shape >> 8
    }
    for (let i = covered - 2; i >= 0; i--) if (most[i + 1] < most[i]) most[i] = most[i + 1]
    for (let i = 0; i < covered; i++) if (lengths[i] > most[i]) return false
    // The longest up to each source; from one that is not known on nothing can be said.
    let longest = 0
    for (let i = 0; i < covered; i++) {
      longest = lengths[i] === 0 ? this.bytes + 1 : Math.max(longest, lengths[i])
      most[i] = longest
    }
    for (let at = base; at < base + r; at++) {
      const shape = window.shapeAt(at)
      if (shape !== 0 && most[(shape & 255) - 1] < shape >> 8) return false
    }
    return true
  }

  private finish(one: BlockElimination, window: BlockWindow, place: number, count: number, like: number): void {
    const { packets, recovered, targets, lengths } = this
    const { found } = one.system
    for (let n = 0; n < count; n++) {
      packets.annotateAs(recovered[n], like)
      this.deliver(window, place, found[n], recovered[n], targets[n] + LENGTH_BYTES, lengths[found[n]] - LENGTH_BYTES)
    }
  }
}
