/** The addon built with address and undefined-behaviour sanitizers, in a folder of its own, and what loads it in place of the usual one. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = join(dirname(fileURLToPath(import.meta.url)), '../..')
/** Laid out as node-gyp wants it; made anew where files are newer. */
const folder = join(root, 'build-sanitize')

const SANITIZE = ['-fsanitize=address,undefined', '-fsanitize=float-cast-overflow', '-fno-sanitize-recover=all']
const FLAGS = ['-O0', '-g1', '-fno-omit-frame-pointer', ...SANITIZE]

/** The compiler's own copy of a shared library; undefined when it has none. */
function library(name) {
  const { stdout, status } = spawnSync('g++', [`-print-file-name=${name}`], { encoding: 'utf8' })
  const path = status === 0 ? stdout.trim() : ''
  return path.startsWith('/') && existsSync(path) ? realpathSync(path) : undefined
}

/**
 * Builds the addon; returns the environment that makes Node.js load it, or why there is none here. The runtime of the address
 * sanitizer must be the first library of a process, and Node.js is not linked against it: it is preloaded.
 */
export function sanitizedAddon() {
  const runtime = library('libasan.so')
  const undefinedRuntime = library('libubsan.so')
  if (runtime === undefined || undefinedRuntime === undefined) {
    return { missing: 'g++ has no libasan and libubsan (Debian: libasan8 and libubsan1, which g++ brings)' }
  }
  const { targets } = JSON.parse(readFileSync(join(root, 'binding.gyp'), 'utf8'))
  const [target] = targets
  target.cflags_cc = [...target.cflags_cc.filter((flag) => flag !== '-O3'), ...FLAGS]
  target.ldflags = [...target.ldflags, ...SANITIZE]
  mkdirSync(folder, { recursive: true })
  // Rewritten only when it differs: make builds what is older than its project.
  const project = `${JSON.stringify({ targets }, null, 2)}\n`
  const at = join(folder, 'binding.gyp')
  if (!existsSync(at) || readFileSync(at, 'utf8') !== project) writeFileSync(at, project)
  if (!existsSync(join(folder, 'src'))) symlinkSync('../src', join(folder, 'src'))
  // Where the usual build found Node's headers. The file is JSON below a line of comment.
  const usual = readFileSync(join(root, 'build/config.gypi'), 'utf8')
  const { nodedir } = JSON.parse(usual.slice(usual.indexOf('{'))).variables
  const nodeGyp = join(root, 'node_modules/node-gyp/bin/node-gyp.js')
  const options = ['-C', folder, '--silent', '--jobs', 'max', ...(nodedir ? ['--nodedir', nodedir] : [])]
  const built = spawnSync(process.execPath, [nodeGyp, 'configure', 'build', ...options], { encoding: 'utf8' })
  if (built.status !== 0) throw new Error(`the sanitized addon could not be built:\n${built.stdout}${built.stderr}`)
  const exception = library('libstdc++.so') // the runtime wants to find __cxa_throw when it starts
  return {
    env: {
      PENSTOCK_PREBUILD: folder,
      LD_PRELOAD: [runtime, exception].filter(Boolean).join(' '),
      // V8 and Node.js leave memory to the end of the process: leaks are counted by the tests themselves.
      ASAN_OPTIONS: 'detect_leaks=0:halt_on_error=1:abort_on_error=0:exitcode=99',
      UBSAN_OPTIONS: 'halt_on_error=1:print_stacktrace=1',
    },
  }
}
