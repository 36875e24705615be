/** Finds the directory of the package, whether the code runs from src/ or from dist/. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Absolute path of the directory that holds package.json and proto/. */
export function packageRoot(): string {
  let directory = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(directory, 'package.json'))) {
    const parent = dirname(directory)
    if (parent === directory) throw new Error('no package.json above the sources: the installation is incomplete')
    directory = parent
  }
  return directory
}
