/** What the peer makes this side keep in memory: counted where it waits, bounded for the whole session. */

/**
 * What the peer may make this side hold in memory, all streams together, bytes: messages that nobody has read and messages under
 * assembly, requests of its calls that are carried out or wait for another node, answers that it does not read.
 */
export const MAX_HELD_BYTES = 64 * 1024 * 1024

/** Accounts for memory. */
export interface Holder {
  /**
   * Takes `bytes` into account (negative: gives them back); false, and nothing is accounted, when that is more than it may hold. `message`:
   * they are for this message, whose own bytes count once, however many hold it.
   */
  hold(bytes: number, message?: Uint8Array): boolean
}

/** The account of one session. */
export class Account implements Holder {
  #held = 0
  /** Messages that are held, and how often. */
  readonly #messages = new Map<Uint8Array, number>()

  /** Bytes that are held now. */
  get held(): number {
    return this.#held
  }

  hold(bytes: number, message?: Uint8Array): boolean {
    if (message === undefined) return this.#add(bytes)
    const isTaken = bytes > 0
    const others = (this.#messages.get(message) ?? 0) - (isTaken ? 0 : 1)
    const shared = others > 0 ? message.length : 0
    if (!this.#add(isTaken ? bytes - shared : bytes + shared)) return false
    const holders = isTaken ? others + 1 : others
    if (holders === 0) this.#messages.delete(message)
    else this.#messages.set(message, holders)
    return true
  }

  #add(bytes: number): boolean {
    if (bytes > 0 && this.#held + bytes > MAX_HELD_BYTES) return false
    this.#held += bytes
    return true
  }
}
