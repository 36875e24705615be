/**
 * The random linear code over a sliding window, as RFC 8681 describes it for m = 8 and DT = 15: what its encoder and its decoder share. Symbols, no
 * packets.
 *
 * A symbol is two bytes that say how long the rest is (big-endian), then the rest: `bytes` is 2 more than they say. It lies in a slab that
 * the addon knows, where `at` is its first byte. A repair is as long as the longest source of its window, shorter ones count as padded
 * with zeros. Sequence numbers are 32 bits, 0 for the first source, one more for each, compared in serial arithmetic (RFC 1982), and signed here.
 */
import { native } from '../native/native.ts'

/** Most sources that one repair covers, and most missing sources that a decoder has at once. */
export const MAX_WINDOW = 4096
/** Sources added before they are copied. */
const PENDING = 256

export interface SlidingWindowOptions {
  /** Id under which the addon knows the slab (`ComponentContext.memory()`). */
  memory: number
  /** Most sources of a repair, 1 to `MAX_WINDOW`; of a decoder's, where it is to begin: it grows. */
  window: number
  /** Longest symbol, bytes: 2 to 65,537. */
  symbolBytes: number
}

/** A power of two, `least` or more, that `window` symbols have room in. */
export function placesFor(window: number, least: number): number {
  let places = least
  while (places < window) places *= 2
  return places
}

/** Symbols on their way into a window of the addon, copied many at a time. */
export class SymbolKeeper {
  readonly window: number
  /** Sequence, place and bytes of those that are not copied, and how many they are. */
  readonly pending = new Int32Array(3 * PENDING)
  count = 0
  private readonly memory: number

  constructor(memory: number, places: number, symbolBytes: number) {
    this.memory = memory
    this.window = native.slidingOpen(places, symbolBytes)
  }

  add(sequence: number, at: number, bytes: number): void {
    const n = 3 * this.count
    this.pending[n] = sequence
    this.pending[n + 1] = at
    this.pending[n + 2] = bytes
    if (++this.count === PENDING) this.keep()
  }

  keep(): void {
    if (this.count === 0) return
    native.slidingKeep(this.window, this.memory, this.pending, this.count)
    this.count = 0
  }
}
