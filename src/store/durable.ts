/** Waiting for a write to be on disk. */
import { statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { RootDatabase } from 'lmdb'
import { NotStored } from '../contract/errors.ts'

interface FileIdentity {
  readonly dev: number
  readonly ino: number
}

const files = new WeakMap<RootDatabase, FileIdentity>()

/** Notes which file a store has just been opened on: changes made to it once it is deleted, or another lies in its place, are lost. */
export function noteFile(root: RootDatabase): void {
  files.set(root, statSync(pathOf(root)))
}

/** The store is closing: what becomes of its file from now on is nobody's concern. */
export function forgetFile(root: RootDatabase): void {
  files.delete(root)
}

/** Resolves once `writes` are on disk. Throws NotStored when the disk did not take them: full, a quota, a fault, or the file is gone. */
export async function durable(root: RootDatabase, ...writes: Promise<unknown>[]): Promise<void> {
  try {
    await Promise.all(writes)
  } catch (error) {
    // Every write of a commit that failed is rejected, and the cause comes as a promise that is rejected as well: each needs a listener.
    await Promise.allSettled(writes)
    const cause = await (error as { commitError?: Promise<unknown> }).commitError?.catch((cause: unknown) => cause)
    const text = cause instanceof Error ? cause.message : String(error)
    const path = pathOf(root)
    throw new NotStored(path, `${text}; ${bytesFree(path)} bytes are free`, { cause: error })
  }
  await root.flushed
  requireFile(root)
}

/** At once: writes resolve in the order in which they were begun, on which those who keep what they have written rely. */
function requireFile(root: RootDatabase): void {
  const file = files.get(root)
  if (file === undefined) return
  const path = pathOf(root)
  let there: FileIdentity
  try {
    there = statSync(path)
  } catch (error) {
    throw fileGone(path, error as NodeJS.ErrnoException)
  }
  if (there.ino === file.ino && there.dev === file.dev) return
  throw new NotStored(path, 'another file is in its place', { cure: CURE })
}

/** What is to be thrown when the system does not find the file of the store, or says why it does not look. */
export function fileGone(path: string, cause: NodeJS.ErrnoException): NotStored {
  const { code = cause.message } = cause
  return new NotStored(path, code, code === 'ENOENT' ? { cure: CURE, cause } : { cause })
}

const CURE = 'it was deleted under the node; stop the node and put it back, or start it anew'

const pathOf = (root: RootDatabase): string => (root as unknown as { path: string }).path

/** What the file's disk has left for this user; '?' when it does not say. */
export function bytesFree(path: string): string {
  try {
    const { bsize, bavail } = statfsSync(dirname(path))
    return (bsize * bavail).toLocaleString('en-US')
  } catch {
    return '?'
  }
}

type Told = (status: number) => unknown

/** The part of lmdb's environment that `watchWrites` looks at. */
interface Environment {
  readonly startWriting?: (address: number, told: Told) => void
}

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
  const { env } = root as unknown as { env: Environment }
  const start = env.startWriting?.bind(env)
  if (start === undefined) return
  const writing = new Writers()
  writers.set(root, writing)
  const startWriting = (address: number, told: Told) => {
    start(address, (status) => {
      if (!UNDER_WAY.has(status)) writing.end()
      const { error } = console
      console.error = () => {}
      try {
        return told(status)
      } finally {
        console.error = error
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
  await root.flushed
  await writers.get(root)?.gone()
  await root.close()
}
