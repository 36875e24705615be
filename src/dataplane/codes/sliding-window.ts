/**
 * The random linear code over a sliding window, as RFC 8681 describes it for m = 8 and DT = 15: what an encoder and a decoder do. Symbols, no packets.
 *
 * A symbol is two bytes that say how long the rest is (big-endian), then the rest: `bytes` is 2 more than they say. It lies in a slab that
 * the addon knows, where `at` is its first byte. Repair symbols are as long as the longest source symbol of their window, shorter ones
 * count as padded with zeros. Sequence numbers are 32 bits, one more for each source, and compared in serial arithmetic (RFC 1982).
 */

/** Most sources that one repair covers, and most missing sources that a decoder has at once. */
export const MAX_WINDOW = 4096

export interface SlidingWindowOptions {
  /** Id under which the addon knows the slab (`ComponentContext.memory()`). */
  memory: number
  /** Most sources of a repair, 1 to `MAX_WINDOW`. */
  window: number
  /** Longest symbol, bytes: 2 to 65,537. */
  symbolBytes: number
}

export interface SlidingEncoder {
  /**
   * Adds a source, whose number is one more than that of the source before; any other number begins anew with it. Its bytes are read at
   * the next `keep` or `makeRepair`.
   */
  add(sequence: number, at: number, bytes: number): void
  /** Copies the sources added since the last call: owed before their packets leave. */
  keep(): void
  /** Sources that a repair up to the newest may cover; at most the window. */
  readonly count: number
  /** Bytes of a repair over the newest `count` sources. */
  repairBytes(count: number): number
  /** Writes the repair over the sources `first` to `number`, both included, with coefficients from `key` (16 bits) to `at`; returns its bytes. */
  makeRepair(first: number, number: number, key: number, at: number): number
  /** Forgets every source. */
  reset(): void
  /** Gives the memory back. The addon's slab must still be known. */
  close(): void
}

/** What `takeSource` says. NEW: pass it on. DUPLICATE: it came before. RECOVERED: it was recovered, with the same bytes. */
export const NEW = 0
export const DUPLICATE = 1
export const RECOVERED = 2
/** It was recovered, with other bytes: a repair was wrong. Pass it on. Everything that repairs said is forgotten. */
export const WRONGLY_RECOVERED = 3
/** It is below what was given up, or too far back. */
export const LATE = 4

/** What `takeRepair` says. USED: it was, and `recovered` may have something. REDUNDANT: it says nothing new. */
export const USED = 0
export const REDUNDANT = 1
/** It covers sources too far back, too far ahead, or there is no room for it. */
export const UNUSABLE = 2
/** It does not go together with what has come, or makes what cannot have been sent: it, or all that repairs said, is forgotten. */
export const CONTRADICTED = 3

export interface SlidingDecoder {
  /** Takes a source. The bytes of a NEW one are read at the next `keep` or `takeRepair`, at once where a repair waits for it. */
  takeSource(sequence: number, at: number, bytes: number): number
  /** Copies the sources taken since the last call: owed before their packets leave. */
  keep(): void
  /** Takes a repair of `bytes` bytes over the sources `first` to `number`; it is read before this returns. */
  takeRepair(first: number, number: number, key: number, at: number, bytes: number): number
  /**
   * Sources recovered by the last `takeSource` or `takeRepair`: `recovered[0..recoveredCount)` are their numbers, in ascending order. None of them is
   * below what was given up.
   */
  readonly recovered: Int32Array
  readonly recoveredCount: number
  /** Bytes of the symbol of a source that is known (came or was recovered) and not too far back; 0 of others. */
  bytesOf(sequence: number): number
  /** Writes the symbol of such a source to `at`; returns its bytes. */
  write(sequence: number, at: number): number
  /** Gives up the sources below `sequence` that are missing: they are neither recovered nor taken any more. */
  giveUpBelow(sequence: number): void
  /** The first source that is not given up, and the newest that came; meaningful once one has come. */
  readonly floor: number
  readonly newest: number
  /** Sources between those that are missing. */
  readonly missing: number
  /** Repairs that wait for more of them. */
  readonly rows: number
  /** Forgets everything. */
  reset(): void
  /** Gives the memory back. */
  close(): void
}
