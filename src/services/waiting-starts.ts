/** The starts of a pipeline whose runs have not begun: they wait for their turn, or for the end of the last run, and can be called off. */
import type { ServiceError } from '../contract/errors.ts'
import type { OperationCaller } from './operation-queue.ts'

export class WaitingStarts {
  readonly #waiting = new Map<OperationCaller, (reason: ServiceError) => void>()

  /** `call` as one that goes away, too, when its start is called off, until that has `begun`. */
  add(call: OperationCaller): OperationCaller {
    const caller: OperationCaller = {
      onAbort: (listener) => {
        this.#waiting.set(caller, listener)
        const leave = call.onAbort(listener)
        return () => {
          this.#waiting.delete(caller)
          leave()
        }
      },
    }
    return caller
  }

  /** The run of this start begins. */
  begun(caller: OperationCaller): void {
    this.#waiting.delete(caller)
  }

  /** Has all that wait fail with `error`; returns whether any did. */
  callOff(error: ServiceError): boolean {
    const listeners = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const listener of listeners) listener(error)
    return listeners.length > 0
  }
}
