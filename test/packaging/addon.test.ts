/** The addon is built for arm64 too, where there is a cross compiler, and leaves the repository's own build as it is. */
import { execFileSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { scratch } from '../cli/cli.ts'
import '../harness/slow.ts'
import { has } from './commands.ts'

/** Of e_machine (ELF): EM_AARCH64. */
const AARCH64 = 183

const directory = scratch()
afterAll(() => directory.dispose())

it.skipIf(!has('aarch64-linux-gnu-g++'))('is made for arm64 by the cross compiler', () => {
  const own = statSync(join(packageRoot(), 'build/Release/penstock.node')).mtimeMs
  const args = ['packaging/npm.js', '--out', directory.path, '--arch', 'arm64']
  // It is looked at, not run: that the compiler optimises it takes half as long again.
  const env = { ...process.env, CXXFLAGS: '-O0' }
  execFileSync(process.execPath, args, { cwd: packageRoot(), env, stdio: ['ignore', 'ignore', 'pipe'] })
  const list = execFileSync('tar', ['-tzf', join(directory.path, 'penstock-0.1.0.tgz')], { encoding: 'utf8' })
  expect(list.split('\n').filter((path) => path.includes('/prebuilds/'))).toEqual([
    'package/prebuilds/linux-arm64/penstock.glibc.node',
  ])
  const addon = execFileSync('tar', ['-xzOf', join(directory.path, 'penstock-0.1.0.tgz'), 'package/prebuilds'], {
    maxBuffer: 1 << 24,
  })
  expect(addon.subarray(1, 4).toString()).toBe('ELF')
  expect(addon.readUInt16LE(18)).toBe(AARCH64)
  expect(statSync(join(packageRoot(), 'build/Release/penstock.node')).mtimeMs).toBe(own)
})
