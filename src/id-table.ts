/**
 * What is open, by its number, where much comes and goes. A Map takes the same calls and costs more there: V8 gives it a new table each time
 * the old one is full of what was deleted, and the old one points to the new, where iterators go on. An old table that a full collection
 * has moved to the old generation thereby keeps every later one, with all that was open when it was replaced, until the next full
 * collection: garbage that would be dropped young is copied twice instead.
 */
export class IdTable<T> {
  readonly #entries: Record<number, T> = Object.create(null)
  #size = 0

  get size(): number {
    return this.#size
  }

  /** The entry of `id`, an integer from 0 to 2^32 − 2; undefined when there is none. */
  get(id: number): T | undefined {
    return this.#entries[id]
  }

  set(id: number, entry: T): this {
    if (this.#entries[id] === undefined) this.#size++
    this.#entries[id] = entry
    return this
  }

  /** Whether there was one. */
  delete(id: number): boolean {
    if (this.#entries[id] === undefined) return false
    delete this.#entries[id]
    this.#size--
    return true
  }

  /** By rising id; those that are deleted before their turn are left out. */
  *values(): IterableIterator<T> {
    for (const id in this.#entries) yield this.#entries[id] as T
  }

  /** As `values`. */
  forEach(visit: (entry: T, id: number) => void): void {
    for (const id in this.#entries) visit(this.#entries[id] as T, Number(id))
  }
}
