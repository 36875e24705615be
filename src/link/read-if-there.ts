/** Reads what a node may not have on its disk yet. */
import { readFileSync } from 'node:fs'

/** The text of a file, UTF-8; undefined where there is none. Throws when it is there and cannot be read. */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    // The only one for which the system's word has no path.
    if (code === 'EISDIR') throw new Error(`${path} is a directory, not a file`, { cause: error })
    throw error
  }
}
