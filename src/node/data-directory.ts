/** The data directory while a node has it: made, locked against every other node, with room on its disk for the store. */
import { existsSync, statfsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { native } from '../dataplane/native/native.ts'
import { makeDirectory } from '../make-directory.ts'
import { StoreDamaged } from '../store/database-file.ts'
import { lockInMemory } from '../store/lock-in-memory.ts'
import type { Reserve } from '../store/room.ts'
import { storeFiles } from '../store/store.ts'
import { codeOf, messageOf } from '../text/error-message.ts'

/** Locked as long as a node has the directory; it stays when the node is gone, unlocked. */
const LOCK_FILE = 'penstock.lock'
/** What the store can grow by at least before its disk has to give it more, bytes. */
const STORE_ROOM = 256 << 10
/** The same where there is that much: kept over restarts, so that a node comes up on a disk that others have filled since. */
const STORE_AMPLE_ROOM = 1 << 20
/** What lmdb's own lock file may come to; it is mapped and written to, and a page without room is a SIGBUS. */
const STORE_LOCK_ROOM = 16 << 10
/** What the key and the certificate of a new node may come to. */
const FILES_ROOM = 64 << 10

/** Another node works in the data directory. */
export class DirectoryInUse extends Error {
  override readonly name = 'DirectoryInUse'
}

/** The data directory cannot be used: not writable, no room. `cause` is what the system said. */
class DirectoryUnusable extends Error {
  override readonly name = 'DirectoryUnusable'
}

/**
 * Makes `directory` (mode 0700) when it is missing, takes it for this node and makes sure that the store has room on its disk before
 * anything of it is mapped. The lock is the kernel's, on a file: it goes with the process however that ends, is seen across PID and mount
 * namespaces, and is not part of a copy. NFS carries it to its server (with `local_lock` it does not); of nodes on two machines over a
 * file system that keeps locks to itself, the second one is not refused. Throws DirectoryInUse, DirectoryUnusable, or StoreDamaged where a node's store
 * is empty; what it returns gives the directory back.
 */
export function claimDataDirectory(directory: string): () => void {
  const owner = native.ownerOpen()
  let forgetMemory: (() => void) | undefined
  const release = () => {
    forgetMemory?.()
    native.ownerRelease(owner)
  }
  const step = <T>(path: string, act: () => T): T => {
    try {
      return act()
    } catch (error) {
      throw explained(directory, path, error as NodeJS.ErrnoException)
    }
  }
  try {
    step(directory, () => makeDirectory(directory))
    const lock = join(directory, LOCK_FILE)
    step(lock, () => native.lockOpen(owner, lock))
    const { data, lock: storeLock } = storeFiles(directory)
    const isUsed = existsSync(join(directory, 'identity.pem'))
    const size = statSync(data, { throwIfNoEntry: false })?.size
    // A first start that was cut off leaves an empty file, but no identity yet.
    if (size === 0 && isUsed) throw new StoreDamaged(data, 'it is empty')
    forgetMemory = lockInMemory(storeLock, STORE_LOCK_ROOM, reserve)
    const wanted = [
      ...(forgetMemory === undefined ? [{ path: storeLock, bytes: STORE_LOCK_ROOM }] : []),
      { path: data, bytes: (size ?? 0) + STORE_ROOM },
    ]
    const spare = isUsed ? 0 : FILES_ROOM
    const needed = wanted.reduce((sum, { path, bytes }) => sum + missing(path, bytes), spare)
    if (needed > room(directory)) throw noRoom(directory, needed)
    for (const { path, bytes } of wanted) {
      const lacks = missing(path, bytes)
      try {
        native.fileReserve(path, bytes)
      } catch (error) {
        throw explained(directory, path, error as NodeJS.ErrnoException, { needed: lacks })
      }
    }
    // LMDB ends the process where it cannot map it.
    step(data, () => native.fileRequireShared(data))
    try {
      const ample = (size ?? 0) + STORE_AMPLE_ROOM
      if (missing(data, ample) + spare <= room(directory)) native.fileReserve(data, ample)
    } catch {
      // What it must have, it has.
    }
  } catch (error) {
    release()
    throw error
  }
  return release
}

/** What `act` does with a file of the directory; what the system refuses is told with its cure. */
export function ofDirectory<T>(directory: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException
    if (code === undefined || path === undefined || ![path, dirname(path)].includes(directory)) throw error
    throw explained(directory, path, error as NodeJS.ErrnoException, { verb: 'read and write' })
  }
}

/** Asks the disk for room for the first `bytes` bytes of a file; throws when it has none. */
export const reserve: Reserve = (path, bytes) => {
  native.fileReserve(path, bytes)
}

/** Bytes that the disk still has to give for the first `bytes` bytes of a file. */
function missing(path: string, bytes: number): number {
  const blocks = statSync(path, { throwIfNoEntry: false })?.blocks ?? 0
  return Math.max(0, bytes - blocks * 512)
}

/**
 * Bytes that this process can still have on the disk of `directory`, or of what it is going to be made in; Infinity where its file system does not say, as one
 * in memory without a limit (tmpfs with size=0, ramfs) or one of FUSE without statfs(2): all is 0 there, what it holds too.
 */
function room(directory: string): number {
  let path = directory
  while (!existsSync(path)) path = dirname(path)
  const { bsize, blocks, bavail, bfree } = statfsSync(path)
  if (blocks === 0) return Number.POSITIVE_INFINITY
  return bsize * (process.getuid?.() === 0 ? bfree : bavail)
}

function noRoom(directory: string, needed: number, cause?: NodeJS.ErrnoException): DirectoryUnusable {
  const there = room(directory)
  const why =
    codeOf(cause) === 'EDQUOT'
      ? "this user's quota is used up"
      : needed <= there
        ? `the file system takes no more ${there === Number.POSITIVE_INFINITY ? 'files, or no larger ones' : 'files'}`
        : `its disk is full: ${grouped(needed)} bytes are needed, ${grouped(there)} are there`
  const message = `the data directory ${directory} has no room: ${why}; make room, or choose another dataDirectory`
  return new DirectoryUnusable(message, { cause })
}

function explained(
  directory: string,
  path: string,
  cause: NodeJS.ErrnoException,
  { needed = STORE_ROOM, verb = 'write' }: { needed?: number; verb?: string } = {},
): Error {
  const code = codeOf(cause)
  switch (code) {
    case 'EAGAIN':
      return new DirectoryInUse(
        `the data directory ${directory} is in use by another node, which holds ${path} locked: stop that node (fuser ${path} names its process) or give this one another dataDirectory`,
        { cause },
      )
    case 'ENOSPC':
    case 'EDQUOT':
      return noRoom(directory, needed, cause)
  }
  const whoAmI = process.getuid === undefined ? 'this user' : `this user (uid ${process.getuid()})`
  if (cause.syscall === 'mmap' || cause.syscall === 'fcntl') {
    const lacks = cause.syscall === 'mmap' ? 'does not let files be mapped into memory' : 'has no locks'
    return new DirectoryUnusable(
      `the data directory ${directory} cannot be used: its file system ${lacks} for ${path} (${code}): choose a dataDirectory on a local disk`,
      { cause },
    )
  }
  if (cause.syscall === 'chmod' && code === 'EPERM') {
    return new DirectoryUnusable(
      `the data directory ${directory} cannot be used: ${whoAmI} may not take ${path} from others: run the node as its owner; a file system that keeps no permissions, as FAT, mount for its owner alone (umask=077), or choose another dataDirectory`,
      { cause },
    )
  }
  const why: Partial<Record<string, string>> = {
    EACCES: `${whoAmI} may not ${verb} ${path}: run the node as its owner, give it to this user (chown -R), or choose another dataDirectory`,
    EPERM: `${whoAmI} may not ${verb} ${path}: run the node as its owner, or choose another dataDirectory`,
    EROFS: `${path} is on a file system that is mounted read-only: mount it writable, or choose another dataDirectory`,
    ENOENT: `${dirname(cause.path ?? path)} is on a file system that takes no directories: choose another dataDirectory`,
    ENOTDIR: 'a part of its path is no directory: choose another dataDirectory',
    EEXIST: 'it is no directory: choose another dataDirectory',
    ELOOP: `${path} is a symbolic link: put a file there, or choose another dataDirectory`,
    EFBIG: `this process may not write as much as ${path} needs: raise its limit, ulimit -f, or LimitFSIZE= of a systemd unit`,
    ENOLCK: `its file system has no locks for ${path}: choose a dataDirectory on a local disk`,
    ENOTSUP: `its file system has no locks for ${path}: choose a dataDirectory on a local disk`,
  }
  const text = (code === undefined ? undefined : why[code]) ?? messageOf(cause)
  return new DirectoryUnusable(`the data directory ${directory} cannot be used: ${text}`, { cause })
}

function grouped(bytes: number): string {
  return bytes.toLocaleString('en-US')
}
