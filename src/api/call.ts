/** The context of one call, whichever transport it came by. */
import type { ServiceError } from '../contract/errors.ts'
import type { CallContext } from '../contract/handlers.ts'

/** Who calls, once access was granted. */
export interface Caller {
  readonly remoteAddress: string
  readonly isLoopback: boolean
  readonly identity?: string
}

/** CallContext whose AbortController is made at the first use of `signal`: most streams never use it. */
export class Call implements CallContext {
  readonly remoteAddress: string
  readonly isLoopback: boolean
  readonly transport: CallContext['transport']
  declare readonly identity?: string
  #controller: AbortController | undefined
  #listeners: ((reason: unknown) => void)[] | undefined
  #aborted = false
  #reason: unknown

  constructor(caller: Caller, transport: CallContext['transport']) {
    this.remoteAddress = caller.remoteAddress
    this.isLoopback = caller.isLoopback
    this.transport = transport
    if (caller.identity !== undefined) this.identity = caller.identity
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  onAbort(listener: (reason: unknown) => void): () => void {
    if (this.#aborted) listener(this.#reason)
    else if (this.#listeners === undefined) this.#listeners = [listener]
    else this.#listeners.push(listener)
    return () => {
      const at = this.#listeners?.indexOf(listener) ?? -1
      if (at >= 0) this.#listeners?.splice(at, 1)
    }
  }

  /** The caller is gone. */
  lose(): void {
    this.abort()
  }

  /** The caller is gone, its time is up (`reason` says so), or the stream is over. */
  abort(reason?: ServiceError): void {
    if (this.#aborted) return
    this.#aborted = true
    this.#reason = reason
    this.#controller?.abort(reason)
    const listeners = this.#listeners ?? []
    this.#listeners = undefined
    for (const listener of listeners) listener(reason)
  }
}
