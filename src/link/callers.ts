/** Who has how many calls open on one link: the hub carries those of all its members to a node over one, and nobody is to use it up. */

/** How often over a node that calls may have what is free: four fifths of the link for the first such node, four fifths of the rest for the next. */
const FREE_FACTOR = 4

export class Callers {
  readonly #limit: number
  readonly #calls = new Map<string, number>()
  #total = 0

  /** `limit`: calls that the link carries. */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** Calls of that node. */
  count(nodeId: string): number {
    return this.#calls.get(nodeId) ?? 0
  }

  /** Whether that node may have one more. */
  mayAdd(nodeId: string): boolean {
    return this.count(nodeId) < FREE_FACTOR * (this.#limit - this.#total)
  }

  add(nodeId: string): void {
    this.#calls.set(nodeId, this.count(nodeId) + 1)
    this.#total++
  }

  /** One of its calls is over. */
  remove(nodeId: string): void {
    const left = this.count(nodeId) - 1
    if (left > 0) this.#calls.set(nodeId, left)
    else this.#calls.delete(nodeId)
    this.#total--
  }
}
