/**
 * Completes package-lock.json after an `npm install` from a registry that lacks the packages of other platforms.
 *
 * npm leaves such optional packages out of the lock file, and `npm ci` then refuses it as out of step with package.json. What is
 * added here is the version that the depending package asks for, and the platform its name tells; other platforms take
 * the rest from their registry. Run it in the package's directory: node .ci/complete-lock.js
 */
import { readFileSync, writeFileSync } from 'node:fs'

const PLATFORM =
  /(android|darwin|freebsd|linux|openharmony|win32)-([a-z0-9]+)(?:-(musl|gnu)|-eabi|-gnueabihf|-musleabihf|-msvc)?$/

const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'))

/** Whether `name`, required by the package at `path`, is in the lock file: beside it, or above. */
function isLocked(path, name) {
  for (let base = path; ; base = base.slice(0, Math.max(0, base.lastIndexOf('/node_modules/')))) {
    if (lock.packages[`${base ? `${base}/` : ''}node_modules/${name}`]) return true
    if (base === '' || !base.includes('/node_modules/')) return lock.packages[`node_modules/${name}`] !== undefined
  }
}

const added = {}
for (const [path, { dev, optionalDependencies = {} }] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    if (isLocked(path, name)) continue
    const [, os, cpu, libc] = PLATFORM.exec(name) ?? []
    if (!os || !/^\d+\.\d+\.\d+/.test(version)) throw new Error(`cannot tell what ${name}@${version} is for`)
    added[`node_modules/${name}`] = {
      version,
      cpu: [cpu],
      ...(dev ? { dev } : {}),
      ...(libc ? { libc: [libc === 'gnu' ? 'glibc' : libc] } : {}),
      optional: true,
      os: [os],
    }
  }
}
const packages = Object.entries({ ...lock.packages, ...added }).sort(([a], [b]) => a.localeCompare(b, 'en'))
lock.packages = Object.fromEntries(packages)
writeFileSync('package-lock.json', `${JSON.stringify(lock, null, 2)}\n`)
console.log(`${Object.keys(added).length} packages added`)
