/**
 * Has LMDB keep its lock file in memory. It is mapped, and written to with each transaction: where a file system writes nothing in place (btrfs; XFS, where
 * the file was cloned) and its disk is full, that is a SIGBUS. Who else has the directory the file need not tell: there is the node's own lock.
 */
import { randomUUID } from 'node:crypto'
import { closeSync, lstatSync, openSync, renameSync, symlinkSync, unlinkSync } from 'node:fs'
import type { Reserve } from './room.ts'

const MEMORY = '/dev/shm'

/**
 * Puts a link to `bytes` bytes of memory in the place of the file at `path`, until the store is open. What it returns lets go of the memory. Undefined, and
 * there is no link, where the system has no such memory or the file system no links.
 */
export function lockInMemory(path: string, bytes: number, reserve: Reserve): (() => void) | undefined {
  // One that was cut off may have left it.
  dropLink(path)
  const name = `${MEMORY}/penstock-${randomUUID()}`
  let file: number
  try {
    file = openSync(name, 'wx+', 0o600)
  } catch {
    return undefined
  }
  const draft = `${path}.${process.pid}`
  const forget = () => {
    for (const link of [draft, path]) dropLink(link)
    closeSync(file)
  }
  try {
    try {
      reserve(name, bytes)
    } finally {
      unlinkSync(name)
    }
    dropLink(draft)
    symlinkSync(`/proc/self/fd/${file}`, draft)
    // LMDB has to find it so.
    closeSync(openSync(draft, 'r+'))
    renameSync(draft, path)
    return forget
  } catch {
    forget()
    return undefined
  }
}

/** Removes the link at `path`, if there is one; what a disk that fails keeps is replaced at the next start. */
export function dropLink(path: string): void {
  try {
    if (lstatSync(path).isSymbolicLink()) unlinkSync(path)
  } catch {}
}
