/** The data directory of a node that is down, for commands that work on it. */
import { chownSync, existsSync, lstatSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { identityFile, loadIdentity } from '../link/identity.ts'
import { Store } from '../store/store.ts'
import { claimDataDirectory, ofDirectory } from './data-directory.ts'

/**
 * Nobody else has the directory meanwhile. Throws, and makes nothing, where it is no node's; with `makesNode` one that is empty or missing becomes a
 * new node's.
 */
export async function withStore<T>(
  directory: string,
  work: (store: Store) => Promise<T>,
  { makesNode = false }: { makesNode?: boolean } = {},
): Promise<T> {
  const file = identityFile(directory)
  const isThere = ofDirectory(directory, () => statSync(file, { throwIfNoEntry: false }) !== undefined)
  if (!isThere && !(makesNode && namesIn(directory).length === 0)) throw noNode(directory)
  const before = new Set(ofRoot(directory))
  const release = claimDataDirectory(directory)
  try {
    const store = ofDirectory(directory, () => new Store(directory))
    try {
      // After the store, as at the first start of a node: an identity beside an empty store is a damaged node's.
      if (!isThere) loadIdentity(directory)
      return await work(store)
    } finally {
      await store.close()
    }
  } finally {
    giveToOwner(directory, before)
    release()
  }
}

/** What root has made in the directory of another user is that user's: the node could not start otherwise. */
function giveToOwner(directory: string, before: ReadonlySet<string>): void {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(directory)
  for (const path of ofRoot(directory)) if (!before.has(path)) chownSync(path, uid, gid)
}

/** The files of the directory that are root's. */
function ofRoot(directory: string): string[] {
  return namesIn(directory)
    .map((name) => join(directory, name))
    .filter((path) => lstatSync(path, { throwIfNoEntry: false })?.uid === 0)
}

/** None where the directory is missing. */
function namesIn(directory: string): string[] {
  return ofDirectory(directory, () => (existsSync(directory) ? readdirSync(directory) : []))
}

/** What is on the node. */
export function pipelinesIn(store: Store): { id: string; name: string }[] {
  return store.pipelines.all().map(({ id, settings }) => ({ id, name: settings.name }))
}

/** The directory is no node's. */
export function noNode(directory: string): Error {
  return new Error(`there is no node in ${directory}: ${identityFile(directory)} is missing`)
}
