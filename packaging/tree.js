/**
 * `node packaging/tree.js DIRECTORY`: penstock as it is installed, with the dependencies that it needs to run, in the versions of node_modules,
 * for this machine's architecture only. The Debian package and the container image are made of it. Expects what `npm run build` makes.
 */
import { cpSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packPenstock } from './npm.js'
import { inScratch, root, run } from './steps.js'

/** What only npm has use for. */
const FOR_NPM = ['src', 'binding.gyp', 'packaging']

/** What programs read at run time, and the licenses that go with it. */
const NEEDED = /\.([cm]?js|json|node|proto)$|^(licen[cs]e|copying|copyright|notice)/i

/** Folders of a package that are none of its program. */
const BESIDE = ['node_modules', 'test', 'tests', 'bench', 'benchmark', 'benchmarks', 'docs', 'examples']

/** Binaries of uWebSockets.js for Node.js 20, 21 and 22; of others those for glibc. */
const isForeign = (name) =>
  name.startsWith('uws_')
    ? !new RegExp(`^uws_linux_${process.arch}_(115|120|127)\\.node$`).test(name)
    : /\.musl\.node$/.test(name)

/** A package's binaries for another machine. */
const isOfAnother = (path) => basename(dirname(path)) === 'prebuilds' && basename(path) !== `linux-${process.arch}`

/** Copies what is needed of a package, without the packages in it. */
function copyPackage(from, to) {
  const filter = (path) => {
    if (path === from) return true
    const name = basename(path)
    if (statSync(path).isDirectory()) return !(dirname(path) === from && BESIDE.includes(name)) && !isOfAnother(path)
    return NEEDED.test(name) && !name.startsWith('.') && !isForeign(name)
  }
  mkdirSync(dirname(to), { recursive: true })
  cpSync(from, to, { recursive: true, filter })
}

/** Where in the repository the packages are that penstock needs to run, as npm tells it. */
function production() {
  return JSON.parse(run('npm', ['query', '*']))
    .filter(({ dev, extraneous, location }) => !dev && !extraneous && location.startsWith('node_modules/'))
    .map(({ location, name, version, license }) => ({ location, name, version, license }))
}

/** Makes the tree in `directory`, which is not there yet; gives the packages in it: where they are, name, version and license. */
export async function installedTree(directory) {
  mkdirSync(directory, { recursive: true })
  await inScratch(async (scratch) => {
    const tarball = await packPenstock(scratch, [process.arch])
    run('tar', ['-xzf', tarball, '-C', directory, '--strip-components=1', '--no-same-owner'])
  })
  for (const path of FOR_NPM) rmSync(join(directory, path), { recursive: true, force: true })
  const packages = production()
  for (const { location } of packages) copyPackage(join(root, location), join(directory, location))
  for (const file of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    if (file.endsWith('.node')) run('strip', ['--strip-unneeded', join(directory, file)])
  }
  return packages
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv[2] === undefined) throw new Error('name the directory: node packaging/tree.js DIRECTORY')
  const packages = await installedTree(resolve(process.argv[2]))
  console.log(`${process.argv[2]}: penstock and ${packages.length} packages`)
}
