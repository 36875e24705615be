/** The Debian package: what is in it, for whom, and what lintian says of it. Installed below a directory of its own, it runs. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { scratch } from '../cli/cli.ts'
import '../harness/slow.ts'
import { has } from './commands.ts'

const MAX_PACKAGE_BYTES = 16 << 20

const missing = ['dpkg', 'dpkg-deb', 'strip'].filter((command) => !has(command))
if (missing.length > 0) console.warn(`SKIPPED: the tests of the Debian package lack ${missing.join(', ')}`)

describe.skipIf(missing.length > 0)('the Debian package', () => {
  const directory = scratch()
  const unpacked = join(directory.path, 'unpacked')
  const { version } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8'))
  let file: string
  let listed: { mode: string; owner: string; path: string }[]

  beforeAll(() => {
    execFileSync(process.execPath, ['packaging/deb.js', '--out', directory.path], {
      cwd: packageRoot(),
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const architecture = execFileSync('dpkg', ['--print-architecture'], { encoding: 'utf8' }).trim()
    file = join(directory.path, `penstock_${version}_${architecture}.deb`)
    listed = execFileSync('dpkg-deb', ['-c', file], { encoding: 'utf8', maxBuffer: 1 << 26 })
      .trim()
      .split('\n')
      .map((line) => line.split(/\s+/))
      .map(([mode = '', owner = '', , , , path = '']) => ({ mode, owner, path: path.slice(2) }))
    execFileSync('dpkg-deb', ['-x', file, unpacked])
  })
  afterAll(() => directory.dispose())

  const field = (name: string): string => execFileSync('dpkg-deb', ['-f', file, name], { encoding: 'utf8' }).trim()

  it('has the program, its pages, its completions and its service, where Debian looks for them', () => {
    expect(listed.map(({ path }) => path)).toEqual(
      expect.arrayContaining([
        ...['usr/bin/penstock', 'usr/lib/penstock/bin/penstock.js', 'usr/lib/penstock/dist/program/main.js'],
        ...[
          'usr/lib/penstock/node_modules/eventsource-parser/dist/index.js',
          'usr/lib/penstock/node_modules/ws/index.js',
        ],
        ...['usr/share/man/man1/penstock.1.gz', 'usr/share/man/man1/penstock-pipelines.1.gz'],
        ...['usr/share/bash-completion/completions/penstock', 'usr/share/zsh/vendor-completions/_penstock'],
        ...[
          'usr/lib/systemd/system/penstock.service',
          'usr/lib/sysusers.d/penstock.conf',
          'usr/lib/tmpfiles.d/penstock.conf',
        ],
        ...['etc/penstock/penstock.yaml', 'usr/share/doc/penstock/copyright', 'usr/share/doc/penstock/changelog.gz'],
      ]),
    )
  })

  it('has nothing of development, and no binaries for other systems', () => {
    const places =
      /^(usr\/(bin|lib\/(penstock|systemd|sysusers\.d|tmpfiles\.d)|share\/(doc|lintian|man|bash-completion|zsh))|etc\/penstock)\//
    const files = listed.filter(({ mode }) => !mode.startsWith('d')).map(({ path }) => path)
    expect(files.filter((path) => !places.test(path))).toEqual([])
    expect(
      files.filter((path) => /node_modules\/(typescript|vitest|prebuildify|@types\/benchmark)\//.test(path)),
    ).toEqual([])
    expect(files.filter((path) => /darwin|win32|musl/.test(path) && path.endsWith('.node'))).toEqual([])
    expect(statSync(file).size).toBeLessThan(MAX_PACKAGE_BYTES)
  })

  it('belongs to root, and nobody else may write to it', () => {
    expect(listed.filter(({ owner }) => owner !== 'root/root')).toEqual([])
    expect(listed.filter(({ mode }) => !mode.startsWith('l') && /^.(.{4}w|.{7}w)/.test(mode))).toEqual([])
  })

  it('depends on a Node.js that penstock runs on, and keeps the settings of who installs it', () => {
    expect(field('Version')).toBe(version)
    expect(field('Depends')).toContain('nodejs (>= 20.19), nodejs (<< 23~)')
    expect(execFileSync('dpkg-deb', ['-I', file, 'conffiles'], { encoding: 'utf8' })).toBe(
      '/etc/penstock/penstock.yaml\n',
    )
  })

  it('recommends the library for fast encryption where there is one', () => {
    expect(field('Recommends')).toBe(
      field('Architecture') === 'amd64' ? 'libipsec-mb2 (<< 2.1~) | libipsec-mb1 (<< 2~)' : '',
    )
  })

  it('runs where it is unpacked, with settings that it takes', () => {
    const program = join(unpacked, 'usr/lib/penstock/bin/penstock.js')
    const penstock = (...args: string[]) => spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' })
    expect(penstock('--version').stdout).toBe(`${version}\n`)
    expect(penstock('config', 'check', '-c', join(unpacked, 'etc/penstock/penstock.yaml')).stdout).toMatch(/token/)
    const example = join(unpacked, 'usr/lib/penstock/examples/generator.json')
    expect(penstock('run', example, '--duration', '200ms')).toMatchObject({ status: 0 })
    const page = gunzipSync(readFileSync(join(unpacked, 'usr/share/man/man1/penstock-up.1.gz'))).toString()
    expect(page).toContain('.TH PENSTOCK-UP 1')
    const list = spawnSync('npm', ['ls', '--omit=dev', '--all'], {
      cwd: join(unpacked, 'usr/lib/penstock'),
      encoding: 'utf8',
    })
    expect(list.stderr).not.toMatch(/missing|invalid/)
  })

  it.skipIf(!has('lintian'))('has no error and no warning of lintian', () => {
    const { stdout } = spawnSync('lintian', ['--tag-display-limit', '0', file], { encoding: 'utf8' })
    expect(stdout.split('\n').filter((line) => /^[EW]:/.test(line))).toEqual([])
  })
})

describe('the maintainer scripts', () => {
  it.each(['postinst', 'prerm', 'postrm'])('%s is one for sh', (name) => {
    const script = join(packageRoot(), 'packaging/debian', name)
    expect(spawnSync('sh', ['-n', script], { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' })
  })
})
