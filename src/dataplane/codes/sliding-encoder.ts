/** The sliding window's encoder: sources in, repairs over the newest of them out. */
import { native } from '../native/native.ts'
import { placesFor, type SlidingWindowOptions, SymbolKeeper } from './sliding-window.ts'

const MIN_PLACES = 64
/** Repairs asked for before they are made, and the words of each in the addon's list. */
export const MAX_REPAIRS = 1280
const REPAIR_WORDS = 5

export class SlidingEncoder {
  private readonly memory: number
  private readonly keeper: SymbolKeeper
  /** Sources that may be added before a repair that is asked for is made. */
  private readonly slack: number
  private readonly repairs = new Int32Array(REPAIR_WORDS * MAX_REPAIRS)
  private asked = 0
  private made = 0
  /** Last source of the first repair that is not made. */
  private end = 0

  constructor({ memory, window, symbolBytes }: SlidingWindowOptions) {
    this.memory = memory
    this.slack = window >> 2
    this.keeper = new SymbolKeeper(memory, placesFor(window + this.slack + 1, MIN_PLACES), symbolBytes)
  }

  /** Adds the source with the next number. Its bytes are read by the next `makeRepairs` at the latest. */
  add(sequence: number, at: number, bytes: number): void {
    if (this.asked > this.made && ((sequence - this.end) | 0) > this.slack) this.makeDue()
    this.keeper.add(sequence, at, bytes)
  }

  /**
   * Asks for the repair over the `count` sources from `first` on, with coefficients from `key` (16 bits), at `at` where `room` bytes are, enough for any
   * of the newest sources. Returns its place in `repairBytes`. At most `MAX_REPAIRS` at a time; throws RangeError when a source of one was not added, fell
   * out of the window, or is longer than the room.
   */
  askRepair(first: number, count: number, key: number, at: number, room: number): number {
    if (this.asked === MAX_REPAIRS) throw new RangeError(`${MAX_REPAIRS} repairs are asked for: makeRepairs is due`)
    const { repairs, asked } = this
    if (asked === this.made) this.end = (first + count - 1) | 0
    const n = REPAIR_WORDS * asked
    repairs[n] = first
    repairs[n + 1] = count
    repairs[n + 2] = key
    repairs[n + 3] = at
    repairs[n + 4] = room
    this.asked++
    return asked
  }

  /** Copies the sources and makes the repairs since the last call: owed before the packets of either leave. */
  makeRepairs(): void {
    try {
      this.makeDue()
    } finally {
      this.asked = 0
      this.made = 0
    }
  }

  /** Bytes of a repair of the last `makeRepairs`. */
  repairBytes(n: number): number {
    return this.repairs[REPAIR_WORDS * n + 4]
  }

  /** Gives its memory back. */
  close(): void {
    native.slidingClose(this.keeper.window)
  }

  private makeDue(): void {
    this.keeper.keep()
    if (this.asked === this.made) return
    native.slidingMake(this.keeper.window, this.memory, this.repairs, this.made, this.asked)
    this.made = this.asked
  }
}
