/** The threads by which lmdb writes for a store: what they say of failures, and that they are done before it is closed. */
import type { RootDatabase } from 'lmdb'
import { environmentOf, MDB_PANIC } from './fatal.ts'

type Told = (status: number) => unknown

/** The part of lmdb's environment that `watchWrites` uses. */
interface LmdbEnvironment {
  readonly startWriting?: (address: number, told: Told) => void
  /** Lets go of the lock that orders the threads that write. */
  readonly resumeWriting?: () => void
}

/** What lmdb tells of a batch that is on disk. */
const WRITTEN = 0
/** What lmdb tells while a thread of its own writes; any other status says that the thread is done. */
const UNDER_WAY: ReadonlySet<number> = new Set([1, 2])
/** How long the threads that write may take to be done once all is on disk, ms: they have nothing left to do but to return. */
const LEAVE_MS = 1_000

/** The threads of lmdb that write for a store. */
class Writers {
  #count = 0
  #whenGone: (() => void) | undefined

  begin(): void {
    this.#count++
  }

  end(): void {
    if (--this.#count === 0) this.#whenGone?.()
  }

  /** Resolves once there are none, after LEAVE_MS at the latest. */
  async gone(): Promise<void> {
    if (this.#count === 0) return
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#whenGone = resolve
      timer = setTimeout(resolve, LEAVE_MS)
    })
    clearTimeout(timer)
  }
}

const writers = new WeakMap<RootDatabase, Writers>()

/**
 * Keeps count of lmdb's threads that write, for `close`, and keeps lmdb from printing the cause of a failed commit on the console: whoever wrote gets it
 * with the rejection, and tells it once.
 */
export function watchWrites(root: RootDatabase): void {
  const { env } = root as unknown as { env: LmdbEnvironment }
  const start = env.startWriting?.bind(env)
  if (start === undefined) return
  const writing = new Writers()
  writers.set(root, writing)
  const startWriting = (address: number, told: Told) => {
    // What was to be written has been refused when that became known.
    if (environmentOf(root)?.failure !== undefined) return
    start(address, (status) => {
      if (!UNDER_WAY.has(status)) writing.end()
      if (status === MDB_PANIC) {
        // The thread has gone with lmdb's lock and answered nobody: the next one would wait for the lock for good.
        env.resumeWriting?.()
        environmentOf(root)?.fail()
      }
      const { error } = console
      console.error = () => {}
      try {
        return told(status)
      } finally {
        console.error = error
        // Who waits for what failed to be on disk would wait for good, lmdb's own closing among them: it tells only those of a batch that went well.
        if (status !== WRITTEN && !UNDER_WAY.has(status)) told(WRITTEN)
      }
    })
    writing.begin()
  }
  Object.defineProperty(env, 'startWriting', { value: startWriting })
}

/**
 * Brings everything to disk and closes. lmdb does not wait for its own threads: one that has just committed still tells whoever listens in the environment,
 * and ended the process where another one was faster and the environment had gone by then.
 */
export async function close(root: RootDatabase): Promise<void> {
  const environment = environmentOf(root)
  // That the last of it was refused has been told to whoever wrote it.
  const flushed = async () => void (await Promise.allSettled([root.flushed]))
  await (environment === undefined ? flushed() : environment.until(flushed).catch(() => {}))
  await writers.get(root)?.gone()
  environment?.close()
  // lmdb's own closing would wait for answers that do not come; what is open goes with the process.
  if (environment?.failure === undefined) await root.close()
}
