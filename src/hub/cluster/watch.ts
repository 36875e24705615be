/** One bucket as this server sees it: every key's last value, and how far that goes. */
import type { KV, KvWatchEntry } from '@nats-io/kv'
import type { Revision } from './entries.ts'

/** The key whose writes show how far a watch has come. */
export const BARRIER_KEY = 'barrier'

export interface WatchedKey {
  readonly key: string
  readonly revision: Revision
  /** Undefined: deleted. */
  readonly value: Uint8Array | undefined
  /** When the engine took it, by its clock; milliseconds since the epoch. */
  readonly at: number
}

/** Follows one bucket over one connection, from its beginning. */
export class Watch {
  readonly #onKey: (key: WatchedKey) => void
  /** Those of this connection's reading, until it has read all. */
  #seen: Set<string> | undefined = new Set()
  #passed: Revision = 0
  #last: { readonly key: string; readonly at: number } | undefined
  #waiting: { readonly revision: Revision; readonly resolve: () => void; readonly reject: (error: unknown) => void }[] =
    []
  #end: { readonly error: unknown } | undefined

  private constructor(onKey: (key: WatchedKey) => void) {
    this.#onKey = onKey
  }

  /** `onKey` hears of each key's value, oldest first, and then of every change, in order. `onEnd`: nothing more is heard. */
  static async begin(bucket: KV, onKey: (key: WatchedKey) => void, onEnd: (error: unknown) => void): Promise<Watch> {
    const watch = new Watch(onKey)
    const entries = await bucket.watch()
    const follow = async () => {
      for await (const entry of entries) watch.#take(entry)
    }
    follow().then(
      () => watch.#over(new Error('the watch has ended'), onEnd),
      (error: unknown) => watch.#over(error, onEnd),
    )
    return watch
  }

  /** Everything up to this revision has been told. */
  get reached(): Revision {
    return this.#passed
  }

  /** Resolves when everything up to `revision` has been told; rejects when the watch ends before that. */
  passed(revision: Revision): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#passed >= revision) resolve()
      else if (this.#end !== undefined) reject(this.#end.error)
      else this.#waiting.push({ revision, resolve, reject })
    })
  }

  /** The keys read so far, once: from now on they are not noted any more. */
  takeSeen(): ReadonlySet<string> {
    const seen = this.#seen ?? new Set<string>()
    this.#seen = undefined
    return seen
  }

  #take(entry: KvWatchEntry): void {
    const { key, revision } = entry
    const at = entry.created.getTime()
    // The newest message of a stream may be told twice where a watch begins (seen with 2.9.10): once as the last of its key, once as a new one.
    if (revision === this.#passed && key === this.#last?.key && at === this.#last.at) return
    // A NATS server that has lost what it had in memory goes on with the same bucket and the same watch of it.
    if (revision <= this.#passed)
      throw new Error(`the revisions of the bucket have begun anew: ${revision} after ${this.#passed}`)
    this.#seen?.add(key)
    const value = entry.operation === 'PUT' ? entry.value : undefined
    this.#onKey({ key, revision, value, at })
    this.#passed = revision
    this.#last = { key, at }
    if (this.#waiting.length === 0) return
    const waiting = this.#waiting
    this.#waiting = waiting.filter((each) => each.revision > revision)
    for (const each of waiting) if (each.revision <= revision) each.resolve()
  }

  #over(error: unknown, onEnd: (error: unknown) => void): void {
    this.#end = { error }
    for (const { reject } of this.#waiting.splice(0)) reject(error)
    onEnd(error)
  }
}
