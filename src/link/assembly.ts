/** Puts the pieces of one message together, in memory that is accounted for. */

export class Assembly {
  readonly #hold: (bytes: number) => boolean
  #buffer: Buffer | undefined
  #length = 0

  /** `hold` accounts bytes taken (positive) and given back (negative); false refuses them. */
  constructor(hold: (bytes: number) => boolean) {
    this.#hold = hold
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
      // Doubled, not listed: a message in a million pieces of one byte is as large as its bytes.
      const wanted = Math.max(length, 2 * capacity, 4096)
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
