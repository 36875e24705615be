/** The sliding window's encoder: sources in, repairs over the newest of them out. */
import { native } from '../native/native.ts'
import { placesFor, type SlidingWindowOptions } from './sliding-window.ts'

const MIN_PLACES = 64
/** Sources added between two calls into the addon, and the words of each in its list. */
const MAX_ADDED = 256
const SOURCE_WORDS = 3
/** Repairs asked for before they are made, and the words of each in the addon's list. */
export const MAX_REPAIRS = 1280
const REPAIR_WORDS = 5

export class SlidingEncoder {
  private readonly memory: number
  private readonly window: number
  /** Sources since the last call into the addon, and repairs. */
  private readonly sources = new Int32Array(SOURCE_WORDS * MAX_ADDED)
  private readonly repairs = new Int32Array(REPAIR_WORDS * MAX_REPAIRS)
  private added = 0
  private asked = 0
  /** Repairs that are made, before the others of which there was no room for their sources. */
  private made = 0

  constructor({ memory, window, symbolBytes }: SlidingWindowOptions) {
    this.memory = memory
    this.window = native.slidingOpen(
      placesFor(window + MAX_ADDED, MIN_PLACES),
      symbolBytes,
      placesFor(window, MIN_PLACES),
    )
  }

  /** Adds the source with the next number. Its bytes are read by the next `makeRepairs` at the latest. */
  add(sequence: number, at: number, bytes: number): void {
    if (this.added === MAX_ADDED) this.makeDue()
    const n = SOURCE_WORDS * this.added++
    this.sources[n] = sequence
    this.sources[n + 1] = at
    this.sources[n + 2] = bytes
  }

  /**
   * Asks for the repair over the `count` sources from `first` on, with coefficients from `key` (16 bits), at `at` where `room` bytes are, enough for any
   * of the newest sources. Returns its place in `repairBytes`. At most `MAX_REPAIRS` at a time; throws RangeError when a source of one was not added, fell
   * out of the window, or is longer than the room.
   */
  askRepair(first: number, count: number, key: number, at: number, room: number): number {
    if (this.asked === MAX_REPAIRS) throw new RangeError(`${MAX_REPAIRS} repairs are asked for: makeRepairs is due`)
    const { repairs, asked } = this
    const n = REPAIR_WORDS * asked
    repairs[n] = first
    repairs[n + 1] = count
    repairs[n + 2] = key
    repairs[n + 3] = at
    repairs[n + 4] = room
    this.asked++
    return asked
  }

  /**
   * Makes the repairs since the last call from the sources where they lie, and copies those that later repairs may cover: owed before the packets of
   * either leave.
   */
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
    native.slidingClose(this.window)
  }

  private makeDue(): void {
    const { window, memory, sources, added, repairs, made, asked } = this
    this.added = 0
    this.made = asked
    if (added > 0 || asked > made) native.slidingEncode(window, memory, sources, added, repairs, made, asked)
  }
}
