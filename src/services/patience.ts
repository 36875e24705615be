/** How long the caller of an operation has for it: until it goes away, or until its time is up. */
import type { Timers } from '../contract/clock.ts'
import { ServiceError } from '../contract/errors.ts'
import type { CallContext } from '../contract/handlers.ts'

export interface PatienceOptions {
  readonly clock: Timers
  /** Milliseconds, and what to say when they are over; absent: as long as the caller stays. */
  readonly within?: { readonly milliseconds: number; readonly late: () => string }
}

/** Begins when it is made; whoever makes one ends it. */
export class Patience {
  readonly #clock: Timers
  readonly #timer: unknown
  /** Takes the listener for the caller away; absent while the constructor waits for it. */
  readonly #leave: (() => void) | undefined
  #error: ServiceError | undefined
  #listeners = new Set<(error: ServiceError) => void>()

  constructor(caller: Pick<CallContext, 'onAbort'>, { clock, within }: PatienceOptions) {
    this.#clock = clock
    this.#leave = caller.onAbort((reason) =>
      this.#over(reason instanceof ServiceError ? reason : new ServiceError('CANCELLED', 'the caller went away')),
    )
    if (within !== undefined && this.#error === undefined) {
      const { milliseconds, late } = within
      this.#timer = clock.setTimeout(() => this.#over(new ServiceError('DEADLINE_EXCEEDED', late())), milliseconds)
    }
  }

  /** Why the operation has failed for its caller; undefined while it has not. */
  get error(): ServiceError | undefined {
    return this.#error
  }

  /** Calls `listener` when it is over, at once if it is; returns what takes the listener away. */
  onOver(listener: (error: ServiceError) => void): () => void {
    if (this.#error !== undefined) listener(this.#error)
    else this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** The operation has ended: nobody is told any more. */
  end(): void {
    this.#listeners.clear()
    this.#leave?.()
    if (this.#timer !== undefined) this.#clock.clearTimeout(this.#timer)
  }

  #over(error: ServiceError): void {
    if (this.#error !== undefined) return
    this.#error = error
    const listeners = [...this.#listeners]
    this.end()
    for (const listener of listeners) listener(error)
  }
}
