/** The ids of authentication requests: rising, and never used twice, whatever happens to the process. */
import type { Database, RootDatabase } from 'lmdb'
import { durable } from './durable.ts'

/** Ids taken from disk at once; those of a block that were not used when the process ended are skipped. */
export const BLOCK = 256

export class RequestIds {
  readonly #root: RootDatabase
  readonly #records: Database<number, string>
  #next: number
  /** Ids below this one are reserved on disk. */
  #reserved: number
  #reserving: Promise<void> | undefined

  constructor(root: RootDatabase) {
    this.#root = root
    this.#records = root.openDB<number, string>({ name: 'requests', encoding: 'msgpack' })
    this.#next = this.#records.get('reserved') ?? 1
    this.#reserved = this.#next
  }

  /** The next id, from 1; resolves once it is certain that no later process will give it out again. */
  async next(): Promise<number> {
    while (this.#next >= this.#reserved) {
      this.#reserving ??= this.#reserve().finally(() => {
        this.#reserving = undefined
      })
      await this.#reserving
    }
    return this.#next++
  }

  async #reserve(): Promise<void> {
    const reserved = this.#reserved + BLOCK
    await durable(this.#root, this.#records.put('reserved', reserved))
    this.#reserved = reserved
  }
}
