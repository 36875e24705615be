/** The threads by which lmdb writes for a store: what they say of failures, and that they are done before it is closed. */
import type { RootDatabase } from 'lmdb'
import { environmentOf, MDB_PANIC } from './fatal.ts'

type Told = (status: number) => unknown

/** The part of lmdb's environment that `watchWrites` uses. */
interface LmdbEnvironment {
  readonly startWriting: (address: number, told: Told) => void
  /** Lets go of the lock that orders the threads that write. */
  readonly resumeWriting?: () => void
}

/** What lmdb tells of a batch that is on disk. */
const WRITTEN = 0
/** What lmdb tells while a thread of its own writes; any other status says that the thread is done. */
const UNDER_WAY: ReadonlySet<number> = new Set([1, 2])
/** How long the threads that write may take to be done once all is on disk, ms: they have nothing left to do but to return. */
const LEAVE_MS = 1_000

/** What lmdb writes in one transaction. */
interface Batch {
  /** Resolves once it is on disk, rejects with why it is not. */
  readonly stored: Promise<void>
  resolve(): void
  reject(cause: Error): void
}

function newBatch(): Batch {
  let settle!: Pick<Batch, 'resolve' | 'reject'>
  const stored = new Promise<void>((resolve, reject) => {
    settle = { resolve, reject }
  })
  stored.catch(() => {})
  return { stored, ...settle }
}

/**
 * The threads of lmdb that write for a store, one for each transaction. lmdb's own promise of a transaction tells what became of a later one where three
 * are under way (queueCommitResolution in its write.js keeps the first and the last): what the thread ends with is true. The first promise is of the first
 * thread, and so on.
 */
class Writers {
  #count = 0
  #whenGone: (() => void) | undefined
  /** By number: those that are not answered. */
  readonly #batches = new Map<number, Batch>()
  /** How the threads of these have ended; undefined: well. */
  readonly #ended = new Map<number, Error | undefined>()
  /** lmdb's promise for the last one. */
  #promise: Promise<unknown> | undefined
  #promised = 0
  #started = 0
  #answered = 0

  /** Resolves once what lmdb gave `promise` for is on disk, rejects with why it is not; in the order in which it was written. To be asked as soon as lmdb has given it. */
  stored(promise: Promise<unknown>): Promise<void> {
    if (promise !== this.#promise) {
      this.#promise = promise
      this.#promised++
      // It is not asked, and brings another promise that is rejected.
      promise.catch(({ commitError }: { commitError?: Promise<unknown> }) => commitError?.catch(() => {}))
      this.#batches.set(this.#promised, newBatch())
    }
    return (this.#batches.get(this.#promised) as Batch).stored
  }

  /** Returns the number of its transaction. */
  begin(): number {
    this.#count++
    return ++this.#started
  }

  /** `cause`: why its transaction is not on disk. */
  end(number: number, cause: Error | undefined): void {
    this.#ended.set(number, cause)
    for (let next = this.#answered + 1; this.#ended.has(next); next++) this.#answer(next)
    if (--this.#count === 0) this.#whenGone?.()
  }

  #answer(number: number): void {
    const cause = this.#ended.get(number)
    const batch = this.#batches.get(number)
    if (cause === undefined) batch?.resolve()
    else batch?.reject(cause)
    this.#ended.delete(number)
    this.#batches.delete(number)
    this.#answered = number
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

/** Those of a store that `watchWrites` looks after. */
export const writersOf = (root: RootDatabase): Writers => writers.get(root) as Writers

/**
 * Keeps count of lmdb's threads that write, for `close`, and keeps lmdb from printing the cause of a failed commit on the console: whoever wrote gets it
 * with the rejection, and tells it once. To be called before anything is written; each turn of the event loop must not be a batch of its own
 * (eventTurnBatching).
 */
export function watchWrites(root: RootDatabase): void {
  const { env } = root as unknown as { env: LmdbEnvironment }
  const start = env.startWriting.bind(env)
  const writing = new Writers()
  writers.set(root, writing)
  const startWriting = (address: number, told: Told) => {
    // What was to be written has been refused when that became known.
    if (environmentOf(root)?.failure !== undefined) return
    start(address, (status) => {
      if (status === MDB_PANIC) {
        // The thread has gone with lmdb's lock and answered nobody: the next one would wait for the lock for good.
        env.resumeWriting?.()
        environmentOf(root)?.fail()
      }
      const { error } = console
      let cause: unknown
      console.error = (said: unknown) => {
        cause = said
      }
      try {
        return told(status)
      } finally {
        console.error = error
        if (!UNDER_WAY.has(status)) {
          // Who waits for what failed to be on disk would wait for good, lmdb's own closing among them: it tells only those of a batch that went well.
          if (status !== WRITTEN) told(WRITTEN)
          writing.end(number, status === WRITTEN ? undefined : asError(cause, status))
        }
      }
    })
    const number = writing.begin()
  }
  Object.defineProperty(env, 'startWriting', { value: startWriting })
}

const asError = (cause: unknown, status: number): Error =>
  cause instanceof Error ? cause : new Error(`LMDB has ended with ${status}`)

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
