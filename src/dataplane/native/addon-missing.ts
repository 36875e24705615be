/** What is told where there is no addon for the machine. */
import { basename, dirname } from 'node:path'
import { packageRoot } from '../../package-root.ts'

/** How to have the addon. A package that npm installed has the script of `install` only, which builds where nothing built comes along. */
export function buildingAdvice(root = packageRoot()): string {
  return basename(dirname(root)) === 'node_modules'
    ? 'build it: in the folder where penstock is installed, npm rebuild penstock, with install scripts allowed (needs g++, make and python3)'
    : 'build it: npm run build:native (needs g++, make and python3)'
}

/** `found` is what node-gyp-build says of what it looked for. */
export class AddonMissing extends Error {
  override readonly name = 'AddonMissing'
  readonly found: string

  constructor(cause: Error) {
    const found = cause.message.split('\n')[0] as string
    super(`${found}: ${buildingAdvice()}`, { cause })
    this.found = found
  }
}
