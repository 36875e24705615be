/**
 * Builds the native addon for a package: prebuilds/linux-ARCH/ below a directory, where node-gyp-build finds it. It is built in a directory of its
 * own, so that the repository's build/ stays as it is. As the addon speaks Node-API, one build serves every version of Node.js.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import prebuildify from 'prebuildify'
import { inScratch, root } from './steps.js'

/** The compilers of Debian's g++-aarch64-linux-gnu. */
const CROSS = { arm64: 'aarch64-linux-gnu' }

const has = (command) => spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0

/** What this machine can build for: itself, and what it has a cross compiler for. */
export function buildable() {
  const others = Object.keys(CROSS).filter((arch) => arch !== process.arch && has(`${CROSS[arch]}-g++`))
  return [process.arch, ...others]
}

/** Headers of the Node.js that runs this, where its installation has them; else node-gyp fetches them. */
function useOwnHeaders() {
  const own = join(process.execPath, '../..')
  if (existsSync(join(own, 'include/node/node_api.h'))) process.env.npm_config_nodedir ??= own
}

/** Builds for `arch`, an x64 or arm64 machine with glibc. */
export async function prebuild(arch, out) {
  const prefix = arch === process.arch ? undefined : CROSS[arch]
  if (prefix === undefined && arch !== process.arch) throw new Error(`nothing here builds for ${arch}`)
  useOwnHeaders()
  process.env.JOBS ??= 'max'
  const tools = { CC: `${prefix}-gcc`, CXX: `${prefix}-g++`, AR: `${prefix}-ar` }
  await inScratch(async (cwd) => {
    for (const path of ['package.json', 'binding.gyp', 'src/dataplane/native']) {
      cpSync(join(root, path), join(cwd, path), { recursive: true })
    }
    const before = { ...process.env }
    if (prefix !== undefined) Object.assign(process.env, tools)
    try {
      await new Promise((resolve, reject) => {
        const options = {
          ...{ cwd, out, arch, platform: 'linux', libc: 'glibc', napi: true, tagLibc: true, quiet: true },
          ...{ strip: true, stripBin: prefix === undefined ? 'strip' : `${prefix}-strip` },
          ...{ targets: [process.versions.node], nodeGyp: join(root, 'node_modules/.bin/node-gyp') },
        }
        prebuildify(options, (error) => (error ? reject(error) : resolve()))
      })
    } catch (error) {
      throw new Error(`the addon does not build for ${arch} (npm run build:native shows why): ${error.message}`)
    } finally {
      process.env = before
    }
  })
}
