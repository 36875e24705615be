/** Waiting for a write to be on disk. */
import { statfsSync, statSync, utimesSync } from 'node:fs'
import { dirname } from 'node:path'
import type { RootDatabase } from 'lmdb'
import { NotStored } from '../contract/errors.ts'
import { codeOf } from '../text/error-message.ts'
import { environmentOf } from './fatal.ts'
import { writersOf } from './writers.ts'

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

/** Resolves once what `writes` put and remove is on disk. Throws NotStored when the disk did not take it: full, a quota, a fault, or the file is gone. */
export function durable(root: RootDatabase, writes: readonly (() => Promise<unknown>)[]): Promise<void> {
  return unlessFailed(root, () => {
    const writers = writersOf(root)
    return allOf(new Set(writes.map((write) => writers.stored(write()))))
  })
}

/** As `durable`, of a change that is on disk when `change` returns. */
export function durableAtOnce(root: RootDatabase, change: () => void): Promise<void> {
  return unlessFailed(root, async () => change())
}

/** Rejects, once all are settled, where one is rejected. */
async function allOf(writes: Iterable<Promise<void>>): Promise<void> {
  for (const result of await Promise.allSettled(writes)) if (result.status === 'rejected') throw result.reason
}

function unlessFailed(root: RootDatabase, write: () => Promise<void>): Promise<void> {
  const environment = environmentOf(root)
  return environment === undefined ? onDisk(root, write) : environment.until(() => onDisk(root, write))
}

async function onDisk(root: RootDatabase, write: () => Promise<void>): Promise<void> {
  // What is refused for that alone must not be done in a file that is put back later.
  requireFile(root)
  requireWritable(pathOf(root))
  const written = write()
  try {
    await written
  } catch (error) {
    const path = pathOf(root)
    throw new NotStored(path, `${(error as Error).message}; ${bytesFree(path)} bytes are free`, { cause: error })
  }
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

/**
 * A file system that has become read-only, or fails, is asked before LMDB is: where that is refused a page, the words it makes of it (last_error in lmdb-js 3's
 * mdb_page_flush) are longer than the memory it has for them, and end the process now or later.
 */
function requireWritable(path: string): void {
  const now = new Date()
  try {
    utimesSync(path, now, now)
  } catch (error) {
    const code = codeOf(error)
    // Another's file may be written, but not given these times; without room, what takes none is stored.
    if (code === 'EROFS' || code === 'EIO') throw fileGone(path, error as NodeJS.ErrnoException)
  }
}

/** What is to be thrown when the system does not find the file of the store, or says why it does not look. */
export function fileGone(path: string, cause: NodeJS.ErrnoException): NotStored {
  const code = codeOf(cause) ?? cause.message
  const cure = CURES.get(code)
  return new NotStored(path, code, cure === undefined ? { cause } : { cure, cause })
}

const CURE = 'it was deleted under the node; stop the node and put it back, or start it anew'
const CURES: ReadonlyMap<string, string> = new Map([
  ['ENOENT', CURE],
  ['EROFS', 'its file system is read-only by now: see why (dmesg), then mount it writable'],
  ['EIO', 'is its disk failing (dmesg)?'],
])

const pathOf = (root: RootDatabase): string => (root as unknown as { path: string }).path

/** What the file's disk has left for this user; '?' when it does not say. */
export function bytesFree(path: string): string {
  try {
    const { bsize, blocks, bavail } = statfsSync(dirname(path))
    // A file system of no size does not say what is left.
    if (blocks === 0) return '?'
    return (bsize * bavail).toLocaleString('en-US')
  } catch {
    return '?'
  }
}
