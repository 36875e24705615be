/** Records on disk in the order in which they were added, whatever the clock said then: a machine may have no clock until it reaches a network. */
import type { RootDatabase } from 'lmdb'
import { type CollectionOptions, RecordCollection } from './collection.ts'

interface OrderedOptions<R> extends CollectionOptions<R> {
  /** Milliseconds since the epoch: orders records of builds that did not number them. */
  readonly timeOf: (record: R) => number
}

/** What is on disk: `number` says after which others the record was added. */
type Numbered<R> = R & { number?: number }

/** The records of one kind, in the order of their first `put`. */
export class OrderedCollection<R extends object> {
  readonly #records: RecordCollection<Numbered<R>>
  readonly #options: OrderedOptions<R>
  /** Key → number; read from disk when first needed. */
  #numbers: Map<string, number> | undefined
  #last = 0

  constructor(root: RootDatabase, options: OrderedOptions<R>) {
    this.#options = options
    this.#records = new RecordCollection<Numbered<R>>(root, options)
  }

  /** The oldest first. Throws StoreDamaged where one cannot be read. */
  all(): R[] {
    const { keyOf, timeOf } = this.#options
    const records = this.#records.all()
    // Those without a number are older than those with one.
    records.sort((a, b) => (a.number ?? 0) - (b.number ?? 0) || timeOf(a) - timeOf(b))
    this.#numbers ??= new Map()
    for (const record of records) {
      // Those without a number keep their place when they are put again.
      this.#numbers.set(keyOf(record), record.number ?? 0)
      this.#last = Math.max(this.#last, record.number ?? 0)
    }
    return records.map(({ number: _, ...record }) => record as unknown as R)
  }

  get(key: string): R | undefined {
    const found = this.#records.get(key)
    if (found === undefined) return undefined
    const { number: _, ...record } = found
    return record as unknown as R
  }

  /** As RecordCollection.put. */
  async put(record: R): Promise<void> {
    const numbers = this.#known()
    const key = this.#options.keyOf(record)
    let number = numbers.get(key)
    if (number === undefined) {
      number = ++this.#last
      numbers.set(key, number)
    }
    await this.#records.put({ ...record, number })
  }

  /** As RecordCollection.remove. Those that the disk does not let go of keep their place. */
  async remove(keys: string | readonly string[]): Promise<void> {
    const numbers = this.#known()
    await this.#records.remove(keys)
    for (const key of [keys].flat()) numbers.delete(key)
  }

  #known(): Map<string, number> {
    if (this.#numbers === undefined) this.all()
    return this.#numbers as unknown as Map<string, number>
  }
}
