/** Room for what makes the store grow: asked of the disk beforehand, so that what is small and what is removed still fits when it is full. */
import { statSync } from 'node:fs'
import type { RootDatabase } from 'lmdb'
import { NotStored } from '../contract/errors.ts'
import { bytesFree } from './durable.ts'

/** Sees to it that the first `bytes` bytes of a file have room on its disk; throws when they have not. */
export type Reserve = (path: string, bytes: number) => void

/** Kept for changes of records that are there, for removals and for the states of runs: LMDB copies every page that it changes. */
const KEPT_BYTES = 128 << 10

const reserves = new WeakMap<RootDatabase, Reserve>()

/** Sets who asks the disk; without, nothing is asked. */
export function reserveWith(root: RootDatabase, reserve: Reserve): void {
  reserves.set(root, reserve)
}

/** Throws NotStored when the disk has no room for another `bytes` bytes of records. */
export function roomFor(root: RootDatabase, bytes: number): void {
  const reserve = reserves.get(root)
  if (reserve === undefined) return
  const { path } = root as unknown as { path: string }
  try {
    reserve(path, statSync(path).size + bytes + KEPT_BYTES)
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    throw new NotStored(path, `${code || message}; ${bytesFree(path)} bytes are free`, { cause: error })
  }
}
