/** Waiting for a write to be on disk, and what it throws when the disk did not take it. */
import type { RootDatabase } from 'lmdb'

/** A write that is not on disk and never will be; nothing of it is visible. Later writes may succeed. */
export class NotStored extends Error {
  override readonly name = 'NotStored'
}

/** Resolves once `writes` are on disk. Throws NotStored when the disk did not take them: full, a quota, a fault. */
export async function durable(root: RootDatabase, ...writes: Promise<unknown>[]): Promise<void> {
  try {
    await Promise.all(writes)
  } catch (error) {
    // Every write of a commit that failed is rejected, and the cause comes as a promise that is rejected as well: each needs a listener.
    await Promise.allSettled(writes)
    const cause = await (error as { commitError?: Promise<unknown> }).commitError?.catch((cause: unknown) => cause)
    const text = cause instanceof Error ? cause.message : String(error)
    throw new NotStored(`the data directory did not take the change (${text}): is its disk full?`, { cause: error })
  }
  await root.flushed
}
