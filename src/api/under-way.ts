/**
 * Calls whose one answer is awaited, or not read yet: a listener that stops lets them finish for a while, and answers those that do not; those of a token
 * that wait end with it.
 */
import type { ServiceError } from '../contract/errors.ts'
import { UnreadAnswers } from './unread-answers.ts'

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
  /** What stands for answers that were given, and not read yet → bytes that are kept for it alone. */
  readonly #unread = new Map<object, number>()
  readonly answers = new UnreadAnswers()
  #emptied: (() => void) | undefined

  /** Where answers are told that are too long to be read at once. */
  readonly unread = {
    add: (answer: object, bytes: number): void => {
      this.#unread.set(answer, bytes)
      this.answers.hold(bytes)
    },
    delete: (answer: object): void => {
      this.answers.hold(-(this.#unread.get(answer) ?? 0))
      this.#unread.delete(answer)
      this.#tell()
    },
  }

  add(call: PendingCall): void {
    this.#calls.add(call)
  }

  /** It is over. */
  delete(call: PendingCall): void {
    this.#calls.delete(call)
    this.#tell()
  }

  /** Until there are none; at most STOP_MS. */
  async finish(): Promise<void> {
    if (this.#isEmpty) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, STOP_MS)
      this.#emptied = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  get #isEmpty(): boolean {
    return this.#calls.size === 0 && this.#unread.size === 0
  }

  #tell(): void {
    if (this.#isEmpty) this.#emptied?.()
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
