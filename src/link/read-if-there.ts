/** Reads what a node may not have on its disk yet: keys and certificates. */
import { statSync } from 'node:fs'
import { FileRefused, readRegularFile } from '../read-file.ts'

/** Bytes of such a file, at most. */
const MAX_KEY_FILE_BYTES = 1 << 20

/** The text of a file, UTF-8; undefined where there is none. Throws when it is there and cannot be read. */
export function readIfThere(path: string): string | undefined {
  try {
    return readRegularFile(path, MAX_KEY_FILE_BYTES).toString('utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    // The system's words have the path.
    if (!(error instanceof FileRefused)) throw error
    throw new Error(`${path} ${wordsOf(error, path)}`, { cause: error })
  }
}

function wordsOf({ code }: FileRefused, path: string): string {
  if (code === 'TOO_LONG') return `has more than ${MAX_KEY_FILE_BYTES} bytes, and is no key or certificate`
  return statSync(path, { throwIfNoEntry: false })?.isDirectory()
    ? 'is a directory, not a file'
    : 'is a device or a pipe, not a file'
}
