/** That something fails which is tried again and again: told once while it goes on failing of the same. */
import { messageOf } from '../../text/error-message.ts'

export class ToldOnce {
  readonly #tell: (error: unknown) => boolean
  /** What was told of since it worked last. */
  #cause: string | undefined

  /** `tell`: whether it was to be told, which it is not while this server is not in touch. */
  constructor(tell: (error: unknown) => boolean) {
    this.#tell = tell
  }

  failed(error: unknown): void {
    const cause = messageOf(error)
    if (cause !== this.#cause && this.#tell(error)) this.#cause = cause
  }

  worked(): void {
    this.#cause = undefined
  }
}
