/** Ed25519 keys in files: PKCS #8 in PEM, for their owner alone to read. */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { existsSync, linkSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { makeDirectory } from '../make-directory.ts'
import { replaceFile, syncDirectoryOf, writeDraft } from '../write-file.ts'
import { readIfThere } from './read-if-there.ts'

/** What is said of a hard link by file systems that have none, as FAT and some of FUSE. */
const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'ENOSYS'])

/** The key in a file; undefined when there is no such file. Throws when it holds something else, saying what to do then. */
export function readKey(path: string, advice = 'restore it'): KeyObject | undefined {
  const pem = readIfThere(path)
  if (pem === undefined) return undefined
  let key: KeyObject
  try {
    key = createPrivateKey(pem)
  } catch {
    throw new Error(`${path} holds no private key: ${advice}`)
  }
  if (key.asymmetricKeyType !== 'ed25519') {
    throw new Error(`${path} holds a key of type ${key.asymmetricKeyType}, not ed25519`)
  }
  return key
}

/**
 * Writes the key to a new file (mode 0600; the directory is made, 0700), which appears whole or not at all and is on disk before this returns.
 * False, and nothing is changed, when there is a file already.
 */
export function placeKey(path: string, key: KeyObject): boolean {
  makeDirectory(dirname(path))
  const draft = writeDraft(path, pemOf(key))
  try {
    linkSync(draft, path)
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return false
    if (!NO_LINKS.has(code)) throw error
    if (existsSync(path)) return false
    renameSync(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
  syncDirectoryOf(path)
  return true
}

/** Writes the key in place of the one in a file: the file holds the one or the other whatever happens, and this one on disk before this returns. */
export function replaceKey(path: string, key: KeyObject): void {
  replaceFile(path, pemOf(key))
}

function pemOf(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }) as string
}
