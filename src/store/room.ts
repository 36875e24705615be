/** Room for what makes the store grow: asked of the disk beforehand, so that what is small and what is removed still fits when it is full. */
import { statSync } from 'node:fs'
import type { RootDatabase } from 'lmdb'
import { NotStored } from '../contract/errors.ts'
import { bytesFree, fileGone } from './durable.ts'

/** Sees to it that the first `bytes` bytes of a file have room on its disk; throws when they have not. */
export type Reserve = (path: string, bytes: number) => void

/** Kept for changes of records that are there, for removals and for the states of runs: LMDB copies every page that it changes. */
const MIN_FREE_BYTES = 128 << 10
/** Asked for beforehand where the disk has it, so that it is asked once for many writes. */
const AHEAD_BYTES = 2 << 20
/** Most that one write makes the file grow by besides its record: the pages on the way to it, and those of LMDB's list of free ones. */
const WRITE_BYTES = 64 << 10

interface DiskRoom {
  readonly reserve: Reserve
  /** Bytes of what was asked for that the writes since cannot have taken. */
  left: number
}

const rooms = new WeakMap<RootDatabase, DiskRoom>()

/** Sets who asks the disk; without, nothing is asked. */
export function reserveWith(root: RootDatabase, reserve: Reserve): void {
  rooms.set(root, { reserve, left: 0 })
}

/** Throws NotStored when the disk has no room for another `bytes` bytes of records. */
export function roomFor(root: RootDatabase, bytes: number): void {
  const room = rooms.get(root)
  if (room === undefined) return
  room.left -= bytes + WRITE_BYTES
  if (room.left >= 0) return
  const { path } = root as unknown as { path: string }
  const least = sizeOf(path) + bytes + MIN_FREE_BYTES
  room.left = 0
  try {
    room.reserve(path, least + AHEAD_BYTES)
    room.left = AHEAD_BYTES
    return
  } catch {
    // So little is free that every write has to ask for itself.
  }
  try {
    room.reserve(path, least)
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    throw new NotStored(path, `${code || message}; ${bytesFree(path)} bytes are free`, { cause: error })
  }
}

/** Bytes of the file. Throws NotStored when somebody has deleted it. */
function sizeOf(path: string): number {
  try {
    return statSync(path).size
  } catch (error) {
    throw fileGone(path, error as NodeJS.ErrnoException)
  }
}
