/** Writes the configurations of `fec advise --write`: all of them, or none. */
import { open, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeDirectoryAsync } from '../make-directory.ts'
import { messageOf } from '../text/error-message.ts'
import { Failure } from './failure.ts'
import type { Written } from './fec-pipelines.ts'

/** `directory` and those above it that are not there, the innermost first. */
async function missing(directory: string): Promise<string[]> {
  const found: string[] = []
  for (let path = directory; dirname(path) !== path; path = dirname(path)) {
    const error = await stat(path).then(
      () => undefined,
      (error: NodeJS.ErrnoException) => error,
    )
    if (error?.code !== 'ENOENT') break
    found.push(path)
  }
  return found
}

/** Writes a file for each of `configurations`, by their names. When one fails it takes away what it has made, so that a second try finds no rest of the first. */
export async function writeConfigurations(directory: string, configurations: Record<string, Written>): Promise<void> {
  const directories = await missing(directory)
  const files: string[] = []
  try {
    await makeDirectoryAsync(directory, 0o777)
    for (const [name, written] of Object.entries(configurations)) {
      const path = join(directory, name)
      const file = await open(path, 'wx')
      files.push(path)
      try {
        await file.writeFile(`${JSON.stringify(written, null, 2)}\n`)
      } finally {
        await file.close()
      }
    }
  } catch (error) {
    // What cannot be taken away, or what others have put into a directory, stays.
    for (const path of files) await rm(path, { force: true }).catch(() => {})
    for (const path of directories) await rmdir(path).catch(() => {})
    const { code } = error as NodeJS.ErrnoException
    const cure = code === 'EEXIST' ? '; nothing is overwritten: name another directory' : ''
    throw new Failure(`cannot write to ${directory}: ${messageOf(error)}${cure}`)
  }
}
