/** Steps one after the other. */

export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve()
  #count = 0

  /** Whether no step waits or is under way. */
  get isIdle(): boolean {
    return this.#count === 0
  }

  /** Begins `step` when those before it have ended, however they ended; settles as it does. */
  run<T>(step: () => T | Promise<T>): Promise<T> {
    this.#count++
    const done = this.#last.then(step).finally(() => {
      this.#count--
    })
    this.#last = done.catch(() => undefined)
    return done
  }
}
