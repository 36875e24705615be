/**
 * `npm run package [-- --out DIRECTORY --arch ARCH …]`: the packages for npm, penstock and @penstock/client, into packages/. That of penstock has
 * what `files` of package.json names, and beside it what is made here: the addon, built for this machine and those there is a cross compiler
 * for, man pages and completions. Expects what `npm run build` makes.
 */
import { cpSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { manPages } from '../dist/src/cli/man-pages.js'
import { createProgram } from '../dist/src/cli/program.js'
import { buildable, prebuild } from './addon.js'
import { endWithUsage, inScratch, manifest, megabytes, optionsGiven, packageDate, root, run } from './steps.js'

/** Packs the package in `directory`; gives the path of the tarball in `out`. */
function pack(directory, out, args = []) {
  const [{ filename }] = JSON.parse(
    run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', out, ...args], directory),
  )
  return join(out, filename)
}

/** The files of the repository that are published, the bundled packages among them. */
function published() {
  const [{ files }] = JSON.parse(run('npm', ['pack', '--json', '--ignore-scripts', '--dry-run']))
  return files.map(({ path }) => path)
}

/** The package.json of the package: without what only the repository uses, with its man pages, which npm links for a global installation. */
function publishedManifest(pages) {
  const { workspaces, devDependencies, allowScripts, scripts, ...rest } = manifest
  const man = pages.map((page) => `./man/${page}`)
  return `${JSON.stringify({ ...rest, scripts: { install: scripts.install }, man }, null, 2)}\n`
}

function writeFiles(directory, files) {
  mkdirSync(directory, { recursive: true })
  for (const [name, text] of files) writeFileSync(join(directory, name), text)
}

/** Makes the package of penstock in `out`, with the addon for `architectures`; gives its path. */
export async function packPenstock(out, architectures) {
  mkdirSync(out, { recursive: true })
  return await inScratch(async (stage) => {
    for (const path of published()) {
      mkdirSync(join(stage, dirname(path)), { recursive: true })
      cpSync(join(root, path), join(stage, path))
    }
    for (const arch of architectures) await prebuild(arch, stage)
    const pages = manPages(await createProgram(), packageDate())
    writeFiles(join(stage, 'man'), pages)
    writeFiles(stage, [['package.json', publishedManifest([...pages.keys()])]])
    const script = (shell) => run(process.execPath, ['bin/penstock.js', 'completion', shell])
    writeFiles(join(stage, 'completions'), [
      ['penstock.bash', script('bash')],
      ['_penstock', script('zsh')],
    ])
    return pack(stage, out)
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const known = buildable()
  const options = {
    out: { type: 'string', default: join(root, 'packages') },
    arch: { type: 'string', multiple: true, default: known },
  }
  const usage = `npm run package -- [--out DIRECTORY] [--arch ARCH …], here with ${known.join(' or ')}`
  const values = optionsGiven(options, usage)
  const unknown = values.arch.find((arch) => !known.includes(arch))
  if (unknown !== undefined) endWithUsage(`nothing here builds for ${unknown}`, usage)
  const out = resolve(values.out)
  const packages = [await packPenstock(out, values.arch), pack(join(root, 'clients/typescript'), out)]
  for (const file of packages) console.log(`${file} ${megabytes(statSync(file).size)}`)
  console.log(`the addon is built for ${values.arch.join(', ')}`)
}
