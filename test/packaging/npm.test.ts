/** The package for npm: what is in it, and that it installs and works in an empty folder on a machine without a compiler. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, renameSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { lineOf, plainEnvironment, scratch } from '../cli/cli.ts'
import '../harness/slow.ts'
import { startRegistry } from './registry.ts'

const MAX_TARBALL_BYTES = 4 << 20

const directory = scratch()
afterAll(() => directory.dispose())
const out = join(directory.path, 'out')
const tarball = join(out, 'penstock-0.1.0.tgz')
let files: string[]

beforeAll(() => {
  execFileSync(process.execPath, ['packaging/npm.js', '--out', out, '--arch', process.arch], {
    cwd: packageRoot(),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const list = execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' })
  files = list
    .trim()
    .split('\n')
    .map((path) => path.replace(/^package\//, ''))
})

describe('the tarball', () => {
  it('has the program, what it reads, and what builds the addon', () => {
    const sources = ['addon.cc', 'gf256.h']
    expect(files).toEqual(
      expect.arrayContaining([
        ...['package.json', 'LICENSE', 'README.md', 'CHANGELOG.md', 'bin/penstock.js', 'binding.gyp'],
        ...[
          'dist/program/main.js',
          'dist/piscina/main.js',
          'dist/piscina/worker.js',
          'dist/piscina/tasks.js',
          'dist/thread/run.cjs',
          'dist/thread/run.cjs.map',
        ],
        ...[
          'dist/web/index.html',
          'proto/servicegrpc/pipeline/pipelines.proto',
          'examples/udp-fec.json',
          'examples/profiles/lte.json',
          'docs/commands.md',
          'docs/output/status.json',
        ],
        ...['man/penstock.1', 'man/penstock-pipelines.1', 'completions/penstock.bash', 'completions/_penstock'],
        'packaging/systemd/penstock.service',
        ...sources.map((name) => `src/dataplane/native/${name}`),
        `prebuilds/linux-${process.arch}/penstock.glibc.node`,
      ]),
    )
    const native = readdirSync(join(packageRoot(), 'src/dataplane/native')).filter((name) => /\.(cc|h)$/.test(name))
    expect(files.filter((path) => path.startsWith('src/')).length).toBe(native.length)
  })

  it('has nothing else', () => {
    const places =
      /^(bin|dist\/(piscina|program|src\/dataplane\/engine|thread|web)|proto|docs|examples|src\/dataplane\/native|packaging\/systemd|prebuilds|man|completions)\//
    const own = /^(package\.json|LICENSE|README\.md|CHANGELOG\.md|SECURITY\.md|binding\.gyp)$/
    expect(files.filter((path) => !places.test(path) && !own.test(path))).toEqual([])
    expect(files.filter((path) => /\/\.|\.(ts|test\.js|tsbuildinfo|pcap)$|fixture|\/bench\//.test(path))).toEqual([])
    // By those of the bundle what a component throws names its source.
    const maps = files.filter((path) => path.endsWith('.map'))
    expect(maps.filter((path) => !path.startsWith('dist/thread/'))).toEqual([])
    expect(statSync(tarball).size).toBeLessThan(MAX_TARBALL_BYTES)
  })

  it('has in its package.json nothing that only the repository uses, and its man pages', () => {
    const manifest = JSON.parse(execFileSync('tar', ['-xzOf', tarball, 'package/package.json'], { encoding: 'utf8' }))
    expect(manifest).not.toHaveProperty('devDependencies')
    expect(manifest).not.toHaveProperty('workspaces')
    expect(manifest.scripts).toEqual({ install: 'node-gyp-build' })
    expect(manifest.man.map((path: string) => path.slice(2)).sort()).toEqual(
      files.filter((path) => path.startsWith('man/')).sort(),
    )
  })
})

describe('installed in an empty folder, where there is no compiler', () => {
  const folder = join(directory.path, 'empty')
  const programs = join(directory.path, 'programs')
  const environment = {
    ...Object.fromEntries(Object.entries(plainEnvironment()).filter(([name]) => !/^npm_/i.test(name))),
    PATH: programs,
    HOME: join(directory.path, 'home'),
  }
  let registry: Awaited<ReturnType<typeof startRegistry>>

  beforeAll(async () => {
    for (const path of [folder, programs, environment.HOME]) mkdirSync(path)
    for (const name of ['npm', 'npx', 'sh']) {
      symlinkSync(execFileSync('which', [name], { encoding: 'utf8' }).trim(), join(programs, name))
    }
    symlinkSync(process.execPath, join(programs, 'node'))
    registry = await startRegistry()
    const { code, errors } = await run('npm', [
      'install',
      '--no-audit',
      '--no-fund',
      '--registry',
      registry.url,
      tarball,
    ])
    expect({ code, errors: code === 0 ? '' : errors }).toEqual({ code: 0, errors: '' })
  })
  afterAll(() => registry?.close())

  const begin = (command: string, args: string[]): ChildProcess =>
    spawn(join(programs, command), args, { cwd: folder, env: environment, stdio: ['ignore', 'pipe', 'pipe'] })

  async function run(command: string, args: string[]): Promise<{ code: number; output: string; errors: string }> {
    const child = begin(command, args)
    const gone = once(child, 'close')
    const [output, errors] = await Promise.all([text(child.stdout!), text(child.stderr!)])
    const [code] = await gone
    return { code, output, errors }
  }

  async function npx(...args: string[]): Promise<string> {
    const { code, output, errors } = await run('npx', ['penstock', ...args])
    expect({ args, code, errors: code === 0 ? '' : errors }).toEqual({ args, code: 0, errors: '' })
    return output
  }

  it('takes nothing of the workspace from the registry, and builds nothing', () => {
    expect([...registry.names].filter((name) => name.startsWith('@penstock/'))).toEqual([])
    expect(existsSync(join(folder, 'node_modules/penstock/build'))).toBe(false)
  })

  it('loads the addon that came with it', async () => {
    const findings = JSON.parse(await npx('doctor', '-o', 'json')) as { check: string; grade: string }[]
    expect(findings.filter(({ grade }) => grade === 'fail')).toEqual([])
    expect(findings).toContainEqual({ check: 'addon', grade: 'ok', found: 'native addon loaded' })
  })

  it('says how to have the addon on a machine that none came for', async () => {
    const [prebuilds, elsewhere] = [join(folder, 'node_modules/penstock/prebuilds'), join(folder, 'prebuilds')]
    renameSync(prebuilds, elsewhere)
    try {
      const { output } = await run('npx', ['penstock', 'doctor', '-o', 'json'])
      const [addon] = (JSON.parse(output) as { check: string }[]).filter(({ check }) => check === 'addon')
      const advice = expect.stringContaining('npm rebuild penstock')
      expect(addon).toEqual({
        check: 'addon',
        grade: 'fail',
        found: expect.stringMatching(/^No native build .*$/),
        advice,
      })
      const { errors } = await run('npx', ['penstock', 'up', '--data-dir', join(directory.path, 'none')])
      expect(errors).toMatch(/^penstock: No native build was found for .*: build it: .* npm rebuild penstock.*\n$/)
    } finally {
      renameSync(elsewhere, prebuilds)
    }
  })

  it('simulates, shows its demonstration, and runs a node', async () => {
    expect(await npx('simulate', 'node_modules/penstock/examples/generator.json', '-d', '5s')).toContain('sink')
    expect(await npx('demo', '--duration', '1s')).toMatch(/\d+ delivered/)
    const free = ['--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0', '--log-level', 'error']
    const node = begin('node', [
      'node_modules/.bin/penstock',
      'up',
      '--data-dir',
      join(directory.path, 'data'),
      ...free,
    ])
    const gone = once(node, 'exit')
    const [, address] = await lineOf(node, /^penstock ready http=(\S+)/)
    expect(await npx('status', '--url', `http://${address}`)).toContain('0 running')
    node.kill('SIGTERM')
    expect(await gone).toEqual([0, null])
  })
})
