/** Waiting for a write to be on disk. */
import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { RootDatabase } from 'lmdb'
import { NotStored } from '../contract/errors.ts'

/** Resolves once `writes` are on disk. Throws NotStored when the disk did not take them: full, a quota, a fault. */
export async function durable(root: RootDatabase, ...writes: Promise<unknown>[]): Promise<void> {
  try {
    await Promise.all(writes)
  } catch (error) {
    // Every write of a commit that failed is rejected, and the cause comes as a promise that is rejected as well: each needs a listener.
    await Promise.allSettled(writes)
    const cause = await (error as { commitError?: Promise<unknown> }).commitError?.catch((cause: unknown) => cause)
    const text = cause instanceof Error ? cause.message : String(error)
    const { path } = root as unknown as { path: string }
    throw new NotStored(path, `${text}; ${bytesFree(path)} bytes are free`, { cause: error })
  }
  await root.flushed
}

/** What the file's disk has left for this user; '?' when it does not say. */
export function bytesFree(path: string): string {
  try {
    const { bsize, bavail } = statfsSync(dirname(path))
    return (bsize * bavail).toLocaleString('en-US')
  } catch {
    return '?'
  }
}

type Written = (status: number) => void

/** The part of lmdb's environment that `quiet` looks at. */
interface Environment {
  readonly startWriting?: (address: number, written: Written) => void
}

/** Keeps lmdb from printing the cause of a failed commit on the console: whoever wrote gets it with the rejection, and tells it once. */
export function quiet(root: RootDatabase): void {
  const { env } = root as unknown as { env: Environment }
  const start = env.startWriting?.bind(env)
  if (start === undefined) return
  const startWriting = (address: number, written: Written) =>
    start(address, (status) => {
      const { error } = console
      console.error = () => {}
      try {
        written(status)
      } finally {
        console.error = error
      }
    })
  Object.defineProperty(env, 'startWriting', { value: startWriting })
}
