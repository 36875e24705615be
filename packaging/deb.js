/**
 * `npm run package:deb [-- --out DIRECTORY]`: the Debian package for this machine's architecture, into packages/. DEBFULLNAME and DEBEMAIL say who
 * makes it, as for the tools of Debian. Expects what `npm run build` makes.
 */
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import { inScratch, manifest, megabytes, optionsGiven, packageDate, root, run } from './steps.js'
import { installedTree } from './tree.js'

const { DEBFULLNAME = 'penstock packagers', DEBEMAIL = 'penstock@packages.invalid' } = process.env
const MAINTAINER = `${DEBFULLNAME} <${DEBEMAIL}>`

/** From the repository to the package. */
const FILES = {
  'packaging/systemd/penstock.service': 'usr/lib/systemd/system/penstock.service',
  'packaging/systemd/penstock.sysusers': 'usr/lib/sysusers.d/penstock.conf',
  'packaging/systemd/penstock.tmpfiles': 'usr/lib/tmpfiles.d/penstock.conf',
  'packaging/systemd/penstock.yaml': 'etc/penstock/penstock.yaml',
  'packaging/debian/lintian-overrides': 'usr/share/lintian/overrides/penstock',
}

const architecture = () => run('dpkg', ['--print-architecture']).trim()

/** What makes encryption several times faster, in the versions that the addon takes, where Debian has it. */
const recommended = () =>
  architecture() === 'amd64' ? 'Recommends: libipsec-mb2 (<< 2.1~) | libipsec-mb1 (<< 2~)\n' : ''

/** glibc and libstdc++: what the addon built on Debian 12 asks for, the dependencies' binaries less. */
const control = (kilobytes) => `Package: penstock
Version: ${manifest.version}
Architecture: ${architecture()}
Maintainer: ${MAINTAINER}
Installed-Size: ${kilobytes}
Depends: nodejs (>= 20.19), nodejs (<< 23~), libc6 (>= 2.34), libstdc++6 (>= 11), libgcc-s1 (>= 3.0)
${recommended()}Section: net
Priority: optional
Description: node that moves network traffic through pipelines of components
 Pipelines are made of UDP, TCP and Unix sockets, TUN and TAP interfaces, error
 correction, encryption, and emulated loss, delay and bandwidth. Each runs in a
 thread of its own with batched input and output; its log and its metrics stream
 out of an API over REST, server-sent events and gRPC. Nodes can join a hub, and
 the same pipelines run on a virtual clock without sockets.
`

const changelog = () => `penstock (${manifest.version}) unstable; urgency=medium

  * Version ${manifest.version}; CHANGELOG.md.gz says what is new.

 -- ${MAINTAINER}  ${packageDate().toUTCString().replace('GMT', '+0000')}
`

function write(path, content, mode = 0o644) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content, { mode })
  chmodSync(path, mode)
}

const zipped = (content) => gzipSync(content, { level: 9 })

/** Man pages and completions go from the tree to where man and the shells look. */
function spread(tree, top) {
  for (const page of readdirSync(join(tree, 'man'))) {
    write(join(top, 'usr/share/man/man1', `${page}.gz`), zipped(readFileSync(join(tree, 'man', page))))
  }
  const completion = (name) => readFileSync(join(tree, 'completions', name))
  write(join(top, 'usr/share/bash-completion/completions/penstock'), completion('penstock.bash'))
  write(join(top, 'usr/share/zsh/vendor-completions/_penstock'), completion('_penstock'))
  for (const path of ['man', 'completions', 'LICENSE', 'README.md']) rmSync(join(tree, path), { recursive: true })
}

/** /usr/bin/penstock, by the Node.js of Debian whatever PATH says. */
function link(tree, top) {
  const launcher = join(tree, 'bin/penstock.js')
  write(launcher, readFileSync(launcher, 'utf8').replace(/^#!.*/, '#!/usr/bin/node'), 0o755)
  mkdirSync(join(top, 'usr/bin'), { recursive: true })
  symlinkSync('../lib/penstock/bin/penstock.js', join(top, 'usr/bin/penstock'))
}

function documentation(top, packages) {
  const directory = join(top, 'usr/share/doc/penstock')
  const list = packages.map(({ name, version, license }) => `  ${name} ${version}: ${license ?? 'see its files'}\n`)
  write(join(directory, 'copyright'), readFileSync(join(root, 'packaging/debian/copyright'), 'utf8') + list.join(''))
  write(join(directory, 'changelog.gz'), zipped(changelog()))
  for (const file of ['README.md', 'CHANGELOG.md'])
    write(join(directory, `${file}.gz`), zipped(readFileSync(join(root, file))))
  cpSync(join(root, 'docs'), join(directory, 'docs'), {
    recursive: true,
    // Not what the documentation's site keeps and makes beside it.
    filter: (path) => (statSync(path).isDirectory() ? basename(path) !== '.vitepress' : /\.(md|json)$/.test(path)),
  })
}

/** Every directory and file as a package has them, whatever this process's umask is: for all to read, what is executable for all to run. */
function settleModes(top) {
  for (const entry of readdirSync(top, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath ?? entry.path, entry.name)
    if (entry.isSymbolicLink()) continue
    chmodSync(path, entry.isDirectory() || /\/DEBIAN\/p|bin\/penstock\.js$/.test(path) ? 0o755 : 0o644)
  }
  chmodSync(top, 0o755)
}

/** Makes the package in `out`; gives its path. */
async function packDebian(out) {
  mkdirSync(out, { recursive: true })
  return await inScratch(async (scratch) => {
    const top = join(scratch, 'top')
    const tree = join(top, 'usr/lib/penstock')
    const packages = await installedTree(tree)
    spread(tree, top)
    link(tree, top)
    documentation(top, packages)
    for (const [from, to] of Object.entries(FILES)) write(join(top, to), readFileSync(join(root, from)))
    const kilobytes = Number(run('du', ['-sk', '--apparent-size', top]).split('\t')[0])
    for (const name of ['postinst', 'prerm', 'postrm']) {
      write(join(top, 'DEBIAN', name), readFileSync(join(root, 'packaging/debian', name)), 0o755)
    }
    write(join(top, 'DEBIAN/conffiles'), '/etc/penstock/penstock.yaml\n')
    write(join(top, 'DEBIAN/control'), control(kilobytes))
    settleModes(top)
    run(
      'sh',
      ['-c', 'find . -type f ! -path "./DEBIAN/*" -printf "%P\\0" | sort -z | xargs -0 md5sum > DEBIAN/md5sums'],
      top,
    )
    chmodSync(join(top, 'DEBIAN/md5sums'), 0o644)
    process.env.SOURCE_DATE_EPOCH ??= String(Math.floor(packageDate().getTime() / 1000))
    run('dpkg-deb', ['--root-owner-group', '-Zxz', '--build', top, out])
    return join(out, `penstock_${manifest.version}_${architecture()}.deb`)
  })
}

const out = { type: 'string', default: join(root, 'packages') }
const values = optionsGiven({ out }, 'npm run package:deb -- [--out DIRECTORY]')
const file = await packDebian(resolve(values.out))
console.log(`${file} ${megabytes(statSync(file).size)}`)
