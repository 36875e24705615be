/** The operations on one pipeline, one after the other, each for as long as its caller waits; and what need not wait for them. */
import type { Timers } from '../contract/clock.ts'
import type { CallContext } from '../contract/handlers.ts'
import { SerialQueue } from '../contract/serial-queue.ts'
import { Patience, type PatienceOptions } from './patience.ts'

/** Who waits for an operation. */
export type OperationCaller = Pick<CallContext, 'onAbort'>

export interface OperationQueueOptions {
  readonly clock: Timers
  /** Throws why an operation whose turn has come cannot be carried out any more. */
  readonly check: () => void
  /** An operation is over: its answer is on the way. */
  readonly answered: () => void
}

export class OperationQueue {
  readonly #options: OperationQueueOptions
  readonly #queue = new SerialQueue()

  constructor(options: OperationQueueOptions) {
    this.#options = options
  }

  /** Resolves once every operation that was asked for is over. */
  idle(): Promise<void> {
    return this.#queue.run(() => {})
  }

  /** Does `operation` now, whatever is under way. Throws why it cannot be carried out, before anything is done, also when its caller has gone. */
  atOnce<T>(caller: OperationCaller, operation: () => T): T {
    const { clock, check } = this.#options
    const patience = new Patience(caller, { clock })
    patience.end()
    if (patience.error !== undefined) throw patience.error
    check()
    return operation()
  }

  /**
   * Runs `operation` after those before it, unless it is over for its caller by then: late (`within`), or the caller gone. What it is told
   * of the caller's patience lasts as long as the operation.
   */
  run<T>(
    caller: OperationCaller,
    operation: (patience: Patience) => Promise<T>,
    within?: PatienceOptions['within'],
  ): Promise<T> {
    const { clock, check, answered } = this.#options
    const patience = new Patience(caller, within === undefined ? { clock } : { clock, within })
    let begin = () => {}
    // Let go when it is over for its caller: one that waits long must not keep the settings of all that gave up behind it.
    let waiting: typeof operation | undefined = operation
    const overtaken = new Promise<never>((_, reject) => {
      begin = patience.onOver((error) => {
        waiting = undefined
        reject(error)
      })
    })
    const result = this.#queue
      .run(async () => {
        begin()
        const carryOut = waiting
        if (patience.error !== undefined || carryOut === undefined) throw patience.error
        check()
        try {
          return await carryOut(patience)
        } finally {
          answered()
        }
      })
      .finally(() => patience.end())
    return Promise.race([overtaken, result])
  }
}
