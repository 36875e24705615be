/** Waiting for a write to be on disk. */
import { statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { RootDatabase } from 'lmdb'
import { NotStored } from '../contract/errors.ts'
import { codeOf } from '../text/error-message.ts'
import { environmentOf } from './fatal.ts'

interface FileIdentity {
  readonly dev: number
  readonly ino: number
}

const files = new WeakMap<RootDatabase, FileIdentity>()
/** Those of which lmdb answers what is written before that is on disk. */
const overlapping = new WeakSet<RootDatabase>()

/** Notes whether a store has been opened with lmdb's overlappingSync. */
export function noteSync(root: RootDatabase, { overlappingSync }: { overlappingSync: boolean }): void {
  if (overlappingSync) overlapping.add(root)
}

/** Notes which file a store has just been opened on: changes made to it once it is deleted, or another lies in its place, are lost. */
export function noteFile(root: RootDatabase): void {
  files.set(root, statSync(pathOf(root)))
}

/** The store is closing: what becomes of its file from now on is nobody's concern. */
export function forgetFile(root: RootDatabase): void {
  files.delete(root)
}

/** Resolves once what `write` begins is on disk. Throws NotStored when the disk did not take it: full, a quota, a fault, or the file is gone. */
export function durable(root: RootDatabase, write: () => Promise<unknown>[]): Promise<void> {
  const environment = environmentOf(root)
  return environment === undefined ? onDisk(root, write) : environment.until(() => onDisk(root, write))
}

async function onDisk(root: RootDatabase, write: () => Promise<unknown>[]): Promise<void> {
  // What is refused for that alone must not be done in a file that is put back later.
  requireFile(root)
  const writes = write()
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
  if (overlapping.has(root)) await root.flushed
  environmentOf(root)?.keep()
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
  const code = codeOf(cause) ?? cause.message
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
