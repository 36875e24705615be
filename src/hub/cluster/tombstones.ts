/** Keys that say that something is no more: kept for a day, so that whoever was away or waits for an answer finds them, then purged. */
import type { Engine } from './engine.ts'
import type { EngineTime, Revision } from './entries.ts'
import { inTurns } from './in-turns.ts'
import { isNobody, nodeOfKey, type Picture } from './picture.ts'
import { ToldOnce } from './told-once.ts'
import type { WatchedKey } from './watch.ts'

/** From a tombstone's time stamp on, milliseconds. */
const TOMBSTONE_KEPT_MS = 24 * 3_600_000
/** Between two looks, milliseconds of the engine's clock. */
const LOOK_MS = 60_000

export type Bucket = 'members' | 'presence'

export interface TombstonesOptions {
  readonly engine: Pick<Engine, 'session'>
  readonly picture: Picture
  /** Whether this is the server that does what one of all has to do. */
  readonly isFirst: () => boolean
  readonly engineTime: () => EngineTime
  /** Something has failed, and is tried again; whether that was to be told. */
  readonly onLater: (error: unknown) => boolean
}

interface Tombstone {
  readonly bucket: Bucket
  readonly key: string
  readonly revision: Revision
  readonly at: EngineTime
}

export class Tombstones {
  readonly #options: TombstonesOptions
  /** By bucket and key. */
  readonly #found = new Map<string, Tombstone>()
  readonly #failure: ToldOnce
  #lookedAt: EngineTime = 0

  constructor(options: TombstonesOptions) {
    this.#options = options
    this.#failure = new ToldOnce(options.onLater)
  }

  /** A key has been seen, and is in the picture. */
  note(bucket: Bucket, { key, revision, value, at }: WatchedKey): void {
    const name = `${bucket} ${key}`
    this.#found.delete(name)
    if (bucket === 'members' ? this.#isNobody(key) : value === undefined) {
      this.#found.set(name, { bucket, key, revision, at })
    }
  }

  /** Revisions may begin anew: everything is about to be read. */
  forget(): void {
    this.#found.clear()
    this.#lookedAt = 0
  }

  /** Everything has been read, of which `note` has not heard what was known already. */
  noteKnown(): void {
    for (const { bucket, ...end } of this.#options.picture.ends()) {
      this.#found.set(`${bucket} ${end.key}`, { bucket, ...end })
    }
  }

  /** To be called now and then; resolves once those that were due are purged, where this server does that. */
  async look(): Promise<void> {
    const { engine, isFirst, engineTime } = this.#options
    const time = engineTime()
    const { session } = engine
    if (session === undefined || time - this.#lookedAt < LOOK_MS) return
    this.#lookedAt = time
    const isPurging = isFirst()
    // Those that another server should have purged long ago are not remembered for good.
    const age = isPurging ? TOMBSTONE_KEPT_MS : 2 * TOMBSTONE_KEPT_MS
    const due = [...this.#found].filter(([, tombstone]) => tombstone.at + age <= time && !this.#isWhenSeen(tombstone))
    try {
      await inTurns(due, async ([name, tombstone]) => {
        const { bucket, key, revision } = tombstone
        if (isPurging) await session.purge(bucket, revision)
        if (this.#found.get(name) !== tombstone) return
        this.#found.delete(name)
        this.#options.picture.forget(bucket, key, revision)
      })
      if (due.length > 0 && isPurging) this.#failure.worked()
    } catch (error) {
      this.#failure.failed(error)
    }
  }

  /** The key of a node that is no member, and does not ask to be one. */
  #isNobody(key: string): boolean {
    const nodeId = nodeOfKey(key)
    if (nodeId === undefined) return false
    return isNobody(this.#options.picture.versioned(nodeId).entry)
  }

  /** The end of a member's last connection says when it was seen last. */
  #isWhenSeen({ bucket, key }: Tombstone): boolean {
    const nodeId = nodeOfKey(key)
    return (
      bucket === 'presence' &&
      nodeId !== undefined &&
      this.#options.picture.versioned(nodeId).entry.member !== undefined
    )
  }
}
