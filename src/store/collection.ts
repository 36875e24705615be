/** Records on disk: collections, in which each has a key of its own, and single ones. */
import type { Database, RootDatabase } from 'lmdb'
import { reading } from './database-file.ts'
import { durable } from './durable.ts'
import { readOf } from './fatal.ts'
import { roomFor } from './room.ts'

export interface CollectionOptions<R> {
  /** What the collection is called in the store. */
  readonly name: string
  readonly keyOf: (record: R) => string
  /** Bytes by which a record makes the store grow, at most: the disk is asked for them. Absent: what is kept free is enough. */
  readonly bytesOf?: (record: R) => number
}

/** The records of one kind. A record that is put takes the place of the one with its key. */
export class RecordCollection<R> {
  readonly #root: RootDatabase
  readonly #records: Database<R, string>
  readonly #options: CollectionOptions<R>

  constructor(root: RootDatabase, options: CollectionOptions<R>) {
    this.#root = root
    this.#options = options
    this.#records = reading(root, () => root.openDB<R, string>({ name: options.name, encoding: 'msgpack' }))
  }

  /** In the order of their keys. Throws StoreDamaged where one cannot be read. */
  all(): R[] {
    return reading(this.#root, () =>
      readOf(this.#root, (options) => [...this.#records.getRange(options)].map(({ value }) => value)),
    )
  }

  get(key: string): R | undefined {
    return reading(this.#root, () => readOf(this.#root, (options) => this.#records.get(key, options)))
  }

  /** Resolves once the record is on disk. Rejects with NotStored when the disk does not take it. */
  async put(record: R): Promise<void> {
    const { keyOf, bytesOf } = this.#options
    if (bytesOf !== undefined) roomFor(this.#root, bytesOf(record))
    await durable(this.#root, [() => this.#records.put(keyOf(record), record)])
  }

  /** As `put`, as part of a transaction that the caller has begun. */
  putWithin(record: R): void {
    const { keyOf, bytesOf } = this.#options
    if (bytesOf !== undefined) roomFor(this.#root, bytesOf(record))
    void this.#records.put(keyOf(record), record)
  }

  /** As `remove`, as part of a transaction that the caller has begun. */
  removeWithin(key: string): void {
    void this.#records.remove(key)
  }

  /** Resolves once none of the records is on disk any more; those that are not there count as removed. Rejects as `put` does. */
  async remove(keys: string | readonly string[]): Promise<void> {
    await durable(
      this.#root,
      [keys].flat().map((key) => () => this.#records.remove(key)),
    )
  }
}

interface SingleOptions<R> extends Pick<CollectionOptions<R>, 'name' | 'bytesOf'> {
  readonly key: string
}

/** The only record of its kind, in a collection of its own. */
export class SingleRecord<R> {
  readonly #root: RootDatabase
  readonly #records: Database<R, string>
  readonly #options: SingleOptions<R>

  constructor(root: RootDatabase, options: SingleOptions<R>) {
    this.#root = root
    this.#options = options
    this.#records = reading(root, () => root.openDB<R, string>({ name: options.name, encoding: 'msgpack' }))
  }

  get(): R | undefined {
    return reading(this.#root, () => readOf(this.#root, (options) => this.#records.get(this.#options.key, options)))
  }

  /** Resolves once the record is on disk. Rejects with NotStored when the disk does not take it. */
  async put(record: R): Promise<void> {
    const { key, bytesOf } = this.#options
    if (bytesOf !== undefined) roomFor(this.#root, bytesOf(record))
    await durable(this.#root, [() => this.#records.put(key, record)])
  }

  /** As `put`, as part of a transaction that the caller has begun. */
  putWithin(record: R): void {
    void this.#records.put(this.#options.key, record)
  }

  /** Resolves once the removal is on disk. Rejects as `put` does. */
  async remove(): Promise<void> {
    await durable(this.#root, [() => this.#records.remove(this.#options.key)])
  }
}
