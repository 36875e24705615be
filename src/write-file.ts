/** Writes the files that a node cannot do without: each is there whole or not at all, for its owner alone to read, whenever the machine fails. */
import { chmodSync, closeSync, fsyncSync, openSync, renameSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf } from './text/error-message.ts'

/** Puts a file with `text` in the place of the one at `path`, if there is one; it is on disk when this returns. Throws as `writeDraft` does. */
export function replaceFile(path: string, text: string): void {
  renameSync(writeDraft(path, text), path)
  syncDirectoryOf(path)
}

/**
 * A file beside `path` with `text`, on disk; whoever calls gives it its name. Throws what the system says of its place, or, and leaves no file, an Error
 * that names `path` where the disk does not take it.
 */
export function writeDraft(path: string, text: string): string {
  const draft = `${path}.${process.pid}`
  // One that was cut off may have left it, with whatever mode.
  unlinkIfThere(draft)
  const file = openSync(draft, 'wx', 0o600)
  try {
    writeFileSync(file, text)
    fsyncSync(file)
  } catch (error) {
    unlinkSync(draft)
    // The system names no file here.
    throw new Error(`${path} cannot be written (${messageOf(error)}): is its disk full?`, { cause: error })
  } finally {
    closeSync(file)
  }
  return draft
}

/** A name that `path` was given, or has lost, is on disk when this returns. */
export function syncDirectoryOf(path: string): void {
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/** Takes from others what they may do with a file. Where they may do nothing it is left alone: FAT, mounted for its owner alone, takes no mode. */
export function keepFromOthers(path: string): void {
  if ((statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o600)
}

function unlinkIfThere(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
