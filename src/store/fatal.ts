/**
 * What becomes of a store whose disk has refused one of LMDB's meta pages: that is fatal to the environment, which takes no transaction any more, and
 * lmdb leaves those that write without an answer. From then on changes are refused, and what was there before is read.
 */
import type { RootDatabase, Transaction } from 'lmdb'
import { NotStored } from '../contract/errors.ts'

/** What LMDB says to who begins a transaction in an environment that has had a fatal error. */
export const MDB_PANIC = -30_795

const CURE =
  'see whether its disk is full or failing (dmesg), then restart the node: it stores nothing until then, and what was asked for last may be there afterwards'

/** The environment of a store, as far as it can fail for good. */
class Environment {
  readonly #root: RootDatabase
  /** Rejects what waits for the disk, in the order in which it was begun. */
  readonly #waiting = new Set<(error: NotStored) => void>()
  /** What is read once the environment has failed: what was there after the last change that was answered, or one that came with it. */
  #snapshot: Transaction | undefined
  #failure: NotStored | undefined
  #isClosed = false

  constructor(root: RootDatabase) {
    this.#root = root
    this.keep()
  }

  get failure(): NotStored | undefined {
    return this.#failure
  }

  get snapshot(): Transaction | undefined {
    return this.#snapshot
  }

  /** Resolves with what `write` does; rejects at the latest when the environment has failed. */
  until(write: () => Promise<void>): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject)
      const done = () => this.#waiting.delete(reject)
      write().then(resolve, reject).finally(done)
    })
  }

  /** Keeps what is there now, to be read once the environment has failed. */
  keep(): void {
    if (this.#failure !== undefined || this.#isClosed) return
    try {
      this.#root.resetReadTxn()
      const last = this.#snapshot
      this.#snapshot = this.#root.useReadTransaction()
      last?.done()
    } catch (error) {
      if (isPanic(error)) this.fail(error)
    }
  }

  fail(cause?: unknown): void {
    if (this.#failure !== undefined) return
    const { path } = this.#root as unknown as { path: string }
    const why = 'the disk has refused a page that the database cannot be without'
    this.#failure = new NotStored(path, why, { cure: CURE, cause })
    for (const reject of this.#waiting) reject(this.#failure)
  }

  /** Nothing is read any more. */
  close(): void {
    this.#isClosed = true
    this.#snapshot?.done()
    this.#snapshot = undefined
  }
}

const environments = new WeakMap<RootDatabase, Environment>()

/** Looks after the environment of a store from now on: all of its databases must be open. */
export function watchEnvironment(root: RootDatabase): void {
  environments.set(root, new Environment(root))
}

export const environmentOf = (root: RootDatabase): Environment | undefined => environments.get(root)

/** What `read` reads with these options of a store, from before the failure where there was one. Throws NotStored where that is not kept. */
export function readOf<T>(root: RootDatabase, read: (options?: { transaction: Transaction }) => T): T {
  const environment = environments.get(root)
  if (environment?.failure === undefined) {
    try {
      return read()
    } catch (error) {
      if (environment === undefined || !isPanic(error)) throw error
      environment.fail(error)
    }
  }
  const { snapshot: transaction, failure } = environment
  if (transaction === undefined) throw failure
  return read({ transaction })
}

const isPanic = (error: unknown): boolean => (error as { code?: unknown }).code === MDB_PANIC
