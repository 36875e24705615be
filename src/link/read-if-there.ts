/** Reads what a node may not have on its disk yet. */
import { readFileSync } from 'node:fs'

/** The text of a file, UTF-8; undefined where there is none. Throws when it is there and cannot be read. */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
