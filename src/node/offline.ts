/** The data directory of a node that is down, for commands that work on it. */
import { existsSync } from 'node:fs'
import { identityFile } from '../link/identity.ts'
import { Store } from '../store/store.ts'
import { claimDataDirectory } from './data-directory.ts'

/** Nobody else has the directory meanwhile. Throws, and makes nothing, where it is no node's. */
export async function withStore<T>(directory: string, work: (store: Store) => Promise<T>): Promise<T> {
  if (!existsSync(identityFile(directory))) throw noNode(directory)
  const release = claimDataDirectory(directory)
  try {
    const store = new Store(directory)
    try {
      return await work(store)
    } finally {
      await store.close()
    }
  } finally {
    release()
  }
}

/** What is on the node. */
export function pipelinesIn(store: Store): { id: string; name: string }[] {
  return store.pipelines.all().map(({ id, settings }) => ({ id, name: settings.name }))
}

/** The directory is no node's. */
export function noNode(directory: string): Error {
  return new Error(`there is no node in ${directory}: ${identityFile(directory)} is missing`)
}
