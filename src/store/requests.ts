/** The ids of authentication requests: rising, and never used twice, whatever happens to the process. */
import type { RootDatabase } from 'lmdb'
import { SingleRecord } from './collection.ts'

/** Ids taken from disk at once; those of a block that were not used when the process ended are skipped. */
export const BLOCK = 256

export class RequestIds {
  /** Ids below this one are reserved. */
  readonly #onDisk: SingleRecord<number>
  #next: number
  #reserved: number
  #reserving: Promise<void> | undefined

  constructor(root: RootDatabase) {
    this.#onDisk = new SingleRecord(root, { name: 'requests', key: 'reserved' })
    this.#next = this.#onDisk.get() ?? 1
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

  /** The first id that is certain not to have been given out. */
  get unused(): number {
    return this.#reserved
  }

  /** Gives out no id below `first` any more; part of a transaction that the caller has begun. */
  skipWithin(first: number): void {
    if (first <= this.#reserved) return
    this.#onDisk.putWithin(first)
    this.#next = first
    this.#reserved = first
  }

  async #reserve(): Promise<void> {
    const reserved = this.#reserved + BLOCK
    await this.#onDisk.put(reserved)
    this.#reserved = reserved
  }
}
