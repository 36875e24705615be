/** That something fails which is tried again and again: told once while it goes on failing of the same. */
import { reasonOf } from './not-permitted.ts'

export class ToldOnce {
  readonly #tell: (error: unknown) => boolean
  /** What was told of since it worked last. */
  #reason: string | undefined

  /** `tell`: whether it was to be told, which it is not while this server is not in touch. */
  constructor(tell: (error: unknown) => boolean) {
    this.#tell = tell
  }

  failed(error: unknown): void {
    const reason = reasonOf(error)
    if (reason !== this.#reason && this.#tell(error)) this.#reason = reason
  }

  worked(): void {
    this.#reason = undefined
  }
}
