/** What the peer makes this side keep in memory: counted where it waits, bounded for the whole session. */

/**
 * What the peer may make this side hold in memory, all streams together, bytes: messages that nobody has read and messages under
 * assembly, requests of its calls that are carried out or wait for another node, answers that it does not read.
 */
export const MAX_HELD_BYTES = 64 * 1024 * 1024

/** Accounts for memory. */
export interface Holder {
  /** Takes `bytes` into account (negative: gives them back); false, and nothing is accounted, when that is more than it may hold. */
  hold(bytes: number): boolean
}

/** The account of one session. */
export class Account implements Holder {
  #held = 0

  /** Bytes that are held now. */
  get held(): number {
    return this.#held
  }

  hold(bytes: number): boolean {
    if (bytes > 0 && this.#held + bytes > MAX_HELD_BYTES) return false
    this.#held += bytes
    return true
  }
}
