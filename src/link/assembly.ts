/** Puts the pieces of one message together, in memory that is accounted for. */
import { WINDOW_BYTES } from './messages.ts'

export class Assembly {
  readonly #hold: (bytes: number) => boolean
  #buffer: Buffer | undefined
  #length = 0

  /** `hold` accounts bytes taken (positive) and given back (negative); false refuses them. */
  constructor(hold: (bytes: number) => boolean) {
    this.#hold = hold
  }

  /** What the pieces take in memory, bytes. */
  get held(): number {
    return this.#buffer?.length ?? 0
  }

  /**
   * Takes a piece and returns the message once it is whole: the piece itself when it is the only one. Undefined as well when memory
   * was refused; the pieces are dropped then.
   */
  add(bytes: Uint8Array, more: boolean): Uint8Array | undefined {
    if (this.#buffer === undefined && !more) return bytes
    const length = this.#length + bytes.length
    const capacity = this.#buffer?.length ?? 0
    if (this.#buffer === undefined || length > capacity) {
      // Grown by a factor, not listed: a message in a million pieces of one byte is as large as its bytes. What waits for credit is little longer
      // than a window: there it is not doubled, since many may wait.
      const wanted = Math.max(length, capacity < WINDOW_BYTES ? 2 * capacity : Math.ceil(1.25 * capacity), 4096)
      if (!this.#hold(wanted - capacity)) return undefined
      const grown = Buffer.allocUnsafeSlow(wanted)
      if (this.#buffer !== undefined) grown.set(this.#buffer.subarray(0, this.#length))
      this.#buffer = grown
    }
    this.#buffer.set(bytes, this.#length)
    this.#length = length
    if (more) return undefined
    const whole = this.#buffer.subarray(0, length)
    this.drop()
    return whole
  }

  drop(): void {
    if (this.#buffer === undefined) return
    this.#hold(-this.#buffer.length)
    this.#buffer = undefined
    this.#length = 0
  }
}
