/** Calls whose one answer is awaited: a listener that stops lets them finish for a while, and answers those that do not; those of a token end with it. */
import type { ServiceError } from '../contract/errors.ts'

/** Milliseconds that a listener which stops waits for them. */
export const STOP_MS = 1000

/** One such call. */
export interface PendingCall {
  /** Name of the token its caller proved. */
  readonly identity: string | undefined
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

  /** Cuts those that are left, of callers who proved the token `identity` where it is given. */
  cut(error: ServiceError, identity?: string): void {
    for (const call of [...this.#calls]) {
      if (identity !== undefined && call.identity !== identity) continue
      call.cut(error)
      this.delete(call)
    }
  }
}
