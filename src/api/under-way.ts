/** Calls whose one answer is awaited: a listener that stops lets them finish for a while, and answers those that do not. */
import type { ServiceError } from '../contract/errors.ts'

/** Milliseconds that a listener which stops waits for them. */
export const STOP_MS = 1000

/** One such call. */
export interface PendingCall {
  /** Answers it with `error`, and has what was asked for given up. */
  cut(error: ServiceError): void
}

export class UnderWay {
  readonly #calls = new Set<PendingCall>()
  #emptied: (() => void) | undefined

  add(call: PendingCall): void {
    this.#calls.add(call)
  }

  /** It is over. */
  delete(call: PendingCall): void {
    this.#calls.delete(call)
    if (this.#calls.size === 0) this.#emptied?.()
  }

  /** Until there are none; at most STOP_MS. */
  async finish(): Promise<void> {
    if (this.#calls.size === 0) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, STOP_MS)
      this.#emptied = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Cuts those that are left. */
  cut(error: ServiceError): void {
    for (const call of [...this.#calls]) call.cut(error)
    this.#calls.clear()
  }
}
