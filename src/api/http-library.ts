/** uWebSockets.js, loaded at one place: there may be no binary of it for the Node.js that runs. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { messageOf } from '../text/error-message.ts'

/** What to do where it cannot be loaded. */
export const HTTP_LIBRARY_ADVICE =
  "in the folder where penstock is installed, npm pkg set 'overrides[uWebSockets.js]=github:uNetworking/uWebSockets.js#v20.67.0' and " +
  'npm install again (that release is for Node.js 22, 24 and 26), or use Node.js 20.19 to 22'

/** What to do where there is one that does not load. */
const LOADING_ADVICE =
  "raise the process's limits of memory and of open files (ulimit -v, -d and -n; LimitAS=, LimitDATA= and LimitNOFILE= of a systemd unit) if it has such; " +
  'it needs glibc; a damaged installation is to be installed again'

/** The binary for the Node.js that runs, where it lies in both packages that have some; undefined where there is none. */
function binary(): string | undefined {
  const name = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`
  try {
    const module = import.meta.resolve('uWebSockets.js')
    return [`./bin/${name}`, `./${name}`].map((path) => fileURLToPath(new URL(path, module))).find(existsSync)
  } catch {
    return undefined
  }
}

/** Why it cannot be loaded, and what to do. Whatever the cause, the package says that there is no binary. */
function whyNot(cause: unknown): string {
  const file = binary()
  if (file === undefined) {
    return `has no binary for Node.js ${process.versions.node} in the package that npm installed: ${HTTP_LIBRARY_ADVICE}`
  }
  try {
    createRequire(import.meta.url)(file)
  } catch (error) {
    return `could not be loaded: ${messageOf(error)}: ${LOADING_ADVICE}`
  }
  return `could not be loaded: ${messageOf(cause)}: ${LOADING_ADVICE}`
}

export class HttpLibraryMissing extends Error {
  override readonly name = 'HttpLibraryMissing'

  constructor(cause: unknown) {
    super(`uWebSockets.js, which serves HTTP, ${whyNot(cause)}`, { cause })
  }
}

export const uWS = await import('uWebSockets.js').catch((cause: unknown) => {
  throw new HttpLibraryMissing(cause)
})
